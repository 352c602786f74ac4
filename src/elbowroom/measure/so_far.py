"""What a run shows before it has ended, for the person who waits."""

from __future__ import annotations

from elbowroom.measure.results import point_results
from elbowroom.stats.interval import Kept
from elbowroom.store.folder import RunFolder

FEWEST = 3
"""Repetitions of a side of which something is said."""


def largest_loss(folder: RunFolder) -> str:
    """The side that loses most so far, with its interval: `messages lose about 31 % (20 to 42 %) so far`;
    empty where nothing was measured on both sides yet. It is the largest of many, so that more repetitions
    mostly lower it.
    """
    losses = [
        (side.kept.value, number, name, side.kept)
        for number, point in enumerate(point_results(folder.manifest, folder.entries())[0])
        if point.role != "control"
        for name, side in (
            ("computation loses", point.comp),
            ("messages lose" if point.workload.facts.beside_messages else "communication loses", point.comm),
        )
        if side.kept is not None and side.alone is not None and side.alone.count >= FEWEST
    ]
    if not losses:
        return ""
    _, _, name, kept = min(losses, key=lambda loss: loss[:3])
    return f"{name} about {_loss(kept)} so far"


def _loss(kept: Kept) -> str:
    """`31 % (20 to 42 %)`."""
    value = f"{_percent(kept.value)} %"
    if kept.low is None or kept.high is None:
        return value
    return f"{value} ({_percent(kept.high)} to {_percent(kept.low)} %)"


def _percent(kept: float) -> str:
    return f"{round(100 * (1 - kept))}"
