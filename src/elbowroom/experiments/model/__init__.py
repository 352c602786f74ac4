"""What a model of sharing needs: non-temporal memset beside large receptions (thesis, section 6.3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.panels import CORES, cores_of
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import Values, cores_text
from elbowroom.experiments.common.sweeps import Sweep, SweepCase
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.points.point import Expansion, Note
from elbowroom.results.result import Finding, PointResult


def _case(item: PointResult) -> tuple[str | int, ...]:
    case = item.kernel, item.size, item.comp_node, item.comm_node
    return (*case, item.n_other) if item.n_other else case


def _place(case: SweepCase) -> str:
    n_other = case.first.n_other
    return case.place + (f", {cores_text(n_other)} of them of the other socket" if n_other else "")


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every n of the first socket and every pair of nodes; a note if the remote model cannot be measured."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len({machine.socket_of[node.package] for node in machine.nodes}) < 2:
        one = "this machine has one socket" if machine.packages < 2 else "one socket has all memory"
        reason = f"{one}: there is no remote memory to measure"
        notes.append(Note(what="the model of remote accesses", reason=reason))
    if len({point.n for point in expansion.points}) < 3:
        reason = f"at most {cores_text(max((point.n for point in expansion.points), default=0))} free here"
        notes.append(Note(what="a model over the number of cores (needs three counts)", reason=reason))
    return with_notes(expansion, notes)


def _peak(group: Sequence[PointResult]) -> tuple[Values, str]:
    """Highest memory bandwidth alone, and of both streams together, with the n where they are reached."""
    alone = [(item.comp.alone.median, item.n) for item in group if item.comp.alone is not None]
    together = [
        (item.comp.together.median + item.comm.together.median, item.n)
        for item in group
        if item.comp.together is not None
        and item.comm.together is not None
        and item.comm.together.unit == "MB/s"
    ]
    values: Values = {}
    parts = []
    for name, peaks, what in (
        ("alone", alone, "memory bandwidth of the computation alone peaks"),
        ("together", together, "both streams together peak"),
    ):
        if peaks:
            most, n = max(peaks)
            values |= {f"peak_{name}": most, f"peak_{name}_n": n}
            parts.append(f"{what} at {most:.0f} MB/s with {cores_text(n)}")
    return values, "; ".join(parts)


def _finding(case: SweepCase) -> Finding:
    """Peaks of the bandwidths, the cores from which each side suffers, and the regimes."""
    values, peaks = _peak(case.group)
    regimes, places = case.regimes()
    text = (
        f"{case.kernel}, {_place(case)}: {peaks or 'no bandwidth was measured'}. "
        f"{case.suffers('Reception')} {regimes}"
    ).rstrip()
    return case.finding(text, values, places)


def _panels(case: SweepCase) -> tuple[Figure, ...]:
    """Network bandwidth on the left axis, memory bandwidth of all cores on the right one."""
    return (case.panel(f"{case.kernel} and reception: {_place(case)}", CORES, comm="reception"),)


EXPERIMENT = Sweep("model", "Memory bandwidths", _case, cores_of, cores_text).experiment(
    _finding,
    _panels,
    question=(
        "How do computation and communication share the memory bandwidth, for every number of "
        "cores and every placement?"
    ),
    expand=expand,
)
