"""The table of sources of loss, and how tables print a share that was kept."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.results.result import Kept

KEPT_LEGEND = "Percent kept, ± the wider part of the 95 % interval."
STAND_IN_SENTENCE = "A stand-in answered: its rates are planted, and nothing was measured."


def percent(kept: Kept | None) -> str:
    """`90.5 ±0.4`: half of the interval, its wider part; a dash for what was not measured."""
    if kept is None:
        return "-"
    if kept.low is None or kept.high is None:
        return f"{100 * kept.value:.1f}"
    return f"{100 * kept.value:.1f} ±{100 * max(kept.value - kept.low, kept.high - kept.value):.1f}"


def _tenths(share: float) -> str:
    """In percent, without a sign of what rounds to 0."""
    return f"{round(100 * share, 1) + 0.0:.1f}"


def source_table(sources: Sequence[ContrastSource]) -> TextTable | None:
    """A line for each source; None without any."""
    if not sources:
        return None
    held = any(item.sms for item in sources)
    lines = []
    for item in sources:
        ends = item.bounds
        interval = f"{_tenths(ends[0])} to {_tenths(ends[1])}" if ends else "none"
        k = [str(item.sms or "-")] * held
        lines.append((item.victim, item.name, *k, _tenths(item.value), interval, item.contrast))
    columns = ("victim", "source", *["k"] * held, "lost %", "95 %", "contrast")
    return TextTable(
        title="Sources of loss, by contrast",
        columns=columns,
        rows=tuple(lines),
        left=(0, 1, len(columns) - 1),
        legend="Of a difference, the interval has the ends of both; a negative loss is a gain.",
    )
