"""`elbowroom broadcast`: broadcasts over trees."""

from __future__ import annotations

from typing import Any

import click

from elbowroom import api
from elbowroom.api.quantities import format_size, number, parse_size
from elbowroom.cli.broadcast_bench import bench
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.options import Group, json_option


@click.group(cls=Group)
def broadcast() -> None:
    """Simulate and measure broadcasts over trees (`elbowroom help broadcast`)."""


broadcast.add_command(bench)


@broadcast.command()
@click.option(
    "--recipients", type=int, default=38, show_default=True, metavar="N", help="Ranks that receive."
)
@click.option("--size", default="429KiB", show_default=True, metavar="SIZE", help="Bytes of the data.")
@click.option(
    "--bandwidth",
    default="6GB/s",
    show_default=True,
    metavar="RATE",
    help="Of each node's link, in each direction.",
)
@click.option("--latency", default="2us", show_default=True, metavar="TIME", help="Of each node's link.")
@click.option(
    "--tree",
    default="binomial",
    show_default=True,
    metavar="KIND",
    help="flat, chain, binary, binomial, 4-ary, 8-nomial, two; with delegate- or split3- before it.",
)
@click.option("--segment", metavar="SIZE", help="Segments that ranks forward one by one; default: whole.")
@json_option
def simulate(as_json: bool, **options: Any) -> int:
    """Simulate one broadcast on a cluster, with the library that does it for real.

    Prints the time until the last recipient has the data. Nothing is measured.
    """
    request = api.broadcasts.BroadcastRequest(
        recipients=options["recipients"],
        size=parse_size(options["size"], "size"),
        bandwidth=api.broadcasts.parse_rate(options["bandwidth"], "bandwidth"),
        latency=api.broadcasts.parse_latency(options["latency"], "latency"),
        tree=options["tree"],
        segment=0 if options["segment"] is None else parse_size(options["segment"], "segment"),
    )
    simulated = api.simulate_broadcast(**{name: getattr(request, name) for name in request.__struct_fields__})
    document = api.broadcasts.broadcast_document(simulated, request)
    if as_json:
        print_json(document)
        return 0
    segments = f", segments of {format_size(request.segment)}" if request.segment else ""
    print_wrapped(
        f"{format_size(request.size)} to {request.recipients} recipients, tree: {request.tree}{segments}; "
        f"simulated, nothing is measured",
        style="bold",
    )
    print_wrapped(
        f"The last recipient has the data after {number(document.time_us)} µs "
        f"({number(document.bandwidth)} MB/s). The root may write them after "
        f"{number(document.released_us[0])} µs, the last rank after {number(max(document.released_us))} µs."
    )
    return 0
