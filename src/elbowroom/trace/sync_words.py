"""What is known of the clocks of a trace, in words, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable

from elbowroom.draw import numbers
from elbowroom.plan.sizes import format_cores
from elbowroom.trace.documents import Sync, SyncRank

_FLAGS = {
    "unsynced": "has no sync point: its times are those of its own clock, and cannot be put beside others'",
    "none": "has no sync point: its times are those of its own clock, and cannot be put beside others'",
    "single": "has one sync point only: its offset is known, its drift is not",
    "backwards": "has points that contradict time's order: its clock was set back; later ones are left out",
    "stepped": "has a clock that jumped between two points: the error bars there span the jump",
    "rejected": "has points that contradict their neighbours; they are left out",
}
_MENDS = {
    "unsynced": "Compare clocks: let the MPI adapter be preloaded, or call elbow_trace_sync twice.",
    "none": "Compare clocks: let the MPI adapter be preloaded, or call elbow_trace_sync twice.",
    "single": "Compare clocks at the end as well: a run that is killed before MPI_Finalize has the first "
    "point only; compare every few seconds (record --sync).",
    "backwards": "Look for what sets clocks back: a suspended or moved virtual machine; record with "
    "ELBOW_CLOCK=raw.",
    "stepped": "Look for what makes clocks jump: a suspended or moved virtual machine; compare more often: "
    "less time is spoilt then.",
}
MANY = 0.05
"""Of all points: more left out than by chance."""


def summary(sync: Sync) -> list[str]:
    """The worst error, drifts, what was left out, and what each flag means."""
    errors = [(one.error_ns or 0.0, rank.rank) for rank in sync.ranks for one in rank.segments]
    said = []
    if errors:
        worst, rank = max(errors)
        said.append(
            f"Between sync points times are right to {numbers.number(worst, 3)} ns at worst (rank {rank})."
        )
    else:
        said.append("No clock was compared twice: nothing is known of drift.")
    drifts = [(abs(one.drift_ppb), one.drift_ppb, rank.rank) for rank in sync.ranks for one in rank.segments]
    if drifts and max(drifts)[0] > 0:
        _, drift, rank = max(drifts)
        said.append(f"The largest drift is {numbers.number(drift / 1e3, 3)} ppm (rank {rank}).")
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    said.append(f"{len(points)} points of {len(sync.ranks)} ranks; {left_out} left out.")
    for flag in dict.fromkeys(flag for rank in sync.ranks for flag in rank.flags):
        said.append(f"{_ranks(sync.ranks, flag)} {_FLAGS.get(flag, f'is flagged: {flag}')}.")
    return said


def advice(sync: Sync) -> list[str]:
    """What makes times more certain; empty where nothing does."""
    flags = {flag for rank in sync.ranks for flag in rank.flags}
    said = list(dict.fromkeys(mend for flag, mend in _MENDS.items() if flag in flags))
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    if points and left_out > MANY * len(points):
        said.append(
            f"{left_out / len(points):.0%} of the points are left out: ranks are moved or held up while "
            "clocks are compared; bind each to a core of its own."
        )
    bending = [rank.rank for rank in sync.ranks if _bends(rank)]
    if bending:
        said.append(
            f"Of ranks {format_cores(bending)} most of the error is drift between points, not the network; "
            "compare more often (record --sync)."
        )
    return said


def _bends(rank: SyncRank) -> bool:
    """Whether the error bars are far wider than the bounds of the points."""
    widths = sorted((point.high - point.low) / 2 for point in rank.points if point.used)
    errors = sorted(one.error_ns or 0.0 for one in rank.segments)
    return bool(widths and errors) and errors[len(errors) // 2] > 2 * max(widths[len(widths) // 2], 1.0)


def _ranks(ranks: Iterable[SyncRank], flag: str) -> str:
    which = [rank.rank for rank in ranks if flag in rank.flags]
    return f"Rank {which[0]}" if len(which) == 1 else f"Each of ranks {format_cores(which)}"
