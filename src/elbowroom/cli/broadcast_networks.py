"""`elbowroom broadcast areas` and `broadcast tune`, and the options of a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import FIGURE, Output, command, json_option
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
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help="Measured: what `broadcast bench --rising --json` printed. Default: simulated.",
)
@click.option("--recipients", type=int, metavar="N", help="Ranks that receive; default: 38.")
@click.option("--size", metavar="SIZE", help="Bytes of the data; default: 409KiB.")
@network_options()
@click.option(
    "--tree",
    "trees",
    multiple=True,
    metavar="KIND",
    help="May be repeated: a panel for each; default: flat, binary, binomial.",
)
@click.option(
    "--segment",
    metavar="SIZE",
    help="Segments that ranks forward one by one; default: 32 KiB for two, else whole.",
)
@click.option(
    "--priorities",
    metavar="LIST",
    help="rising (with the rank; default), equal, or one for each recipient: 3,0,1.",
)
@click.option("-o", "--out", type=FIGURE, metavar="FILE", help="Draw the areas: .png or .svg.")
@json_option
def areas(source: str | None, out: str | None, as_json: bool, **options: Any) -> int:
    """Show when each rank has the data, and when it has forwarded them.

    The areas between both times over the rank, by tree (Figs 4.5 and 4.6 of the thesis): simulated, or of
    measured broadcasts (--from).
    """
    found = _simulated_areas(options) if source is None else _measured_areas(source, options)
    if out is not None:
        api.broadcasts.save_areas(found, out)
    if as_json:
        print_json(found)
        return 0
    print_wrapped(found.title, style="bold")
    broadcasts = found.broadcasts
    table = new_table(
        ("rank", "right"), ("priority", "right"), *((f"{one.tree}, µs", "right") for one in broadcasts)
    )
    for rank in range(1, broadcasts[0].recipients + 1):
        priority = found.priorities[rank - 1] if found.priorities else 0
        spans = (f"{one.received_us[rank - 1]:.0f} - {one.released_us[rank]:.0f}" for one in broadcasts)
        table.add_row(str(rank), str(priority), *spans)
    console().print(table)
    return 0


def _simulated_areas(options: dict[str, Any]) -> api.broadcasts.AreasDocument:
    network = network_of(options)
    recipients = 38 if options["recipients"] is None else options["recipients"]
    request = api.broadcasts.BroadcastRequest(
        recipients=recipients,
        size=parse_size(options["size"] or "409KiB", "size"),
        bandwidth=network.bandwidth,
        latency=network.latency,
        overhead=network.overhead,
        segment=0 if options["segment"] is None else parse_size(options["segment"], "segment"),
        priorities=api.broadcasts.parse_priorities(options["priorities"] or "rising", recipients),
    )
    return api.broadcasts.simulate_areas(options["trees"] or ("flat", "binary", "binomial"), request)


def _measured_areas(source: str, options: dict[str, Any]) -> api.broadcasts.AreasDocument:
    """All other options say what to simulate."""
    for name, value in options.items():
        if value not in (None, ()):
            raise UsageError(
                "is of a simulated broadcast, and --from names measured ones",
                field="tree" if name == "trees" else name,
                value=value if isinstance(value, str | int) else ",".join(value),
                hint="leave one out",
            )
    return api.broadcasts.load_areas(source)


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
