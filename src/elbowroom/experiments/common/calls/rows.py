"""Rows of calls beside a computation: what each hides and loses, by call and policy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from elbowroom.points import CallBesideComputation, running
from elbowroom.quantities import format_cores
from elbowroom.results.result import PointResult
from elbowroom.stats.overlap.losses import PROGRESSES
from elbowroom.stats.overlap.measures import OverlapMeasures

REASONS = {
    "contention": "contention",
    "no_progress": "no progress",
    "late": "a late rank",
    "tail": "tail",
    "none": "-",
}
"""How tables name what a step loses by."""


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its policy beside a kernel, and its result."""

    call: CallBesideComputation
    item: PointResult

    @property
    def measured(self) -> OverlapMeasures | None:
        """What it hides and loses; None where nothing was computed beside it."""
        found = self.item.overlapped
        return None if isinstance(found, msgspec.UnsetType) else found

    @property
    def progresses(self) -> bool:
        """Whether it proceeds outside of calls of MPI."""
        return self.measured is not None and self.measured.progressed.value >= PROGRESSES

    @property
    def policy(self) -> str:
        """What lets it progress: `a progress thread on core 3`."""
        if self.call.progress == "thread":
            cores = sorted(set(self.call.progress_cores))
            return f"{self.call.policy} on core{'s' if len(cores) > 1 else ''} {format_cores(cores)}"
        return self.call.policy

    @property
    def case(self) -> Hashable:
        """Equal for rows that differ in their policy only."""
        return (self.family, self.item.size)

    @property
    def family(self) -> tuple[Hashable, ...]:
        """Equal for rows that differ in policy and size only."""
        call, item = self.call, self.item
        return call.operation, call.neighbours, call.form, item.kernel, item.cursor, item.n, call.ranks


def rows(results: Sequence[PointResult]) -> tuple[CallRow, ...]:
    """A row for each point that was measured, in the plan's order."""
    return tuple(
        CallRow(call=call, item=item)
        for item, call in running(results, CallBesideComputation)
        if item.status != "failed"
    )
