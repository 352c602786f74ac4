"""`elbowroom simulate`: a node line by line, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.model_tables import shape_line
from elbowroom.cli.options import FIGURE, command, json_option
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size, number, parse_cores, parse_size

if TYPE_CHECKING:
    from elbowroom.api.simulation import (
        Curve,
        Latency,
        Simulated,
        SimulatedNode,
        SimulatedRow,
    )


_ANYWHERE = {"machine", "settings", "seed", "out", "as_json", "parameters"}


@command()
@click.option(
    "--machine", metavar="MACHINE", required=True, help="henri (see `machine list`), FILE.toml, FILE.xml."
)
@click.option("--cores", metavar="LIST", help="Numbers of computing cores: 1-18; default: all.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computation's data; default 0.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the message buffers; default 0.")
@click.option(
    "--kernel",
    type=click.Choice(["read", "write", "nt", "copy"]),
    help="Kernel: loads, stores, non-temporal stores (default), or loads and stores.",
)
@click.option("--intensity", type=float, metavar="FLOP/B", help="Arithmetic intensity; default 0.")
@click.option(
    "--direction",
    type=click.Choice(["receive", "send", "both"]),
    help="Direction of the messages; default receive.",
)
@click.option("--sizes", metavar="S,S", help="Message sizes: 4KiB,64MB; default: one endless message.")
@click.option("--comm-threads", type=int, metavar="K", help="Number of communication threads; default 1.")
@click.option(
    "--far-thread",
    is_flag=True,
    default=None,
    help="Place the communication threads on the socket without the NIC.",
)
@click.option(
    "--copy", type=float, metavar="MB/s", help="Bandwidth that an accelerator also writes to --comp-node."
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set one of the --parameters.")
@click.option("--parameters", is_flag=True, help="List the parameters of the node with their sources.")
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**32 - 1),
    default=1,
    show_default=True,
    help="Seed of random numbers.",
)
@click.option("-o", "--out", metavar="FIGURE", help="Draw a figure (.png, .svg).")
@json_option
def simulate(**options: Any) -> int:
    """Simulate every memory request (64 B) of a node: what waits where, and which side loses.

    Nothing is measured, and no arbiter prefers a side (`elbowroom help simulate`).
    """
    settings = _settings(options["settings"])
    if options["out"] is not None:
        FIGURE.convert(options["out"], None, None)
    if options["parameters"]:
        _refuse(options)
        node = api.simulated_node(options["machine"], settings)
        print_json(api.simulation.node_document(node)) if options["as_json"] else _print_parameters(node)
        return 0
    simulated = api.simulate(
        options["machine"], settings=settings, seed=options["seed"], **_arguments(options)
    )
    if options["out"] is not None:
        api.save_figure(api.simulated_figure(simulated), options["out"])
    if options["as_json"]:
        print_json(api.simulation.simulation_document(simulated))
    else:
        _print(simulated, options["out"])
    return 0


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """What was said, as the Python interface takes it."""
    arguments = {
        name: options[name]
        for name in (
            "comp_node", "comm_node", "kernel", "intensity", "direction", "comm_threads", "far_thread",
            "copy",
        )
        if options[name] is not None
    }  # fmt: skip
    if options["cores"] is not None:
        arguments["cores"] = parse_cores(options["cores"], "cores")
    if options["sizes"] is not None:
        arguments["sizes"] = tuple(parse_size(part) for part in options["sizes"].split(","))
    return arguments


def _settings(words: Sequence[str]) -> list[tuple[str, str]]:
    settings = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                "is not KEY=VALUE", field="set", value=word, hint="for instance nic_write_credits=92"
            )
        settings.append((name.strip(), value.strip()))
    return settings


def _refuse(options: dict[str, Any]) -> None:
    """Parameters have no load."""
    given = [name for name, value in options.items() if name not in _ANYWHERE and value is not None]
    if options["out"] is not None:
        given.append("out")
    if given:
        raise UsageError(
            "cannot be combined with --parameters",
            field=given[0],
            value=options[given[0]],
            hint="leave one of the two out",
        )


def _print_parameters(node: SimulatedNode) -> None:
    print_wrapped(shape_line(node.shape), style="bold")
    print()
    table = new_table(
        ("parameter", ""), ("value", "right"), ("", ""), ("what it is; where it comes from", "wrap")
    )
    for item in api.simulation.PARAMETERS:
        value = getattr(node, item.name)
        shown = value if isinstance(value, str) else "-" if value is None else number(value, 5)
        table.add_row(item.name, shown, item.unit, f"{item.text}; {item.source}")
    console().print(table)


def _print(simulated: Simulated, out: str | None) -> None:
    print_wrapped(shape_line(simulated.node.shape), style="bold")
    print_wrapped("Simulated request by request: nothing is measured.")
    for curve, finding in zip(simulated.curves, simulated.findings, strict=True):
        size = curve.rows[0].size
        messages = "one endless message" if size is None else f"messages of {format_size(size)}"
        print()
        print_wrapped(
            f"Computations on node {curve.comp_node}, {messages} on node {curve.comm_node}", style="bold"
        )
        _print_curve(curve)
        print_wrapped(f"Loses first: {api.simulation.who(finding, curve)}.")
        print_wrapped(f"Most in use there: {finding.station}, {finding.use:.0%} of the time.")
    if out is not None:
        print()
        print_wrapped(f"figure: {out}")


def _print_curve(curve: Curve) -> None:
    table = new_table(
        ("n", "right"), ("comp\nMB/s", "right"), ("\nkept", "right"),
        ("comm\nMB/s", "right"), ("\nkept", "right"), ("comp's lines\nmean, d9 ns", "right"),
        ("comm's lines\nmean, d9 ns", "right"), ("most in use", "wrap"),
    )  # fmt: skip
    for row in curve.rows:
        table.add_row(
            str(row.n),
            number(row.comp_together),
            f"{row.comp_kept:.2f}",
            number(row.comm_together),
            f"{row.comm_kept:.2f}",
            _latency(row.latency("computation")),
            _latency(row.latency("receive", "send")),
            _busiest(row),
        )
    console().print(table)


def _latency(latency: Latency | None) -> str:
    return "-" if latency is None else f"{latency.together_mean:.0f}, {latency.together_d9:.0f}"


def _busiest(row: SimulatedRow) -> str:
    name, use = max(row.stations.items(), key=lambda item: item[1])
    return f"{name.replace('controller of ', '')} {use:.0%}"
