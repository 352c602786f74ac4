"""`elbowroom broadcast factorize`: factorizations on simulated clusters."""

from __future__ import annotations

from typing import Any, Literal

import click

from elbowroom import api
from elbowroom.cli.broadcast_networks import network_of, network_options
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import command, json_option
from elbowroom.errors import UsageError
from elbowroom.quantities import number, parse_size

BLOCK = 320
"""Rows of a tile, where neither an option nor a file of times says it."""


@command()
@click.option("--task", type=click.Choice(["cholesky", "qr"]), default="cholesky", show_default=True)
@click.option("--rows", type=int, default=40, show_default=True, metavar="N", help="Rows of tiles.")
@click.option("--columns", type=int, metavar="N", help="Columns of tiles of QR's; default: as many.")
@click.option("--block", type=int, metavar="N", help="Rows of a tile; default: 320, or as in --times.")
@click.option(
    "--grid", default="4x4", show_default=True, metavar="PxQ", help="Processes in rows and columns."
)
@click.option("--workers", type=int, default=8, show_default=True, metavar="N", help="Cores of a process.")
@click.option(
    "--times", metavar="FILE", help="Times of the kernels (factorizations-inline times); default: measured."
)
@network_options()
@click.option(
    "--tree", default="binomial", show_default=True, metavar="KIND", help="Of the broadcasts; none: without."
)
@click.option(
    "--segment",
    metavar="SIZE",
    help="Segments that ranks forward one by one; default: 32 KiB for two, else whole.",
)
@click.option("--no-priorities", is_flag=True, help="All tasks are alike.")
@click.option("--wait-released", is_flag=True, help="Readers start when their data are forwarded.")
@dry_run_option
@json_option
def factorize(task: Literal["cholesky", "qr"], as_json: bool, dry_run: bool, **options: Any) -> int:
    """Simulate a factorization in tiles on a cluster (Figs 4.9 to 4.16 of the thesis).

    Task graph and broadcasts are those of the real program; kernels take times that are measured on one core
    here, or given. The network is simulated.
    """
    network = network_of(options)
    if dry_run:
        block = None if options["times"] is not None else options["block"] or BLOCK
        return show_planned(api.factorizations.plan_factorization(block), as_json)
    request = api.factorizations.FactorizationRequest(
        task=task,
        rows=options["rows"],
        columns=options["rows"] if options["columns"] is None else options["columns"],
        grid=api.factorizations.parse_grid(options["grid"]),
        times=_times(options["times"], options["block"]),
        workers=options["workers"],
        bandwidth=network.bandwidth,
        latency=network.latency,
        overhead=network.overhead,
        tree=options["tree"],
        segment=0 if options["segment"] is None else parse_size(options["segment"], "segment"),
        priorities=not options["no_priorities"],
        early=not options["wait_released"],
    )
    document = api.factorizations.factorization_document(api.simulate_factorization(request), request)
    if as_json:
        print_json(document)
        return 0
    order = request.rows * request.times.block
    print_wrapped(
        f"{task} of order {order} in tiles of {request.times.block} on {options['grid']} processes of "
        f"{request.workers} cores, tree: {request.tree}; simulated",
        style="bold",
    )
    print_wrapped(
        f"{number(document.time_us / 1e6)} s, {number(document.Gflop_s)} Gflop/s; workers compute "
        f"{document.busy:.0%} of the time."
    )
    print_wrapped(
        f"{document.data} data are read by other processes, {document.broadcasts} of them by several (at "
        f"most {document.most_recipients}); without broadcasts there would be {document.messages} messages."
    )
    return 0


def _times(file: str | None, block: int | None) -> api.factorizations.StepTimes:
    """Read, or measured; a block that contradicts the file is refused."""
    if file is None:
        return api.factorizations.measure_step_times(BLOCK if block is None else block)
    times = api.factorizations.read_step_times(file)
    if block not in (None, times.block):
        raise UsageError(
            f"differs from the {times.block} rows of the times",
            field="block",
            value=block,
            hint="leave it out",
        )
    return times
