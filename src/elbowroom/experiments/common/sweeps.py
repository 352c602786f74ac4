"""What experiments share that vary one axis per case: a finding with both onsets, and panels, for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from elbowroom.draw.figure import Axis, Figure
from elbowroom.experiments.common.panels import X, side_by_side
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    grouped,
    level_of,
    nothing,
    onset_values,
    onsets,
    place_text,
    span_text,
    suffers,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import kernel_name
from elbowroom.results.curves import Onset, highest, regime
from elbowroom.results.result import Finding, PointResult

At = Callable[[float], str]

REGIMES = {
    "red": "both sides slow down, as they do where the memory saturates (red)",
    "blue": "only the computation slows down, while the bandwidth is far from saturated (blue)",
}


@dataclass(frozen=True)
class SweepCase:
    """The points of one case over the axis `x`, whose values `at` words. `values`: what sets it apart from
    other cases; `peaks`: the highest traffic of the run by node (results.curves.highest).
    """

    name: str
    values: tuple[object, ...]
    group: Sequence[PointResult]
    machine: Machine
    x: X
    at: At
    peaks: dict[int, float]

    @property
    def first(self) -> PointResult:
        """The first point, which has what all of them share."""
        return self.group[0]

    @property
    def kernel(self) -> str:
        """How sentences call the kernel."""
        return kernel_name(self.first.kernel)

    @property
    def place(self) -> str:
        """Where data and communication thread are."""
        return place_text(self.first, self.machine)

    @property
    def onsets(self) -> tuple[Onset, Onset]:
        """Of the communication, and of the computation."""
        return onsets(self.group, self.x)

    def key(self, name: str = "") -> str:
        """The key of a finding or a figure of the case."""
        return case_key(name or self.name, self.values)

    def suffers(self, comm: str = "the communication", *, times: bool = False) -> str:
        """A sentence for each side; `times` words the loss of `comm` as growth (of a latency)."""
        network, computation = self.onsets
        sentence = suffers(comm, network, self.at, times=times)
        return f"{sentence} {suffers('The computation', computation, self.at)}"

    def regimes(self) -> tuple[str, Values]:
        """A sentence about where along the axis points are red and blue, and the places as `red` and `blue`;
        an empty sentence where none is.
        """
        sentences = []
        values: Values = {}
        for name, what in REGIMES.items():
            places = sorted(self.x(item) for item in self.group if regime(item, self.peaks) == name)
            if len(places) == 1:
                sentences.append(f"At {self.at(places[0])} {what}.")
            elif places:
                between = span_text(places[0], places[-1], self.at)
                sentences.append(f"At {len(places)} of {len(self.group)} points ({between}) {what}.")
            if places:
                values[name] = ",".join(f"{place:g}" for place in places)
        return " ".join(sentences), values

    def finding(
        self, text: str, before: Values | None = None, after: Values | None = None, key: str = ""
    ) -> Finding:
        """The finding of both onsets, with their numbers between those of `before` and of `after`."""
        comm, comp = self.onsets
        values = (before or {}) | onset_values("comm", comm) | onset_values("comp", comp) | (after or {})
        ids = tuple(item.id for item in self.group)
        level = level_of(comm, comp)
        return Finding(key=key or self.key(), level=level, text=text, values=values, points=ids)

    def panel(self, title: str, axis: Axis, key: str = "", **others: Any) -> Figure:
        """Both sides alone and together (panels.side_by_side)."""
        return side_by_side(key or self.key(), title, axis, self.group, self.x, **others)


@dataclass(frozen=True)
class Sweep:
    """An experiment over one axis. `what`: what its answer is about, where nothing was measured; `case` names
    what sets cases apart; `takes`: which points belong to it.
    """

    name: str
    what: str
    case: Callable[[PointResult], Hashable]
    x: X
    at: At
    takes: Callable[[PointResult], bool] = lambda _: True

    def cases(self, results: Sequence[PointResult], machine: Machine) -> list[SweepCase]:
        """The cases, in the order of their first points."""
        measured = usable(results)
        peaks = highest(measured)
        groups = grouped([item for item in measured if self.takes(item)], self.case)
        return [
            SweepCase(self.name, tuple(values), group, machine, self.x, self.at, peaks)  # type: ignore[arg-type]
            for values, group in groups.items()
        ]

    def experiment(
        self,
        finding: Callable[[SweepCase], Finding],
        panels: Callable[[SweepCase], Iterable[Figure]],
        more: Callable[[Sequence[SweepCase]], Iterable[Finding]] = lambda _: (),
        **others: Any,
    ) -> Experiment:
        """The experiment with a finding and panels for each case, and `more` findings of all of them."""

        def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
            cases = self.cases(results, machine)
            return (*map(finding, cases), *more(cases)) or (nothing(self.name, self.what),)

        def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
            return tuple(figure for case in self.cases(results, machine) for figure in panels(case))

        return Experiment(name=self.name, findings=findings, figures=figures, **others)
