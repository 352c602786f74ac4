"""Tables of 80 columns for people. Colours only on a terminal, none with NO_COLOR."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from elbowroom.campaign.progress import duration
from elbowroom.draw.numbers import number, size
from elbowroom.plan.sizes import format_cores

if TYPE_CHECKING:
    from elbowroom.api.runs import Run
    from elbowroom.campaign.running import Prepared
    from elbowroom.machine.doctor import Check
    from elbowroom.machine.topology import Machine
    from elbowroom.plan.point import Point
    from elbowroom.plan.reading import Plan
    from elbowroom.stats.comparing import Change
    from elbowroom.stats.result import Kept, PointResult, Side, Summary

WIDTH = 80


def console() -> Console:
    """Writes to stdout, 80 columns wide wherever it goes."""
    return Console(file=sys.stdout, width=WIDTH, highlight=False, soft_wrap=False)


def _say(text: str, indent: str = "", style: str = "") -> None:
    lines = textwrap.wrap(text, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    for line in lines or [""]:
        console().print(Text(indent + line, style=style), soft_wrap=True)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=justify != "wrap")
    return table


def print_run(run: Run) -> None:
    """Machine, verdict, findings, table of points, what is not ok, notes."""
    machine, verdict, points = run.machine, run.verdict, run.points()
    _say(f"{run.manifest.plan['name']} on {machine_line(machine)}", style="bold")
    mpi = run.manifest.hello.get("mpi", {})
    simulation = run.manifest.hello.get("virtual")
    if simulation:
        definition = simulation["definition"]
        _say(
            f"virtual machine, nothing was measured: truth {definition['truth']} ({definition['origin']}), "
            f"noise {100 * simulation['noise']:g} %, seed {simulation['seed']}"
        )
    elif mpi:
        library = str(mpi.get("library", "")).split(",")[0].splitlines()[0]
        _say(f"{library}, transport {mpi.get('transport', 'unknown')}")
    print()
    colour = "yellow" if not verdict.trusted else ("red" if verdict.interference else "green")
    _say(verdict.text, style=f"bold {colour}")
    for reason in verdict.reasons:
        _say(f"- {reason}", indent="  ")
    for finding in run.findings:
        if finding.text not in verdict.text:
            _say(f"- {finding.text}", indent="  ")
    print()
    told = _print_steps(run)
    _print_kernels(points)
    accesses = _print_accesses(run)
    rest = [point for point in points if not (told and point.application) and not (accesses and point.series)]
    if rest or not points:
        console().print(_points_table(rest))
    _explain_control(points)
    _print_odd(points)
    if run.manifest.notes:
        print()
        _say("This machine cannot answer:")
    for note in run.manifest.notes:
        _say(f"{note.what}: {note.status}, {note.reason}", indent="  ")


def _print_steps(run: Run) -> bool:
    """The table of an application's steps, which tells its points; False where there is none."""
    from elbowroom.api.diffusion import step_table

    table = step_table(run)
    if table:
        from elbowroom.cli.step_tables import print_steps

        print_steps(table, run.machine.virtual)
        print()
    return bool(table)


def _print_kernels(points: Sequence[PointResult]) -> None:
    """The table of a run of `kernels`, above that of its points; nothing where there is none."""
    from elbowroom.cli.kernel_tables import print_kernels
    from elbowroom.experiments.kernel_rows import rows

    table = rows(points)
    if table:
        print_kernels(table)
        print()


def _print_accesses(run: Run) -> bool:
    """The tables of extraneous accesses, which tell their points; False where there are none."""
    from elbowroom.api.accesses import accesses_tables

    tables = accesses_tables(run)
    if tables:
        from elbowroom.cli.accesses_tables import print_accesses

        print_accesses(tables)
    return bool(tables)


def _explain_control(points: Iterable[PointResult | Point]) -> None:
    if any(point.role == "control" for point in points):
        _say("* control: uses no memory, so it tells whether the machine was quiet")


def _print_odd(points: Sequence[PointResult]) -> None:
    """Statuses and flags; a flag that all points carry is said once."""
    shared = set.intersection(*(set(point.flags) for point in points)) if len(points) > 1 else set()
    if shared:
        print()
        _say(f"Every point: {', '.join(sorted(shared))}")
    odd = [point for point in points if point.status != "ok" or set(point.flags) - shared]
    if odd:
        print()
        _say("Not simply ok:")
    for point in odd:
        flags = " ".join(flag for flag in point.flags if flag not in shared)
        _say(f"{point.id}: {', '.join(filter(None, [point.status, point.reason, flags]))}", indent="  ")


def machine_line(machine: Machine) -> str:
    """The machine in one line."""
    hosts = f", {machine.hosts} hosts" if machine.hosts > 1 else ""
    name = (machine.name or "this machine") + " (virtual)" * machine.virtual
    return (
        f"{name}: {machine.model or 'unknown processor'}, {len(machine.cores)} cores, "
        f"{len(machine.nodes)} NUMA node{'s' if len(machine.nodes) != 1 else ''}{hosts}"
    )


def _points_table(points: Sequence[PointResult]) -> Table:
    """Two lines for each point, one for each side; placement is a column only where it varies."""
    places = {(point.comp_node, point.comm_node, point.comm_core) for point in points}
    columns = [("kernel", ""), ("n", "right"), ("size", "right")]
    if len(places) > 1:
        columns.append(("place", ""))
    columns += [
        ("side", ""),
        ("alone", "right"),
        ("together", "right"),
        ("unit", ""),
        ("kept", "right"),
        ("95 %", ""),
    ]
    table = _table(*columns)
    for point in points:
        cores = f"{point.n - point.n_other}+{point.n_other}" if point.n_other else str(point.n)
        head = [_kernel(point), cores, size(point.size) if point.size else ""]
        if len(places) > 1:
            core = "?" if point.comm_core < 0 else point.comm_core
            head.append(f"{point.comp_node}/{point.comm_node} c{core}")
        first = True
        for name, side in (("comp", point.comp), ("comm", point.comm)):
            if side.alone is None and side.together is None:
                continue
            table.add_row(*(head if first else [""] * len(head)), name, *_side_cells(side))
            first = False
        if first:
            table.add_row(*head, Text(point.status, style="yellow"), "", "", "", "", "")
    return table


def _kernel(point: PointResult) -> str:
    if point.application is not None:
        return point.application.label(point.comm_threads)
    if point.program is not None:
        return point.program.label()
    if point.extraneous is not None:
        return point.extraneous.label()
    marks = "" if point.cursor == 1 else f" x{point.cursor}"
    return point.kernel + marks + ("*" if point.role == "control" else "")


def _side_cells(side: Side) -> list[str | Text]:
    unit = next((summary.unit for summary in (side.alone, side.together) if summary is not None), "")
    cells = [_value(side.alone), _value(side.together), unit, *_kept_cells(side.kept)]
    if side.alone is not None and side.alone.count == 1:
        cells[-1] = ""  # one sample has no interval
    return cells


def _value(summary: Summary | None) -> str:
    return "-" if summary is None else number(summary.median, 4)


def _kept_cells(kept: Kept | None) -> list[str | Text]:
    if kept is None:
        return ["-", ""]
    style = "red" if kept.high < 0.95 else ""
    return [Text(f"{kept.value:.2f}", style=style), f"{kept.low:.2f}-{kept.high:.2f}"]


def _planned(point: Point) -> str:
    """What runs in a point."""
    if point.application is not None:
        return point.application.label(len(point.comm_cores))
    labelled = point.program or point.extraneous
    return point.kernel + "*" * (point.role == "control") if labelled is None else labelled.label()


def print_dry_run(prepared: Prepared) -> None:
    """Points, time, command lines and notes of what would be done."""
    plan, points = prepared.plan, prepared.expansion.points
    _say(f"{plan.name}: {plan.question}", style="bold")
    _say(machine_line(prepared.machine))
    print()
    table = _table(
        ("kernel", ""),
        ("n", "right"),
        ("size", "right"),
        ("metric", ""),
        ("comp", "right"),
        ("comm", "right"),
        ("cores", ""),
    )
    for point in points:
        comm = format_cores(point.comm_cores or (point.comm_core,))
        cores = f"{format_cores(point.comp_cores) or '-'} beside {comm}"
        app = point.application
        table.add_row(
            _planned(point),
            str(point.n),
            size(point.size) if point.size else "",
            point.metric if app is None else "step",
            str(point.comp_node),
            str(point.comm_node),
            cores,
        )
    console().print(table)
    _explain_control(points)
    print()
    count = f"{len(points)} points, {plan.repetitions} repetitions, {len(prepared.units)} units"
    virtual = " (virtual: nothing is measured)" * prepared.machine.virtual
    _say(f"{count}: about {duration(prepared.seconds)}{virtual}")
    for command in prepared.commands:
        # One line each, however long: it is there to be copied.
        print(command)
    for note in prepared.expansion.notes:
        _say(f"{note.what}: {note.status}, {note.reason}")


def dry_run_object(prepared: Prepared) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": "elbowroom/dry-run",
        "version": 1,
        "plan": msgspec.to_builtins(prepared.plan),
        "machine": msgspec.to_builtins(prepared.machine),
        "points": [{"id": point.id, **msgspec.to_builtins(point)} for point in prepared.expansion.points],
        "units": len(prepared.units),
        "seconds": prepared.seconds,
        "measured_seconds": prepared.measured_seconds,
        "commands": list(prepared.commands),
        "notes": msgspec.to_builtins(prepared.expansion.notes),
    }


def print_compare(a: Run, b: Run, changes: Sequence[Change]) -> None:
    """Each point both runs have, and below it a line for each of its values."""
    for name, run in (("a", a), ("b", b)):
        _say(f"{name} = {run.path}{' (virtual)' * run.machine.virtual}")
    for point, members in itertools.groupby(changes, key=lambda change: change.point):
        print()
        _say(point, style="bold")
        console().print(_changes_table(list(members)))
    print()
    significant = sum(change.significant for change in changes)
    _say(
        f"{len(changes)} values in both runs, {significant} changed significantly (95 % interval without 0)."
    )
    _say("Less is better for durations (us), more for everything else.")


def _changes_table(changes: Sequence[Change]) -> Table:
    """Columns as wide for every point, so that they line up down the page."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
    widths = (
        ("left", 6),
        ("left", 8),
        ("left", 7),
        ("right", 8),
        ("right", 8),
        ("right", 8),
        ("left", 18),
        ("left", 8),
    )
    for justify, width in widths:
        table.add_column(justify="right" if justify == "right" else "left", width=width, no_wrap=True)
    for change in changes:
        unit = change.metric.partition("(")[2].rstrip(")")
        table.add_row(
            f"  {change.side}",
            change.phase,
            unit,
            number(change.a, 3),
            number(change.b, 3),
            Text(f"{change.change:+.1%}", style="bold" if change.significant else ""),
            f"{change.low:+.1%}..{change.high:+.1%}",
            {"a": "a better", "b": "b better"}.get(change.better, "same"),
        )
    return table


def compare_object(a: Run, b: Run, changes: Sequence[Change]) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": "elbowroom/compare",
        "version": 1,
        "a": {"run": str(a.path), "trusted": a.verdict.trusted, "virtual": a.machine.virtual},
        "b": {"run": str(b.path), "trusted": b.verdict.trusted, "virtual": b.machine.virtual},
        "changes": msgspec.to_builtins(changes),
        "significant": sum(change.significant for change in changes),
    }


def print_doctor(checks: Sequence[Check]) -> None:
    """One line for each thing looked at, with its mend below."""
    styles = {"ok": "green", "warn": "yellow", "n/a": "dim"}
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        head = f"{check.status:<5}{check.name:<{width}}  "
        lines = textwrap.wrap(check.text, WIDTH - len(head), break_on_hyphens=False) or [""]
        first = Text(head + lines[0])
        first.stylize(styles[check.status], 0, 4)
        console().print(first, soft_wrap=True)
        for line in lines[1:]:
            console().print(Text(" " * len(head) + line), soft_wrap=True)
        if check.mend:
            _say(f"mend: {check.mend}", indent=" " * len(head))


def print_plans(plans: Iterable[Plan]) -> None:
    """Name and question of each plan."""
    table = _table(("plan", ""), ("question", "wrap"))
    for plan in plans:
        table.add_row(plan.name, plan.question)
    console().print(table)
