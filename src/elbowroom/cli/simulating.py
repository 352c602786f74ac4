"""`elbowroom simulate`: a node line by line, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import _json, group
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.simulating import Questions, Simulated
    from elbowroom.model.simulated import Curve, Finding, Latency, Row
    from elbowroom.virtual.request_node import Node

SCHEMA, VERSION = "elbowroom/simulate", 1
_ANYWHERE = {"machine", "settings", "seed", "out", "as_json", "questions", "parameters"}


@group.command()
@click.option(
    "--machine", metavar="MACHINE", required=True, help="henri (see `machine list`), FILE.toml, FILE.xml."
)
@click.option("--cores", metavar="LIST", help="Numbers of computing cores: 1-18; default: all.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computations' data; default 0.")
@click.option("--comm-node", type=int, metavar="NODE", help="That of the communications' data; default 0.")
@click.option(
    "--kernel",
    type=click.Choice(["read", "write", "nt", "copy"]),
    help="Loads, stores, stores past the caches (default), or loads and stores.",
)
@click.option("--intensity", type=float, metavar="FLOP/B", help="Arithmetic intensity; default 0.")
@click.option(
    "--direction", type=click.Choice(["receive", "send", "both"]), help="Of the messages; default receive."
)
@click.option("--sizes", metavar="S,S", help="Of the messages: 4KiB,64MB; default: without end.")
@click.option("--comm-threads", type=int, metavar="K", help="Communication threads; default 1.")
@click.option("--far-thread", is_flag=True, default=None, help="They are not on the NIC's socket.")
@click.option("--copy", type=float, metavar="MB/s", help="An accelerator writes to --comp-node as well.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Another value of one of --parameters."
)
@click.option("--parameters", is_flag=True, help="List the node's numbers, with where they come from.")
@click.option(
    "--questions", is_flag=True, help="Who loses first, at which n, is a minimum kept, controller or link."
)
@click.option("--seed", type=click.IntRange(min=0, max=2**32 - 1), default=1, show_default=True)
@click.option("-o", "--out", metavar="FIGURE", help="Draw .png or .svg; with --questions a folder of them.")
@_json
def simulate(**options: Any) -> int:
    """Simulate a node line by line (64 B): who waits where, who loses.

    Nothing is measured, and nobody is told to favour anybody; see docs/simulate.md.
    """
    from elbowroom import api

    settings = _settings(options["settings"])
    if options["parameters"] or options["questions"]:
        _refuse(options)
    if options["parameters"]:
        node = api.simulated_node(options["machine"], settings)
        print_json(_node_object(node)) if options["as_json"] else _print_parameters(node)
        return 0
    if options["questions"]:
        answered = api.simulate_questions(
            options["machine"], options["out"], settings=settings, seed=options["seed"]
        )
        print_json(_questions_object(answered)) if options["as_json"] else _print_questions(answered)
        return 0
    found = api.simulate(options["machine"], settings=settings, seed=options["seed"], **_asked(options))
    if options["out"] is not None:
        from elbowroom.api.predicting import save_figure

        save_figure(api.simulated_figure(found), options["out"])
    print_json(_object(found)) if options["as_json"] else _print(found, options["out"])
    return 0


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """What was said, as the Python interface takes it."""
    from elbowroom.plan.sizes import parse_cores, parse_size

    found = {
        name: options[name]
        for name in (
            "comp_node", "comm_node", "kernel", "intensity", "direction", "comm_threads", "far_thread",
            "copy",
        )
        if options[name] is not None
    }  # fmt: skip
    if options["cores"] is not None:
        found["cores"] = parse_cores(options["cores"], "cores")
    if options["sizes"] is not None:
        found["sizes"] = tuple(parse_size(part) for part in options["sizes"].split(","))
    return found


def _settings(words: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                "is no KEY=VALUE", field="set", value=word, mend="for instance nic_write_credits=92"
            )
        found.append((name.strip(), value.strip()))
    return found


def _refuse(options: dict[str, Any]) -> None:
    """The questions choose loads themselves, and parameters have none."""
    which = "parameters" if options["parameters"] else "questions"
    given = [name for name, value in options.items() if name not in _ANYWHERE and value is not None]
    if options["parameters"] and options["out"] is not None:
        given.append("out")
    if given:
        raise UsageError(
            f"does not go with --{which}",
            field=given[0],
            value=options[given[0]],
            mend="leave one of the two out",
        )


def _object(found: Simulated) -> dict[str, Any]:
    import msgspec

    return {
        "schema": SCHEMA,
        "version": VERSION,
        "virtual": True,
        "node": msgspec.to_builtins(found.node),
        "curves": [
            {**msgspec.to_builtins(curve), "finding": _finding_object(seen)}
            for curve, seen in zip(found.curves, found.findings, strict=True)
        ],
    }


def _finding_object(seen: Finding) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(seen)
    return {"first": seen.first, **found}


def _node_object(node: Node) -> dict[str, Any]:
    import msgspec

    from elbowroom.virtual.request_node import PARAMETERS

    return {
        "schema": "elbowroom/simulated-node",
        "version": VERSION,
        "virtual": True,
        "machine": msgspec.to_builtins(node.shape),
        "parameters": [
            {**msgspec.to_builtins(item), "value": getattr(node, item.name)} for item in PARAMETERS
        ],
    }


def _questions_object(found: Questions) -> dict[str, Any]:
    import msgspec

    return {
        "schema": "elbowroom/simulated-questions",
        "version": VERSION,
        "virtual": True,
        "node": msgspec.to_builtins(found.node),
        "answers": [answer._asdict() for answer in found.answers],
        "swept": [
            {
                **one.sweep._asdict(),
                "value": one.value,
                "comp_kept": one.curve.rows[-1].comp_kept,
                "comm_kept": one.curve.rows[-1].comm_kept,
                "finding": _finding_object(one.finding),
            }
            for one in found.swept
        ],
        "files": [str(path) for path in found.files],
    }


def _print_parameters(node: Node) -> None:
    from elbowroom.cli.model_tables import shape_line
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.draw.numbers import number
    from elbowroom.virtual.request_node import PARAMETERS

    _say(shape_line(node.shape), style="bold")
    print()
    table = _table(
        ("parameter", ""), ("value", "right"), ("", ""), ("what it is; where it comes from", "wrap")
    )
    for item in PARAMETERS:
        value = getattr(node, item.name)
        told = value if isinstance(value, str) else "-" if value is None else number(value, 5)
        table.add_row(item.name, told, item.unit, f"{item.text}; {item.source}")
    console().print(table)


def _print(found: Simulated, out: str | None) -> None:
    from elbowroom.cli.model_tables import shape_line
    from elbowroom.cli.tables import _say
    from elbowroom.plan.sizes import format_size
    from elbowroom.predict.simulated_questions import who

    _say(shape_line(found.node.shape), style="bold")
    _say("Simulated line by line: nothing is measured.")
    for curve, seen in zip(found.curves, found.findings, strict=True):
        size = curve.rows[0].size
        messages = "messages without end" if size is None else f"messages of {format_size(size)}"
        print()
        _say(f"Computations on node {curve.comp_node}, {messages} on node {curve.comm_node}", style="bold")
        _print_curve(curve)
        _say(f"Loses first: {who(seen, curve)}.")
        _say(f"Most in use there: {seen.station}, {seen.use:.0%} of the time.")
    if out is not None:
        print()
        _say(f"figure: {out}")


def _print_curve(curve: Curve) -> None:
    from elbowroom.cli.tables import _table, console
    from elbowroom.draw.numbers import number

    table = _table(
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


def _latency(seen: Latency | None) -> str:
    return "-" if seen is None else f"{seen.together_mean:.0f}, {seen.together_d9:.0f}"


def _busiest(row: Row) -> str:
    name, use = max(row.stations.items(), key=lambda item: item[1])
    return f"{name.replace('controller of ', '')} {use:.0%}"


def _print_questions(found: Questions) -> None:
    from elbowroom.cli.model_tables import shape_line
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.draw.numbers import number

    _say(shape_line(found.node.shape), style="bold")
    _say("Simulated line by line, memset past the caches beside messages that arrive: nothing is measured.")
    for answer in found.answers:
        print()
        _say(answer.question, style="bold")
        for sentence in answer.sentences:
            _say(f"- {sentence}", indent="  ")
    print()
    _say("What decides, with all cores (kept) and from which n on", style="bold")
    table = _table(
        ("parameter", ""), ("kernel", ""), ("data", ""), ("value", "right"),
        ("comp\nkept", "right"), ("\nfrom", "right"), ("comm\nkept", "right"), ("\nfrom", "right"),
        ("loses first", ""),
    )  # fmt: skip
    for one in found.swept:
        row, seen = one.curve.rows[-1], one.finding
        table.add_row(
            one.sweep.parameter,
            one.sweep.kernel,
            "far" if one.sweep.far else "near",
            number(one.value),
            f"{row.comp_kept:.2f}",
            str(seen.comp_from or "-"),
            f"{row.comm_kept:.2f}",
            str(seen.comm_from or "-"),
            seen.first,
        )
    console().print(table)
    for path in found.files:
        _say(f"figure: {path}")
