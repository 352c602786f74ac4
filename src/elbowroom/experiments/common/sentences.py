"""What findings are worded with: choosing results, sentences about onsets, claims of papers, numbers as
people read them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import distance, nic_node
from elbowroom.quantities import format_size, percent
from elbowroom.results.curves import Onset, affected, onset
from elbowroom.results.grades import loss_of, loss_text
from elbowroom.results.judgement import Judgement
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Added, Interval, Kept

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
SideName = Literal["comp", "comm"]
Values = dict[str, float | int | str | None]


def usable(results: Sequence[PointResult]) -> list[PointResult]:
    """What can be reported: points of the plan (not the added control) with values."""
    return [item for item in results if item.role == "point" and item.status != "failed"]


def grouped(results: Sequence[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Results by key, keys in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in results:
        groups.setdefault(key(item), []).append(item)
    return groups


def kept_of(item: PointResult, side: SideName) -> Kept | None:
    """What one side of a point kept."""
    return getattr(item, side).kept  # type: ignore[no-any-return]


def onset_over(results: Sequence[PointResult], side: SideName, x: Callable[[PointResult], float]) -> Onset:
    """The onset of one side over one axis."""
    return onset([x(item) for item in results], [kept_of(item, side) for item in results])


def onsets(results: Sequence[PointResult], x: Callable[[PointResult], float]) -> tuple[Onset, Onset]:
    """(of the communication, of the computation) over one axis."""
    return onset_over(results, "comm", x), onset_over(results, "comp", x)


def kept_text(kept: Kept | None) -> str:
    """`0.64 (0.62 to 0.66)`, beside limits of what is kept."""
    return "an unknown share" if kept is None else f"{kept.value:.2f} ({kept.text()})"


def lost_text(kept: Kept | None) -> str:
    """What a side loses: `36 % (34 to 38 %)`; a negative loss is a gain."""
    return loss_text(None if kept is None else loss_of(kept))


def at_most_text(kept: float) -> str:
    """`at most 3 %`, `nothing`: what is lost where that much is kept at worst."""
    return f"at most {percent(1 - kept, digits=0)}" if kept < 1 else "nothing"


def cores_text(n: float) -> str:
    """`1 computing core`, `5 computing cores`."""
    return f"{n:.0f} computing core{'' if n == 1 else 's'}"


def size_text(size: float) -> str:
    """`64 MiB`."""
    return format_size(int(size))


def intensity_text(value: float) -> str:
    """`6 flop/B`."""
    return f"{value:.3g} flop/B"


def suffers(what: str, onset: Onset, at: Callable[[float], str], times: bool = False) -> str:
    """One sentence about one side over one axis. `times` words the loss as growth (of a latency)."""
    if onset.worst is None or onset.worst_x is None:
        return f"{what}: not measured."
    at_worst = f"at worst ({at(onset.worst_x)}) it"
    if times:
        factor = f"{1 / onset.worst:.2f} times its value alone"
        extent, least = f"{at_worst} is {factor}", f"it is at most {factor}"
    else:
        extent = f"{at_worst} loses {percent(1 - onset.worst, digits=0)}"
        least = f"it loses {at_most_text(onset.worst)}"
    if onset.first is None or onset.last is None:
        return f"{what} is not affected ({least}, at {at(onset.worst_x)})."
    manner = f", {onset.manner}" if onset.manner else ""
    if onset.x is not None and onset.x == onset.first:
        where = f"from {at(onset.x)} on"
    elif onset.x is not None:
        where = f"from {at(onset.x)} on, and at some points from {at(onset.first)}"
    elif onset.first == onset.last:
        where = f"at {at(onset.first)} only"
    else:
        where = f"between {at(onset.first)} and {at(onset.last)}"
    return f"{what} suffers {where}{manner}; {extent}."


def onset_values(prefix: str, onset: Onset) -> Values:
    """The numbers of an onset, for `Finding.values`."""
    return {
        f"{prefix}_from": onset.x,
        f"{prefix}_first": onset.first,
        f"{prefix}_last": onset.last,
        f"{prefix}_worst": onset.worst,
        f"{prefix}_worst_at": onset.worst_x,
        f"{prefix}_manner": onset.manner,
    }


def interval_values(value: Kept | Added | Interval | None, key: str, prefix: str = "") -> Values:
    """A value under its key, and the ends of its interval under `low` and `high` behind the prefix; nothing
    of what was not measured.
    """
    return {} if value is None else {key: value.value, f"{prefix}low": value.low, f"{prefix}high": value.high}


def case_key(name: str, case: Sequence[object]) -> str:
    """The key of a finding or a figure of one case: `cores-triad-64-0-0-1`."""
    return "-".join(map(str, (name, *case)))


def level_of(*onsets: Onset) -> Literal["quiet", "interference", "n/a"]:
    """Whether any side suffers anywhere."""
    if all(item.worst is None for item in onsets):
        return "n/a"
    return "interference" if any(item.first is not None for item in onsets) else "quiet"


def hit(item: PointResult, side: SideName) -> bool:
    """Whether one side of a point is affected."""
    kept = kept_of(item, side)
    return kept is not None and affected(kept)


def nothing(key: str, what: str) -> Finding:
    """The finding where the results hold nothing for an experiment."""
    return Finding(key=key, level="n/a", text=f"{what}: nothing was measured.")


def place_text(item: PointResult, machine: Machine) -> str:
    """Where data and communication thread are: near or far where the NIC says so, else node numbers.

    The thread's place is unknown for imported points (a core below 0).
    """
    known = item.comm_core >= 0
    thread = f", communication thread {distance(machine, item.comm_core)}" if known else ""
    if len(machine.nodes) <= 1:
        return "one NUMA node"
    if nic_node(machine) is None:
        same = item.comp_node == item.comm_node
        data = (
            f"data on node {item.comp_node}"
            if same
            else f"data on nodes {item.comp_node} and {item.comm_node}"
        )
        return f"{data}, communication thread on core {item.comm_core}" if known else data
    if item.comp_node == item.comm_node:
        return f"data {node_distance(machine, item.comp_node)} (node {item.comp_node}){thread}"
    return (
        f"data of computations {node_distance(machine, item.comp_node)} (node "
        f"{item.comp_node}), of communications "
        f"{node_distance(machine, item.comm_node)} (node {item.comm_node}){thread}"
    )


def node_distance(machine: Machine, node: int) -> str:
    """`near` or `far` from the NIC; near is the NIC's own node (Denis et al. 2021, section 4.3)."""
    return "near" if node == nic_node(machine) else "far"


def span_text(low: float, high: float, at: Callable[[float], str]) -> str:
    """`2 to 35 computing cores`, `4 B to 64 MB`: the unit once, where both ends have the same."""
    first, last = at(low), at(high)
    number, _, unit = first.partition(" ")
    same = unit.rstrip("s") == last.partition(" ")[2].rstrip("s")
    return f"{number} to {last}" if same else f"{first} to {last}"


Level = Literal["quiet", "interference", "n/a", "note"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of a paper. `statement` completes `that ...`; `why` is the reason of the judgement, if it needs
    one; `paper` is what the paper measured.
    """

    statement: str
    judgement: Judgement
    why: str = ""
    paper: str = ""

    @property
    def text(self) -> str:
        """`The claim that ... is confirmed here. The paper: ...`"""
        verb = "was" if self.judgement == "not tested" else "is"
        why = f": {self.why}" if self.why else ""
        paper = f" The paper: {self.paper}." if self.paper else ""
        return f"The claim that {self.statement} {verb} {self.judgement} here{why}.{paper}"

    def finding(
        self,
        key: str,
        *,
        before: str = "",
        after: str = "",
        values: Values | None = None,
        points: Iterable[str] = (),
        shows_interference: bool = False,
    ) -> Finding:
        """The claim as a finding, between the texts `before` and `after`; `verdict` is among its values. With
        `shows_interference`, a confirmed claim is interference and a refuted one quiet.
        """
        level: Level = "n/a" if self.judgement == "not tested" else "note"
        if shows_interference and self.judgement == "confirmed":
            level = "interference"
        elif shows_interference and self.judgement == "refuted":
            level = "quiet"
        text = self.text[:1].lower() + self.text[1:] if before.endswith(":") else self.text
        text = " ".join(part for part in (before, text, after) if part)
        verdict: Values = {"verdict": self.judgement}
        return Finding(key=key, level=level, text=text, values=verdict | (values or {}), points=tuple(points))
