"""Where does the loss come from? All that `explain` contrasts, at the same cores (METHOD.md, rule 20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.wording import Values, nothing
from elbowroom.explain import figures as drawn
from elbowroom.explain import words
from elbowroom.explain.explaining import of_results
from elbowroom.explain.explanation import Case, Explanation, Told
from elbowroom.machine.topology import Machine
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.kernels import find
from elbowroom.plan.placing import near_node, shares_core, usable
from elbowroom.plan.point import Expansion, Note, Point
from elbowroom.plan.reading import Plan
from elbowroom.stats.curves import affected
from elbowroom.stats.result import Finding, PointResult

Level = Literal["quiet", "interference", "n/a", "note"]


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The plan's points, all cores of the NIC's socket so that data near the NIC are local to who moves them;
    only kernels that move memory have their data far from it too.
    """
    expansion = multiply(plan, machine if plan.comp_cores else one_socket(machine))
    near = near_node(machine)
    points = tuple(point for point in expansion.points if point.comp_node == near or _moves(point))
    notes = list(machine_notes(machine))
    if len({point.comp_node for point in points}) == 1 and machine.packages < 2:
        notes.append(Note(what="the link between sockets", reason="this machine has one socket"))
    return with_notes(msgspec.structs.replace(expansion, points=points), notes)


def _moves(point: Point) -> bool:
    kernel = find(point.kernel)
    return kernel is not None and kernel.moves_memory


def one_socket(machine: Machine) -> Machine:
    """The machine as if only the NIC's socket might be used; all of it where that left the communicating
    ranks no cores of their own.
    """
    package = next((node.package for node in machine.nodes if node.number == near_node(machine)), None)
    inside = tuple(core.number for core in usable(machine) if core.package == package)
    narrowed = msgspec.structs.replace(machine, allowed=inside)
    fewer = len(inside) < 2 or (shares_core(narrowed) and not shares_core(machine))
    return machine if fewer else narrowed


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """What both sides lose, a sentence for each source, then the other numbers of cores and sizes."""
    found = of_results(results, machine)
    if found is None or not found.shown:
        return (nothing("contrast", "Contrasts"),)
    kernel = found.shown[0].kernel
    others = [case for case in found.cases if case.kernel == kernel and case not in found.shown]
    return (_answer(found), *(_source(item) for item in found.told), *(_other(case) for case in others))


def _answer(found: Explanation) -> Finding:
    return Finding(
        key="answer",
        level=_level(*found.shown),
        text=" ".join(found.summary),
        points=tuple(case.point for case in found.shown),
    )


def _source(item: Told) -> Finding:
    level: Level = "n/a" if item.status in ("n/a", "not measured") else "note"
    values: Values = {"share": item.share, "status": item.status}
    key = "source-" + "-".join(source.replace(" ", "-") for source in item.sources)
    return Finding(key=key, level=level, text=item.text, values=values)


def _other(case: Case) -> Finding:
    return Finding(
        key=f"case-{case.point}", level=_level(case), text=words.shares_text(case), points=(case.point,)
    )


def _level(*cases: Case) -> Level:
    lost = [affected(split.kept) for case in cases for split in case.splits]
    return "interference" if any(lost) else "quiet"


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """What each side keeps, source by source, and the blue and red points."""
    found = of_results(results, machine)
    return () if found is None else drawn.figures(found.shown, found.cases)


EXPERIMENT = Experiment(
    name="contrast",
    question="Where does the loss come from: frequency, caches, memory controller, link?",
    expand=expand,
    findings=findings,
    figures=figures,
)
