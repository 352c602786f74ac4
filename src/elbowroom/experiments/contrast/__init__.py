"""Where does the loss come from? All that `explain` contrasts, at the same cores (method.md, rule 20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import Values, nothing
from elbowroom.experiments.experiment import Experiment
from elbowroom.explain import figures as drawn
from elbowroom.explain import words
from elbowroom.explain.explainer import elsewhere, of_results
from elbowroom.explain.explanation import ExplainedPoint, SourceStatement
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import find
from elbowroom.plan.placement import near_node, shares_core, usable
from elbowroom.points.point import Expansion, Note, Point
from elbowroom.results.curves import affected
from elbowroom.results.result import Finding, PointResult

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
    explanation = of_results(results, machine)
    if explanation is None or not explanation.shown:
        return (nothing("contrast", "Contrasts"),)
    first = explanation.shown[0]
    others = [
        case
        for case in explanation.cases
        if case is not first
        and (case.kernel == first.kernel or (_level(case) == "interference" and _beside(case, first)))
    ]
    counted = Finding(key="regimes", level="note", text=words.regimes(explanation.cases))
    return (
        _answer(first, explanation.cases),
        *(_source(item) for item in explanation.statements),
        *(_other(case) for case in others),
        *((counted,) if counted.text else ()),
    )


def _beside(case: ExplainedPoint, first: ExplainedPoint) -> bool:
    """On the same cores, beside the same messages."""
    return (case.n, case.size) == (first.n, first.size)


def _answer(first: ExplainedPoint, cases: Sequence[ExplainedPoint]) -> Finding:
    """What the first case keeps; where that is all, but another point is not, which loses most."""
    text = words.summary(first)
    level: Level = "quiet"
    if any(_level(case) == "interference" for case in cases):
        level = "interference"
        if _level(first) == "quiet":
            text = " ".join((text, *elsewhere(cases)))
    return Finding(key="answer", level=level, text=text, points=(first.point,))


def _source(item: SourceStatement) -> Finding:
    level: Level = "n/a" if item.status in ("n/a", "not measured") else "note"
    values: Values = {"share": item.share, "status": item.status}
    key = "source-" + "-".join(source.replace(" ", "-") for source in item.sources)
    return Finding(key=key, level=level, text=item.text, values=values)


def _other(case: ExplainedPoint) -> Finding:
    return Finding(
        key=f"case-{case.point}", level=_level(case), text=words.shares_text(case), points=(case.point,)
    )


def _level(case: ExplainedPoint) -> Level:
    return "interference" if any(affected(split.kept) for split in case.splits) else "quiet"


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """What each side keeps, source by source, and the blue and red points."""
    explanation = of_results(results, machine)
    return () if explanation is None else drawn.figures(explanation.shown, explanation.cases)


EXPERIMENT = Experiment(
    name="contrast",
    question=(
        "Where does the loss come from: frequency, caches, memory controller, link between sockets, polling?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
