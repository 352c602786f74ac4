"""`elbowroom broadcast areas` and `broadcast tune`, and the options of a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from elbowroom import api
from elbowroom.api.quantities import format_size, number, parse_size
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import FIGURE, Output, command, json_option
from elbowroom.errors import UsageError

BANDWIDTH, LATENCY = "6GB/s", "2us"
"""Of the thesis' network as far as it is known (Fig. 4.3)."""

KINDS = "flat, chain, binary, binomial, 4-ary, 8-nomial, two, auto; with delegate- or split3- before it."

OVERHEAD = "500ns"
"""For `tune`, as the library has it: without it, one rank sends to all others at once."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def network_options(overhead: str | None = None) -> Decorator:
    """--bandwidth, --latency and --overhead; `overhead`: its default."""
    options: tuple[Decorator, ...] = (
        click.option(
            "--bandwidth",
            metavar="RATE",
            help=f"Of each node's link, in each direction; default: {BANDWIDTH}.",
        ),
        click.option("--latency", metavar="TIME", help=f"Of each node's link; default: {LATENCY}."),
        click.option(
            "--overhead",
            metavar="TIME",
            help=f"Of a rank for each message that it sends or receives; default: {overhead or 'none'}.",
        ),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def network_of(
    options: dict[str, Any], file: str | None = None, where: str = "", overhead: str | None = None
) -> api.broadcasts.Network:
    """The network of the file that the option `where` names, or of the options; `overhead`: its default."""
    given = {name: options[name] for name in ("bandwidth", "latency", "overhead")}
    if file is None:
        broadcasts = api.broadcasts
        overhead = given["overhead"] or overhead
        return broadcasts.Network(
            bandwidth=broadcasts.parse_rate(given["bandwidth"] or BANDWIDTH, "bandwidth"),
            latency=broadcasts.parse_latency(given["latency"] or LATENCY, "latency"),
            overhead=0.0 if overhead is None else broadcasts.parse_latency(overhead, "overhead"),
        )
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"cannot be combined with --{where}", field=name, value=value, hint="leave one out"
            )
    return api.load_network(file) if where == "network" else api.fit_broadcast_network(file)


@command()
@click.option(
    "--recipients", type=int, default=38, show_default=True, metavar="N", help="Ranks that receive."
)
@click.option("--size", default="409KiB", show_default=True, metavar="SIZE", help="Bytes of the data.")
@network_options()
@click.option(
    "--tree",
    "trees",
    multiple=True,
    default=("flat", "binary", "binomial"),
    show_default=True,
    metavar="KIND",
    help="May be repeated: a panel for each.",
)
@click.option("--segment", metavar="SIZE", help="Segments that ranks forward one by one; default: whole.")
@click.option(
    "--priorities",
    default="rising",
    show_default=True,
    metavar="LIST",
    help="rising (with the rank), equal, or one for each recipient: 3,0,1.",
)
@click.option("-o", "--out", type=FIGURE, metavar="FILE", help="Draw the areas: .png or .svg.")
@json_option
def areas(trees: tuple[str, ...], out: str | None, as_json: bool, **options: Any) -> int:
    """Simulate when each rank has the data, and when it has forwarded them.

    The areas between both times over the rank, by tree (Figs 4.5 and 4.6 of the thesis). Nothing is measured.
    """
    network = network_of(options)
    request = api.broadcasts.BroadcastRequest(
        recipients=options["recipients"],
        size=parse_size(options["size"], "size"),
        bandwidth=network.bandwidth,
        latency=network.latency,
        overhead=network.overhead,
        segment=0 if options["segment"] is None else parse_size(options["segment"], "segment"),
        priorities=api.broadcasts.parse_priorities(options["priorities"], options["recipients"]),
    )
    simulated = api.broadcasts.simulate_areas(trees, request)
    if out is not None:
        api.broadcasts.save_areas(simulated, request, out)
    if as_json:
        print_json(api.broadcasts.areas_document(simulated, request))
        return 0
    print_wrapped(
        f"{format_size(request.size)} to {request.recipients} recipients; simulated, nothing is measured",
        style="bold",
    )
    table = new_table(
        ("rank", "right"), ("priority", "right"), *((f"{one.tree}, µs", "right") for one in simulated)
    )
    for rank in range(1, request.recipients + 1):
        priority = request.priorities[rank - 1] if request.priorities else 0
        spans = (f"{one.received[rank - 1] * 1e6:.0f} - {one.released[rank] * 1e6:.0f}" for one in simulated)
        table.add_row(str(rank), str(priority), *spans)
    console().print(table)
    return 0


@command()
@network_options(OVERHEAD)
@click.option(
    "--from", "source", metavar="FILE", help="Fit the network to what `broadcast bench --json` printed."
)
@click.option(
    "--sizes",
    default="4,4KiB,64KiB,429KiB,4MiB,32MiB",
    show_default=True,
    metavar="LIST",
    help="Sizes of the data.",
)
@click.option(
    "--recipients", default="3,7,38,195", show_default=True, metavar="LIST", help="Numbers of recipients."
)
@click.option(
    "-o", "--out", type=Output(".json"), metavar="FILE", help="Write the network for `simulate --network`."
)
@json_option
def tune(source: str | None, out: str | None, as_json: bool, **options: Any) -> int:
    """Find the tree, segment and window of the least predicted time.

    By a model of the network (`elbowroom help broadcast`), which `auto` uses, too. Its parameters are given,
    or fitted to measured broadcasts.
    """
    network = network_of(options, source, "from", OVERHEAD)
    sizes = [parse_size(word, "sizes") for word in options["sizes"].split(",")]
    document = api.tune_broadcasts(network, sizes, _counts(options["recipients"]))
    if out is not None:
        api.save_network(document, out)
    if as_json:
        print_json(document)
        return 0
    print_wrapped(
        f"Links of {number(network.bandwidth / 1e6)} MB/s and {number(network.latency * 1e6)} µs, "
        f"{number(network.overhead * 1e6)} µs of a rank for each message; "
        f"{'fitted to measured times' if source else 'as given'}. Times are predicted.",
        style="bold",
    )
    table = new_table(
        ("size", "right"), ("recipients", "right"), ("tree", ""), ("segment", "right"), ("window", "right"),
        ("time, µs", "right"),
    )  # fmt: skip
    for row in document.table:
        segment = format_size(row.segment) if row.segment else "whole"
        window = format_size(row.window)
        table.add_row(
            format_size(row.size), str(row.recipients), row.tree, segment, window, number(row.time_us)
        )
    console().print(table)
    return 0


def _counts(text: str) -> list[int]:
    most = api.broadcasts.MOST_RECIPIENTS
    counts = []
    for word in text.split(","):
        if not (word.isascii() and word.isdigit() and len(word) < 9 and 1 <= int(word) <= most):
            raise UsageError(
                f"are no numbers between 1 and {most}",
                field="recipients",
                value=text,
                hint="for instance 3,7,38",
            )
        counts.append(int(word))
    return counts
