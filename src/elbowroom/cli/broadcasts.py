"""`elbowroom broadcast`: broadcasts over trees."""

from __future__ import annotations

from typing import Any

import click

from elbowroom import api
from elbowroom.cli.broadcast_bench import bench
from elbowroom.cli.broadcast_networks import KINDS, network_of, network_options, tune
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.factorizations import factorize
from elbowroom.cli.options import Group, json_option
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, number, parse_bandwidth, parse_size


@click.group(cls=Group)
def broadcast() -> None:
    """Simulate and measure broadcasts over trees (`elbowroom help broadcast`)."""


@broadcast.command()
@click.option("--recipients", type=int, metavar="N", help="Ranks that receive; default: 38.")
@click.option("--nodes", type=int, metavar="N", help="The same, with the root among them.")
@click.option("--size", default="429KiB", show_default=True, metavar="SIZE", help="Bytes of the data.")
@network_options()
@click.option("--network", metavar="FILE", help="These three from a file of `broadcast tune -o`.")
@click.option("--tree", default="binomial", show_default=True, metavar="KIND", help=KINDS)
@click.option(
    "--segment",
    metavar="SIZE",
    help="Segments that ranks forward one by one; default: 32 KiB for two, else whole.",
)
@click.option("--window", metavar="SIZE", help="Bytes in flight from a rank; default: 128 KiB.")
@click.option(
    "--platform",
    default="star",
    show_default=True,
    metavar="NAME",
    help="star, fat-tree, or a platform file of SimGrid.",
)
@click.option("--racks", type=int, metavar="N", help="Of the fat tree; default: 4.")
@click.option(
    "--uplink", metavar="RATE", help="From each rack to the switch that joins them; default: 12GB/s."
)
@click.option(
    "--order",
    default="rank",
    show_default=True,
    metavar="ORDER",
    help="Of ranks on the fat tree: rank, shuffled, or rack (shuffled, and the racks are known).",
)
@json_option
def simulate(as_json: bool, **options: Any) -> int:
    """Simulate one broadcast on a cluster, with the library that does it for real.

    Prints the time until the last recipient has the data. Nothing is measured. Without SimGrid, the time on a
    star is that of the library's cost model.
    """
    request = _request(options)
    document = api.broadcasts.time_broadcast(request)
    if as_json:
        print_json(document)
        return 0
    segments = f", segments of {format_size(document.segment)}" if document.segment else ""
    chosen = " (auto)" if request.tree == "auto" else ""
    print_wrapped(
        f"{format_size(request.size)} to {request.recipients} recipients, tree: {document.tree}{segments}"
        f"{chosen}; {'predicted' if document.predicted else 'simulated'}, nothing is measured",
        style="bold",
    )
    time = (
        f"The last recipient has the data after {number(document.time_us)} µs "
        f"({number(document.bandwidth)} MB/s)."
    )
    if document.predicted:
        print_wrapped(
            f"{time} This is from the library's cost model: SimGrid, which simulates the times of all ranks, "
            "is not installed (as root: apt-get install libsimgrid-dev)."
        )
        return 0
    print_wrapped(
        f"{time} The root may write them after "
        f"{number(document.released_us[0])} µs, the last rank after {number(max(document.released_us))} µs."
    )
    return 0


def _request(options: dict[str, Any]) -> api.broadcasts.BroadcastRequest:
    """What the options of `simulate` ask for."""
    network = network_of(options, options["network"], "network")
    given: dict[str, Any] = {}
    if options["racks"] is not None:
        given["racks"] = options["racks"]
    if options["uplink"] is not None:
        given["uplink"] = parse_bandwidth(options["uplink"], "uplink")
    if given and options["platform"] != "fat-tree":
        name = next(iter(given))
        raise UsageError(
            "is of a fat tree only", field=name, value=options[name], hint="add --platform fat-tree"
        )
    return api.broadcasts.BroadcastRequest(
        recipients=_recipients(options["recipients"], options["nodes"]),
        size=parse_size(options["size"], "size"),
        bandwidth=network.bandwidth,
        latency=network.latency,
        overhead=network.overhead,
        tree=options["tree"],
        platform=options["platform"],
        order=options["order"],
        segment=0 if options["segment"] is None else parse_size(options["segment"], "segment"),
        window=0 if options["window"] is None else parse_size(options["window"], "window"),
        **given,
    )


def _recipients(recipients: int | None, nodes: int | None) -> int:
    if nodes is None:
        return 38 if recipients is None else recipients
    if recipients is not None:
        raise UsageError(
            "cannot be combined with --recipients", field="nodes", value=nodes, hint="leave one out"
        )
    if not 2 <= nodes <= api.broadcasts.MOST_RECIPIENTS + 1:
        raise UsageError(
            f"is not between 2 and {api.broadcasts.MOST_RECIPIENTS + 1}",
            field="nodes",
            value=nodes,
            hint="for instance 39",
        )
    return nodes - 1


broadcast.add_command(bench)
broadcast.add_command(tune)
broadcast.add_command(factorize)
