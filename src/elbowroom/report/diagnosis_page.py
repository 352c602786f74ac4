"""The page of a diagnosis: the answer beside the account of each rank, the median step, and the causes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

from elbowroom.diagnose.causes import Cause
from elbowroom.diagnose.summary import LABELS, PartRow, PopShares
from elbowroom.diagnose.timeline import StepTimeline
from elbowroom.diagnose.trials import Tried
from elbowroom.draw import svg
from elbowroom.draw.html import asset, template
from elbowroom.quantities import percent, plural, short_time, with_span
from elbowroom.report.page import PACKAGE
from elbowroom.version import __version__

COLOURS = {
    "compute": "#9fb8cf",
    "transfer": "#0072b2",
    "contention": "#cc79a7",
    "late_ranks": "#d55e00",
    "no_progress": "#e6a700",
    "collective_wait": "#f0906c",
    "library": "#5b6b7b",
    "scheduler": "#b3261e",
    "io": "#009e73",
    "not_explained": "#c8cdd3",
}
"""Of the account's parts, on light and dark paper."""
DARK = ("transfer", "late_ranks", "library", "scheduler", "io")
"""Those on which light letters are read."""
WIDTH = 540
LEFT, RIGHT = 62, 8
ROW, GAP, SMALL = 22, 5, 8
"""Heights of a rank's bar, between bars, and of a bar of many ranks."""
FEW = 16
"""So many ranks have bars with their shares in them."""
MOST = 64
"""Ranks that are drawn, those with the least computation first left out."""


class RankBar(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a rank: share of the mean step by part."""

    rank: int
    host: str
    shares: dict[str, float]


class DiagnosisPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows. `verdict`, `why`, `following`: as the command ends; `fault`: whether there is a
    cause to repair; `steps`: the sentence on them; `timeline`: of the median step, None without steps.
    """

    command: str
    verdict: str
    why: str
    following: str
    fault: bool
    steps: str
    notes: tuple[str, ...]
    bars: tuple[RankBar, ...]
    parts: tuple[PartRow, ...]
    pop: PopShares
    causes: tuple[Cause, ...]
    tried: tuple[Tried, ...] = ()
    timeline: StepTimeline | None = None


def render_diagnosis(page: DiagnosisPage) -> str:
    """The page as one HTML document that needs no network and no script."""
    timeline = page.timeline
    html: str = template(PACKAGE, "templates/diagnosis.html.j2").render(
        page=page,
        style=asset(PACKAGE, "page.css") + svg.style() + _colours(),
        bars=bars_svg(page.bars),
        legend=[(part, LABELS[part]) for part in _present(page.bars)],
        timeline="" if timeline is None else timeline_svg(timeline),
        step="" if timeline is None else short_time(timeline.seconds),
        rows=[_row(row) for row in page.parts],
        pop=[(name.replace("_", " "), f"{value:.2f}") for name, value in _pop(page.pop)],
        tried=[_tried(one) for one in page.tried],
        version=__version__,
    )
    return html


def _colours() -> str:
    rules = "".join(f".part-{part}{{fill:{colour};background:{colour}}}" for part, colour in COLOURS.items())
    return rules + (
        ".swatches{display:flex;flex-wrap:wrap;gap:2px 14px;margin:6px 0 0;padding:0;list-style:none;"
        "font-size:13px}.swatches span{display:inline-block;width:11px;height:11px;margin-right:5px}"
        ".account text,.timeline text{fill:var(--ink);font:12px system-ui,sans-serif}"
        ".account .in{fill:#101418;font-size:11px}.account .light{fill:#fff}"
        ".account,.timeline{width:100%;height:auto;display:block}"
    )


def _present(bars: Sequence[RankBar]) -> list[str]:
    return [part for part in LABELS if any(bar.shares.get(part, 0.0) >= 5e-4 for bar in bars)]


def _row(row: PartRow) -> tuple[str, ...]:
    return (
        LABELS[row.part],
        percent(row.share),
        f"{percent(row.low)} to {percent(row.high)}",
        short_time(row.seconds),
        f"rank {row.rank} ({percent(row.rank_share)})",
        row.site,
    )


def _pop(pop: PopShares) -> list[tuple[str, float]]:
    return [(name, getattr(pop, name)) for name in PopShares.__struct_fields__]


def _tried(one: Tried) -> tuple[str, ...]:
    ends = (percent(end, sign=True) for end in one.gain.ends(one.gain.value))
    return one.command, with_span(percent(one.gain.value, sign=True), *ends), one.decided, one.what


def bars_svg(bars: Sequence[RankBar]) -> str:
    """A bar for each rank, its parts beside each other, as shares of the mean step."""
    shown = sorted(bars, key=lambda bar: bar.shares.get("compute", 0.0))[-MOST:]
    shown.sort(key=lambda bar: bar.rank)
    row, gap = (ROW, GAP) if len(shown) <= FEW else (SMALL, 1)
    width, lines = WIDTH - LEFT - RIGHT, []
    for at, bar in enumerate(shown):
        top, left = at * (row + gap), float(LEFT)
        if row == ROW or at % 8 == 0:
            lines.append(f'<text x="{LEFT - 6}" y="{top + row - 6}" text-anchor="end">rank {bar.rank}</text>')
        for part in LABELS:
            share = bar.shares.get(part, 0.0)
            if share < 5e-4:
                continue
            text = escape(f"rank {bar.rank} on {bar.host}: {LABELS[part]} {percent(share)}")
            lines.append(
                f'<rect class="part-{part}" x="{left:.1f}" y="{top}" width="{share * width:.1f}" '
                f'height="{row}"><title>{text}</title></rect>'
            )
            if row == ROW and share >= 0.09:
                middle = left + share * width / 2
                name = "in light" if part in DARK else "in"
                lines.append(
                    f'<text class="{name}" x="{middle:.1f}" y="{top + row - 7}" text-anchor="middle">'
                    f"{percent(share, digits=0)}</text>"
                )
            left += share * width
    height = len(shown) * (row + gap)
    what = f"The account of {plural(len(shown), 'rank')}: shares of the mean step"
    return (
        f'<svg class="figure account" viewBox="0 0 {WIDTH} {max(height, 1)}" role="img" aria-label="{what}">'
        f"{''.join(lines)}</svg>"
    )


def timeline_svg(timeline: StepTimeline) -> str:
    """A row for each rank: computation, and calls in the colour of what they mostly wait for."""
    width, row = 1100, ROW if len(timeline.rows) <= FEW else SMALL
    gap = GAP if row == ROW else 1
    scale = (width - LEFT - RIGHT) / max(timeline.seconds, 1e-12)
    lines = []
    for at, line in enumerate(timeline.rows[:MOST]):
        top = at * (row + gap)
        if row == ROW or at % 8 == 0:
            name = f"rank {line.rank}"
            lines.append(f'<text x="{LEFT - 6}" y="{top + row - 6}" text-anchor="end">{name}</text>')
        lines.append(
            f'<rect class="part-compute" x="{LEFT}" y="{top}" width="{width - LEFT - RIGHT}" height="{row}"/>'
        )
        for span in line.spans:
            text = escape(f"{span.text}: {short_time(span.end - span.begin)}")
            wide = max((span.end - span.begin) * scale, 0.4)
            lines.append(
                f'<rect class="part-{span.part}" x="{LEFT + span.begin * scale:.1f}" y="{top}" '
                f'width="{wide:.1f}" height="{row}"><title>{text}</title></rect>'
            )
    height = min(len(timeline.rows), MOST) * (row + gap)
    ends = f'<text x="{LEFT}" y="{height + 13}">0</text>'
    ends += f'<text x="{width - RIGHT}" y="{height + 13}" text-anchor="end">'
    ends += f"{escape(short_time(timeline.seconds))}</text>"
    return (
        f'<svg class="figure timeline" viewBox="0 0 {width} {height + 18}" role="img" '
        f'aria-label="The median step of each rank over time">{"".join(lines)}{ends}</svg>'
    )
