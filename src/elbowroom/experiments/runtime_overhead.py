"""What StarPU-MPI adds to the latency of MPI, at all sizes and placements (Denis et al. 2021, sections 5.1 to
5.3, Figure 8; Swartvagher 2022, 5.4.1 and 5.4.2, Figure 5.12).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.experiments.cores import machine_notes, with_notes
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.runtime_figures import added_figure, latency_figure, placement_figure
from elbowroom.experiments.runtime_rows import (
    Case,
    Judged,
    cases,
    data_text,
    nearness,
    recovered,
    surely_kept,
)
from elbowroom.experiments.wording import Values, nothing, size_text
from elbowroom.machine.topology import Machine
from elbowroom.plan import placing
from elbowroom.plan.expanding import comm_cores, metric_of, node_pairs, with_neighbours
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.point import Expansion, Note, Phase, Point, Program
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult

PHASES: tuple[Phase, ...] = ("B", "AB", "AB", "B")
"""By MPI and through StarPU-MPI, in the same processes, threads and memory."""

PROGRAM = Program(name="runtime", task="overhead", build="starpu")
PAPER = "38 us on henri, 23 on billy, 45 on pyxis"
"""What was added there (section 5.2)."""

SAME_FROM = 64_000_000
"""Bytes from which the paper sees no difference (section 5.2)."""

LEVELS: dict[Judged, Literal["quiet", "interference", "note"]] = {
    "confirmed": "interference",
    "refuted": "quiet",
    "undecided": "note",
}
"""Of findings, by what they say of the paper's claim that something suffers."""

OWN_CORES = 2
"""Cores of a rank where there are enough: one for StarPU's communication thread, one for the thread that
waits for its messages (section 5.1).
"""


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every size with the data on each node and the communication thread on each core; a register-only
    control.
    """
    _refuse(plan, machine)
    pairs, notes = node_pairs(plan, machine)
    cores, more = comm_cores(plan, machine)
    points: dict[str, Point] = {}
    for core, data in product(cores, dict.fromkeys(comp for comp, _ in pairs)):
        seats = _seats(plan, machine, core)
        for size in with_neighbours(plan.sizes, plan.around):
            point = _point(plan, machine, core, data, size)
            points.setdefault(
                point.id, msgspec.structs.replace(point, comm_cores=seats[0], peer_cores=seats[1])
            )
    notes = [*machine_notes(machine), *notes, *more]
    if len(machine.nodes) < 2:
        reason = "this machine has one NUMA node"
        notes.append(Note(what="data away from the communication thread's node", reason=reason))
    control = _control(plan, machine) if plan.control else ()
    return with_notes(Expansion(points=(*points.values(), *control), notes=()), notes)


def _refuse(plan: Plan, machine: Machine) -> None:
    if not set(plan.kernels) <= {"none", "triad"} or plan.sweeps:
        raise UsageError(
            "no kernel runs beside these messages, and there are no sweeps",
            field="sweeps" if plan.sweeps else "kernels",
            value=len(plan.sweeps) if plan.sweeps else ",".join(plan.kernels),
            mend="leave it out; a kernel beside messages: elbowroom run cores",
        )
    if machine.hosts < 2 and len(placing.usable(machine)) < 2:
        raise UsageError(
            "each of two ranks needs a core: StarPU's communication threads poll",
            field="cpuset",
            value=list(machine.allowed),
            mend="allow two cores, or take two hosts",
        )


def _point(plan: Plan, machine: Machine, core: int, data: int, size: int) -> Point:
    return Point(
        plan=plan.name,
        kernel="none",
        n=0,
        size=size,
        comp_node=data,
        comm_node=next((one.node for one in machine.cores if one.number == core), data),
        comm_core=core,
        metric=metric_of(plan, size),
        sequence=PHASES,
        window=plan.window,
        observe=plan.observe,
        scheduling=plan.scheduling,
        program=PROGRAM,
    )


def _seats(plan: Plan, machine: Machine, core: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cores of rank 0 and of the other rank of this host: communication thread first, then the thread that
    waits where there are cores enough; those of the communication thread's node before others.
    """
    all_cores = placing.usable(machine)
    node = next((one.node for one in all_cores if one.number == core), None)
    beside = sorted(all_cores, key=lambda one: (one.node != node, -one.logical))
    free = [one.number for one in beside if one.number not in (core, plan.peer_core)]
    each = OWN_CORES if len(all_cores) >= OWN_CORES * (2 if machine.hosts < 2 else 1) else 1
    own = (core, *free[: each - 1])
    if machine.hosts > 1:
        return own, own
    left = free[each - 1 :]
    peer = plan.peer_core if plan.peer_core is not None else left.pop(0)
    return own, (peer, *left[: each - 1])


def _control(plan: Plan, machine: Machine) -> tuple[Point, ...]:
    """Prime counting beside the largest message, by the probe: whether the machine was quiet."""
    size = max(with_neighbours(plan.sizes, plan.around))
    asked = msgspec.structs.replace(
        plan, kernels=("prime",), n=("all",), sizes=(size,), around=0, control=False, metric="auto"
    )
    asked = msgspec.structs.replace(asked, comm_cores=("last",), comp_nodes=("near",), peer_core=None)
    return tuple(msgspec.structs.replace(point, role="control") for point in multiply(asked, machine).points)


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per placement: what is added to the smallest message, and up to which size it shows; then what the
    placement itself does.
    """
    told = cases(results)
    both = [judged for case in told for judged in (_added(case, machine), _vanishes(case, machine))]
    found = [judged for judged in both if judged is not None]
    if not found:
        return (nothing("overhead", "Messages through StarPU-MPI"),)
    return (*found, _placement(told, machine))


def _added(case: Case, machine: Machine) -> Finding | None:
    item = case.smallest
    side = item.comm
    if side.added is None or side.alone is None or side.together is None:
        return None
    more = side.added
    same = side.kept is not None and surely_kept(side.kept)
    verdict: Judged = "confirmed" if more.low > 0 else "refuted" if more.high < 0 or same else "undecided"
    text = (
        f"A message of {size_text(item.size)} takes {side.together.median:.3g} us through StarPU-MPI and "
        f"{side.alone.median:.3g} us by MPI, {data_text(item, machine)}: {more.value:.3g} us more "
        f"({more.low:.3g} to {more.high:.3g}). The paper's claim that StarPU adds to the latency ({PAPER}) "
        f"is {verdict} here."
    )
    values: Values = {
        "size": item.size,
        "alone": side.alone.median,
        "together": side.together.median,
        "added": more.value,
        "low": more.low,
        "high": more.high,
        "verdict": verdict,
    }
    return Finding(
        key=f"overhead-{case.key}", level=LEVELS[verdict], text=text, values=values, points=(item.id,)
    )


def _vanishes(case: Case, machine: Machine) -> Finding | None:
    if len(case.items) < 2:
        return None
    found = recovered(case, SAME_FROM)
    where = data_text(case.smallest, machine)
    if found.since is None:
        text = f"The difference shows at every size up to {size_text(found.last or 0)}, {where}."
    elif found.last is None:
        text = f"The difference shows at no size, {where}."
    else:
        until, since = size_text(found.last), size_text(found.since)
        text = f"The difference shows up to {until} and no more from {since} on, {where}."
    text += f" The paper's claim that it shows below {size_text(SAME_FROM)} is {found.verdict} here"
    text += f": {found.why}." if found.why else "."
    values: Values = {"last": found.last, "since": found.since, "verdict": found.verdict}
    points = tuple(item.id for item in case.items)
    return Finding(key=f"vanishes-{case.key}", level="note", text=text, values=values, points=points)


def _placement(told: Sequence[Case], machine: Machine) -> Finding:
    """Section 5.3: for small messages data and communication thread should be on one node."""
    if len(machine.nodes) < 2:
        text = "Data and communication thread are on one NUMA node here: what their distance costs is n/a."
        return Finding(key="placement", level="n/a", text=text)
    found = nearness(told)
    if not found.pairs:
        text = "Data was not measured both on the communication thread's node and on another."
        return Finding(key="placement", level="n/a", text=text)
    parts = [
        f"{away.together:.3g} us from node {away.data} and {same.together:.3g} us from its own (node "
        f"{same.data}) to the thread on core {same.core}"
        for same, away in found.pairs
    ]
    text = (
        f"Through StarPU-MPI the smallest message takes {'; '.join(parts)}. That data and communication "
        f"thread should be on one node (section 5.3) is {found.verdict} here."
    )
    return Finding(
        key="placement",
        level=LEVELS[found.verdict],
        text=text,
        values={"verdict": found.verdict, **found.values},
        points=tuple(place.id for pair in found.pairs for place in pair),
    )


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """Per placement both latencies over the size, and what is added; with several, StarPU's side by side
    (Figure 8).
    """
    told = cases(results)
    drawn = [draw(case, machine) for case in told for draw in (latency_figure, added_figure)]
    drawn.append(placement_figure(told))
    return tuple(figure for figure in drawn if figure is not None)


EXPERIMENT = Experiment(
    name="runtime-overhead",
    question="What does a message cost more through a task runtime than by MPI, and at which sizes?",
    expand=expand,
    findings=findings,
    figures=figures,
)
