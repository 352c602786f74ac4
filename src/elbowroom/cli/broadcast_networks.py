"""`elbowroom broadcast tune`, and the options of a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import Output, command, json_option
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, number, parse_bandwidth, parse_size

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
            bandwidth=parse_bandwidth(given["bandwidth"] or BANDWIDTH, "bandwidth"),
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
