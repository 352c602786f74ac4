"""`elbowroom profile calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import launcher_names
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.nic import nic_options, nic_settings
from elbowroom.cli.options import REPEAT, Output, command, json_option, mpi_option
from elbowroom.cli.run_options import launch_options
from elbowroom.quantities import format_size, number, parse_size

if TYPE_CHECKING:
    from elbowroom.api.network_calibration import Calibration


@command()
@click.option(
    "--sizes", default="1KiB,16KiB,256KiB,4MiB", show_default=True, metavar="LIST", help="Of the messages."
)
@click.option(
    "--ranks", type=click.IntRange(min=2), metavar="N", help="Of all nodes; default: one for each core."
)
@nic_options
@click.option("--repeat", type=REPEAT, default=5, show_default=True, metavar="N", help="Repetitions.")
@click.option(
    "--launcher",
    metavar="NAME",
    help=f"{', '.join(launcher_names())}; default: that of the allocation, else local.",
)
@mpi_option
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="File of hosts for mpiexec, one per line.")
@click.option("-o", "--out", type=Output(".json"), metavar="FILE", help="Write it for `show --curve`.")
@dry_run_option
@json_option
def calibrate(as_json: bool, dry_run: bool, out: str | None, **options: Any) -> int:
    """Measure what n senders of a node get together.

    To another node and inside the node, over sizes. Estimates of network time rest on it.
    """
    sizes = [parse_size(word.strip(), "sizes") for word in options["sizes"].split(",")]
    settings: dict[str, Any] = {
        "ranks": options["ranks"],
        "nic": nic_settings(options),
        "repeat": options["repeat"],
        **launch_options(options),
    }
    if dry_run:
        return show_planned(api.network_calibration.plan_network_calibration(sizes, **settings), as_json)
    found = api.calibrate_network(sizes, **settings)
    if out is not None:
        api.save_calibration(found, out)
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0


def _print(found: Calibration) -> None:
    print_wrapped(f"All senders of a node together, MB/s ({found.mpi})", style="bold")
    table = new_table(
        ("", ""), ("senders", "right"), ("size", "right"), ("MB/s", "right"), ("range", "right")
    )
    for row in found.rows:
        where = "inside the node" if row.inside else "both directions" if row.both else "between nodes"
        spread = f"{number(row.low)} - {number(row.high)}"
        table.add_row(where, str(row.senders), format_size(row.size), number(row.bandwidth), spread)
    console().print(table)
    if found.curve is None:
        print_wrapped("All ranks are on one node: there is no curve of its NIC.", style="yellow")
    else:
        print_wrapped(f"A message takes {number(found.curve.latency * 1e6)} µs from node to node.")
