"""Tables of a run, 80 columns wide, and what dry runs print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from elbowroom.cli.console import print_all, print_list, print_wrapped, styled
from elbowroom.cli.tables import LARGEST_LOSSES, ShownTable, new_table, print_table
from elbowroom.quantities import duration, format_size, number, plural, short_cores, span

if TYPE_CHECKING:
    from rich.text import Text

    from elbowroom.draw.figure import TextTable
    from elbowroom.launch.planned_starts import PlannedStart, PlannedStarts
    from elbowroom.machine.topology import Machine
    from elbowroom.measure.prepared import Prepared
    from elbowroom.points.point import Note, Point
    from elbowroom.results.result import PointResult
    from elbowroom.stats.interval import Kept, Side, Summary
    from elbowroom.verbs.joined_runs import JoinedRuns
    from elbowroom.verbs.run_folder import Run

MARKS: tuple[tuple[str, str, Callable[[PointResult], bool]], ...] = (
    (
        "!",
        "no steady state: the values are those of whole windows",
        lambda point: point.status == "not_stable",
    ),
    (
        "~",
        "drift: the baseline at the end of the run differs by 5 % or more",
        lambda point: any(flag.startswith("drift") for flag in point.flags),
    ),
    (
        "?",
        "incomplete or failed: fewer repetitions than planned",
        lambda point: point.status in ("failed", "incomplete"),
    ),
)
"""Beside a point's kernel: the mark, its meaning, and the points that carry it."""


def print_run(run: Run) -> None:
    """Machine, table of points, what is not ok, notes, and the findings that the verdict does not give."""
    machine, verdict, points = run.machine, run.verdict, run.points()
    print_wrapped(f"{run.manifest.plan['name']} on {machine_line(machine)}", style="bold")
    mpi = run.manifest.hello.get("mpi", {})
    simulation = run.manifest.hello.get("virtual")
    if simulation:
        definition = simulation["definition"]
        print_wrapped(
            f"virtual machine, nothing was measured: truth {definition['truth']} ({definition['origin']}), "
            f"noise {100 * simulation['noise']:g} %, seed {simulation['seed']}"
        )
    elif mpi.get("library"):
        library = str(mpi["library"]).split(",")[0].partition("\n")[0]
        print_wrapped(f"{library}, transport {mpi.get('transport', 'unknown')}")
    print()
    print_tables(run.tables)
    shown = {point for table in run.tables for point in table.points}
    rest = [point for point in points if point.id not in shown]
    if rest or not points:
        print_table(_points_table(rest), LARGEST_LOSSES)
    _explain_control(points)
    _explain_marks(points)
    _print_odd(points)
    _print_notes(run.notes)
    further = [finding.text for finding in run.findings if finding.text not in verdict.text]
    if further:
        print()
    print_list(further)


def print_tails(run: Run) -> None:
    """Machine, and the tails of the messages of each point; or why there are none."""
    print_wrapped(f"{run.manifest.plan['name']} on {machine_line(run.machine)}", style="bold")
    print()
    print_tables(run.tail_tables)
    if run.no_tails:
        print_wrapped(f"Tails: n/a, {run.no_tails}")


def print_joined(joined: JoinedRuns) -> None:
    """The verdict of joined runs, what they show, and their tables."""
    verdict = joined.verdict
    print_wrapped(verdict.text, style="bold" if verdict.trusted else "bold yellow")
    print_list(verdict.further_reasons, indent="  ")
    print_list((f.text for f in joined.findings if f.text not in verdict.text), indent="  ")
    print()
    print_tables(joined.tables)


def _print_notes(notes: Sequence[Note]) -> None:
    """What the machine cannot answer, then what there was no time for."""
    for status, head in (("n/a", "Not available on this machine:"), ("left out", "Left out:")):
        chosen = [note for note in notes if note.status == status]
        if chosen:
            print()
            print_wrapped(head)
        alike: dict[str, list[str]] = {}
        for note in chosen:
            alike.setdefault(note.reason, []).append(note.what)
        mark = "n/a, " if status == "n/a" else ""
        for reason, (first, *others) in alike.items():
            more = f" and {plural(len(others), 'other')}" if others else ""
            print_wrapped(f"{first}{more}: {mark}{reason}", indent="  ")


def print_tables(tables: Sequence[TextTable]) -> None:
    """Tables of an experiment, a blank line after each; what columns mean is said once."""
    for index, table in enumerate(tables):
        if table.title:
            print_wrapped(table.title, style="bold")
        columns = new_table(*("<>"[at not in table.left] + name for at, name in enumerate(table.columns)))
        marked = {row for row, _ in table.marked}
        for row, cells in enumerate(table.rows):
            styles = ["red" * ((row, column) in table.marked) for column in range(len(cells))]
            columns.add_row(
                *(styled(cell, style) for cell, style in zip(cells, styles, strict=True)),
                weight=row in marked,
            )
        print_table(columns, "those with losses (red) first:" if marked else "the first")
        print_all(table.sentences(tables[index + 1 :]))
        print()


def _explain_control(points: Iterable[PointResult | Point]) -> None:
    if any(point.role == "control" for point in points):
        print_wrapped("* control: uses no memory, so it shows whether the machine was quiet")


def _marks(point: PointResult) -> str:
    """What the table shows beside a point's kernel when its values need care."""
    return "".join(mark for mark, _, applies in MARKS if applies(point))


def _explain_marks(points: Sequence[PointResult]) -> None:
    for mark, meaning, applies in MARKS:
        if any(applies(point) for point in points):
            print_wrapped(f"{mark} {meaning}")


def _print_odd(points: Sequence[PointResult]) -> None:
    """Statuses and flags; a flag that all points carry is said once."""
    shared = set.intersection(*(set(point.flags) for point in points)) if len(points) > 1 else set()
    if shared:
        print()
        print_wrapped(f"All points: {', '.join(sorted(shared))}")
    odd = [point for point in points if point.status != "ok" or set(point.flags) - shared]
    if odd:
        print()
        print_wrapped("Points that are not ok:")
    alike: dict[str, list[str]] = {}
    for point in odd:
        flags = " ".join(flag for flag in point.flags if flag not in shared)
        what = ", ".join(filter(None, [point.status, point.reason, flags]))
        alike.setdefault(what, []).append(point.id)
    for what, (first, *others) in alike.items():
        more = f" and {plural(len(others), 'other')}" if others else ""
        print_wrapped(f"{first}{more}: {what}", indent="  ")


def machine_line(machine: Machine) -> str:
    """The machine in one line, with what is unusual about it."""
    hosts = f", {machine.hosts} hosts" if machine.hosts > 1 else ""
    name = (machine.name or "this machine") + " (virtual)" * machine.virtual
    first = (
        f"{name}: {machine.model or 'unknown processor'}, {len(machine.cores)} cores, "
        f"{len(machine.nodes)} NUMA node{'s' if len(machine.nodes) != 1 else ''}{hosts}"
    )
    return "; ".join((first, *machine.peculiarities))


def _points_table(points: Sequence[PointResult]) -> ShownTable:
    """Two lines for each point, one for each side; placement is a column only where it varies."""
    places = {(point.comp_node, point.comm_node, point.comm_core) for point in points}
    varied = ["place"] if len(places) > 1 else []
    heads = ("kernel", ">n", ">size", *varied, "side", ">alone", ">together", "unit", ">kept", "95 %")
    table = new_table(*heads)
    for point in points:
        cores = f"{point.n - point.n_other}+{point.n_other}" if point.n_other else str(point.n)
        head = [
            _kernel(point, point.comm_threads) + _marks(point),
            cores,
            format_size(point.size) if point.size else "",
        ]
        if len(places) > 1:
            core = "?" if point.comm_core < 0 else point.comm_core
            head.append(f"{point.comp_node}/{point.comm_node} c{core}")
        sides = [(name, side) for name, side in (("comp", point.comp), ("comm", point.comm)) if _known(side)]
        lines = [
            (*(head if at == 0 else [""] * len(head)), name, *_side_cells(side))
            for at, (name, side) in enumerate(sides)
        ]
        lost = max((1 - side.kept.value for _, side in sides if side.kept is not None), default=0.0)
        table.add_group(lines or [(*head, styled(point.status, "yellow"), "", "", "", "", "")], weight=lost)
    return table


def _known(side: Side) -> bool:
    return side.alone is not None or side.together is not None


def _side_cells(side: Side) -> list[str | Text]:
    unit = next((summary.unit for summary in (side.alone, side.together) if summary is not None), "")
    return [_value(side.alone), _value(side.together), unit, *_kept_cells(side.kept)]


def _value(summary: Summary | None) -> str:
    return "-" if summary is None else number(summary.median, 4)


def _kept_cells(kept: Kept | None) -> list[str | Text]:
    if kept is None:
        return ["-", ""]
    style = "red" if kept.below(0.95) else ""
    ends = "" if kept.bounds is None else span(*(f"{end:.2f}" for end in kept.bounds))
    return [styled(f"{kept.value:.2f}", style), ends]


def _kernel(point: PointResult | Point, threads: int) -> str:
    """What runs in a point."""
    if label := point.workload.labels(threads).what:
        return label
    marks = "" if point.cursor == 1 else f" x{point.cursor}"
    return point.kernel + marks + "*" * (point.role == "control")


def print_dry_run(prepared: Prepared) -> None:
    """Points, time, command lines and notes of what would be done."""
    plan, points = prepared.plan, prepared.expansion.points
    print_wrapped(f"{plan.name}: {plan.question}", style="bold")
    print_wrapped(machine_line(prepared.machine))
    print()
    table = new_table("kernel", ">n", ">size", "metric", ">comp", ">comm", "~cores")
    for point in points:
        comm = short_cores(point.comm_cores or (point.comm_core,))
        cores = f"{short_cores(point.comp_cores) or '-'} beside {comm}"
        table.add_row(
            _kernel(point, len(point.comm_cores)),
            str(point.n),
            format_size(point.size) if point.size else "",
            point.workload.facts.quantity or point.metric,
            str(point.comp_node),
            str(point.comm_node),
            cores,
        )
    print_table(table)
    _explain_control(points)
    print()
    count = f"{len(points)} points, {plan.repetitions} repetitions each, {len(prepared.units)} in all"
    virtual = " (virtual: nothing is measured)" * prepared.machine.virtual
    if prepared.budget:
        most = f"at most {plan.repetitions} repetitions"
        print_wrapped(f"{len(points)} points, {most}: at most {duration(prepared.budget)} in all")
    else:
        print_wrapped(f"{count}: about {duration(prepared.seconds)}{virtual}")
    print_builds(prepared.builds)
    for command in prepared.commands:
        # One line each, however long: it is there to be copied.
        print(command)
    for note in prepared.expansion.notes:
        print_wrapped(f"{note.what}: {note.status}, {note.reason}")


def print_builds(builds: Sequence[str]) -> None:
    """What would be built before anything is started."""
    for text in builds:
        print_wrapped(f"to build first: {text}")


def print_planned(planned: PlannedStarts) -> None:
    """Prints what would be built and started, in order."""
    print_builds(planned.builds)
    for start in planned.starts:
        print_wrapped(f"{start.what}: {_extent(start)}", style="bold")
        for command in start.commands:
            # One line, however long: it is there to be copied.
            print(command)
    if not planned.starts:
        print_wrapped("Nothing would be started.")


def _extent(start: PlannedStart) -> str:
    if start.seconds is not None:
        often = "" if start.times == 1 else f"{start.times} times, "
        return f"{often}about {duration(start.seconds)} in all"
    return "as long as it takes" if start.times == 1 else f"{start.times} times, each as long as it takes"
