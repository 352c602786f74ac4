"""What a study has measured, as its statements ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, Literal, ParamSpec, TypeVar

import msgspec

from elbowroom.experiments.common.sentences import usable
from elbowroom.experiments.experiment import RunPart
from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import distance, near_node
from elbowroom.points.point import Note
from elbowroom.results.result import Finding, PointResult

Place = Literal["", "near", "far"]
P = ParamSpec("P")
Result = TypeVar("Result")


class NotMeasuredError(Exception):
    """A run has none of the points that a statement asks for; the reason."""


class RunEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement: its results, and what its experiment found. `doubt`: why it is not trusted, else empty;
    `parts`: its runs on several numbers of hosts, whose points are all in `points`, while findings and notes
    are those of the run on most hosts.
    """

    name: str
    experiment: str
    machine: Machine
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
    doubt: str = ""
    parts: tuple[RunPart, ...] = ()


class PointSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which points of a run. Empty fields take all; `data` and `thread` are near the NIC or far from it, and
    take all on a machine with one NUMA node.
    """

    kernels: tuple[str, ...] = ()
    metric: Literal["", "latency", "bandwidth"] = ""
    data: Place = ""
    thread: Place = ""
    sizes: tuple[int, ...] = ()
    processes: Literal["", "node", "socket"] = ""
    threads: int | None = None

    def takes(self, item: PointResult, machine: Machine) -> bool:
        """Whether the point is one of them."""
        if self.kernels and item.kernel not in self.kernels:
            return False
        if self.metric and item.metric != self.metric:
            return False
        if self.sizes and item.size not in self.sizes:
            return False
        if self.processes and item.processes != self.processes:
            return False
        if self.threads is not None and item.comm_threads != self.threads:
            return False
        return len(machine.nodes) < 2 or self._placed(item, machine)

    def _placed(self, item: PointResult, machine: Machine) -> bool:
        data = "near" if item.comp_node == near_node(machine) else "far"
        thread = distance(machine, item.comm_core)
        return self.data in ("", data) and self.thread in ("", thread)


EVERYWHERE = PointSelection()


class Evidence:
    """The runs of a study by name; `reasons`: why those that are not there were not measured."""

    def __init__(
        self, machine: Machine, runs: Mapping[str, RunEvidence], reasons: Mapping[str, str] | None = None
    ) -> None:
        self.machine = machine
        self.runs = runs
        self.reasons = reasons or {}

    def points(
        self, run: str, where: PointSelection = EVERYWHERE, only: Callable[[PointResult], bool] | None = None
    ) -> list[PointResult]:
        """The points of a run that were measured; none of a run that is not there."""
        if run not in self.runs:
            return []
        return [
            item
            for item in usable(self.runs[run].points)
            if where.takes(item, self.runs[run].machine) and (only is None or only(item))
        ]

    def findings(self, run: str, start: str | tuple[str, ...]) -> list[Finding]:
        """The findings of a run whose key starts so, or in one of these ways."""
        if run not in self.runs:
            return []
        return [finding for finding in self.runs[run].findings if finding.key.startswith(start)]

    def reason(self, run: str) -> str:
        """Why a run has no points that a statement asks for."""
        if run not in self.runs:
            return self.reasons.get(run, "the run was not measured")
        notes = self.runs[run].notes
        failed = next((item.reason for item in self.runs[run].points if item.status == "failed"), "")
        return failed or (notes[-1].reason if notes else "the run has no such points")

    def missing(self, run: str) -> NotMeasuredError:
        """To be raised where a run has none of the points."""
        return NotMeasuredError(self.reason(run))

    def doubts(self, runs: Sequence[str]) -> str:
        """Why the runs are not trusted; empty where all are."""
        return next(
            (self.runs[name].doubt for name in runs if name in self.runs and self.runs[name].doubt), ""
        )


def of_evidence(
    function: Callable[Concatenate[Evidence, P], Result],
) -> Callable[P, Callable[[Evidence], Result]]:
    """A function of the evidence and of what a paper says, as papers declare it: called with the latter, it
    gives a function of the evidence.
    """

    def declare(*args: P.args, **kwargs: P.kwargs) -> Callable[[Evidence], Result]:
        return lambda evidence: function(evidence, *args, **kwargs)

    return declare
