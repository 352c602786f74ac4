"""The table of sources of loss, and how tables print a share that was kept."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sources import ContrastSource
from elbowroom.results.result import Kept

STAND_IN_SENTENCE = "A stand-in answered: its rates are planted, and nothing was measured."


def percent(kept: Kept | None) -> str:
    """`90.5 (90.1 to 90.9)`, without a sign; a dash for what was not measured."""
    if kept is None:
        return "-"
    ends = kept.bounds
    return f"{100 * kept.value:.1f}" + (f" ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})" if ends else "")


def source_table(sources: Sequence[ContrastSource]) -> TextTable | None:
    """A line for each source; None without any."""
    if not sources:
        return None
    held = any(item.sms for item in sources)
    lines = []
    for item in sources:
        ends = item.bounds
        interval = f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}" if ends else "no interval"
        k = [str(item.sms or "-")] * held
        lines.append((item.victim, item.name, *k, f"{100 * item.value:.1f}", interval, item.contrast))
    columns = ("victim", "source", *["k"] * held, "lost (%)", "95 %", "contrast")
    return TextTable(
        title="Sources of loss, by contrast",
        columns=columns,
        rows=tuple(lines),
        left=(0, 1, len(columns) - 1),
        legend="Of a difference, the interval has the ends of both; a negative loss is a gain.",
    )
