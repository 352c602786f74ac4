"""What changed between two runs, in words; without numpy, so that help starts fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elbowroom.results.comparison import Change


def sentence(changes: Sequence[Change], at_least: float) -> str:
    """What changed, in one sentence."""
    significant = [change for change in changes if change.significant]
    if not changes:
        return "No verdict: no value has five repetitions in both runs, so no change can be detected."
    if not significant:
        return f"No change of {100 * at_least:.3g} % or more is shown in {len(changes)} values."
    worsened = sum(change.better == "a" for change in significant)
    largest = max(significant, key=lambda change: abs(change.change))
    return (
        f"{len(significant)} of {len(changes)} values changed, {worsened} for the worse; the largest change: "
        f"{largest.side} {largest.phase} of {largest.point}, {largest.change:+.1%} "
        f"({largest.low:+.1%} to {largest.high:+.1%})."
    )
