"""The quality of the clocks of a trace in words, with hints."""

from __future__ import annotations

from collections.abc import Iterable

from elbowroom.draw import numbers
from elbowroom.plan.sizes import format_cores
from elbowroom.trace.documents import Sync, SyncRank

_FLAGS = {
    "unsynced": "has no sync point: its times cannot be compared with those of other ranks",
    "none": "has no sync point: its times cannot be compared with those of other ranks",
    "single": "has only one sync point: its offset is known, but not its drift",
    "backwards": "has a clock that was set back: later sync points are left out",
    "stepped": "has a clock that jumped between two sync points: the error there includes the jump",
    "rejected": "has sync points that contradict their neighbours; they are left out",
}
_HINTS = {
    "unsynced": "Synchronise the clocks: preload the MPI adapter, or call elbow_trace_sync twice.",
    "none": "Synchronise the clocks: preload the MPI adapter, or call elbow_trace_sync twice.",
    "single": "Synchronise the clocks at the end, too. A run that is killed before MPI_Finalize has only the "
    "first sync point: synchronise every few seconds (record --sync).",
    "backwards": "Find what sets the clock back, for example a suspended or migrated virtual machine; record "
    "with ELBOW_CLOCK=raw.",
    "stepped": "Find what makes the clock jump, for example a suspended or migrated virtual machine; "
    "synchronise more often, so that a jump spoils less time.",
}
MATTERS_NS = 1000
"""Errors below are no reason to synchronise more often: a message between hosts takes longer."""
MANY = 0.05
"""Share of points: more are not left out by chance."""


def summary(sync: Sync) -> list[str]:
    """The largest error and drift, the number of points left out, and the meaning of each flag."""
    errors = [(one.error_ns or 0.0, rank.rank) for rank in sync.ranks for one in rank.segments]
    sentences = []
    if errors:
        worst, rank = max(errors)
        sentences.append(
            f"Between sync points, times are wrong by at most {numbers.number(worst, 3)} ns (rank {rank})."
        )
    else:
        sentences.append("No clock has two sync points, so the drift is unknown.")
    drifts = [(abs(one.drift_ppb), one.drift_ppb, rank.rank) for rank in sync.ranks for one in rank.segments]
    if drifts and max(drifts)[0] > 0:
        _, drift, rank = max(drifts)
        sentences.append(f"The largest drift is {numbers.number(drift / 1e3, 3)} ppm (rank {rank}).")
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    sentences.append(f"{len(points)} sync points of {len(sync.ranks)} ranks, {left_out} of them left out.")
    for flag in dict.fromkeys(flag for rank in sync.ranks for flag in rank.flags):
        sentences.append(f"{_ranks(sync.ranks, flag)} {_FLAGS.get(flag, f'has the flag {flag}')}.")
    return sentences


def advice(sync: Sync) -> list[str]:
    """Hints for smaller errors; empty if there are none."""
    flags = {flag for rank in sync.ranks for flag in rank.flags}
    sentences = list(dict.fromkeys(hint for flag, hint in _HINTS.items() if flag in flags))
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    if points and left_out > MANY * len(points):
        sentences.append(
            f"{left_out / len(points):.0%} of the sync points are left out: ranks migrate or are delayed "
            "during the synchronisation. Bind each rank to a core of its own."
        )
    bending = [rank.rank for rank in sync.ranks if _bends(rank)]
    worst = max((one.error_ns or 0.0 for rank in sync.ranks for one in rank.segments), default=0.0)
    if bending and worst >= MATTERS_NS:
        sentences.append(
            f"Ranks {format_cores(bending)}: most of the error (at most {numbers.number(worst, 3)} ns) comes "
            "from drift between sync points, not from the network. Synchronise more often (record --sync)."
        )
    return sentences


def _bends(rank: SyncRank) -> bool:
    """Whether the errors are much larger than the bounds of the sync points."""
    widths = sorted((point.high - point.low) / 2 for point in rank.points if point.used)
    errors = sorted(one.error_ns or 0.0 for one in rank.segments)
    return bool(widths and errors) and errors[len(errors) // 2] > 2 * max(widths[len(widths) // 2], 1.0)


def _ranks(ranks: Iterable[SyncRank], flag: str) -> str:
    which = [rank.rank for rank in ranks if flag in rank.flags]
    return f"Rank {which[0]}" if len(which) == 1 else f"Each of ranks {format_cores(which)}"
