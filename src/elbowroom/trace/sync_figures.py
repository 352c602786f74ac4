"""How clocks drift, and how sure corrected times are, drawn: the analogues of the thesis' Figs. 3.16 and
3.18, from what `trace-reader sync` or the simulator of clocks says; and as a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import msgspec

from elbowroom.draw import numbers
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.documents import Sync, SyncPoint, SyncRank
from elbowroom.trace.sync_words import advice, summary

SHOWN = 4
"""Clocks that are drawn, the least sure ones."""

_STYLE = (
    "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;"
    "color:var(--ink);background:var(--paper)}h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}"
    "h3{font-size:1rem;margin:1.6rem 0 0}"
    "figure{margin:1rem 0}figcaption{font-size:.9rem;color:var(--faint)}"
    "table{border-collapse:collapse;font-size:.9rem}th,td{padding:.2rem .6rem;text-align:right;"
    "border-bottom:1px solid var(--grid)}th:first-child,td:first-child{text-align:left}"
)
_SIDES: tuple[Any, ...] = ("communication", "computation")


class Clock(NamedTuple):
    """A clock that was compared with the reference's, and the ranks that read it."""

    ranks: tuple[int, ...]
    told: SyncRank

    @property
    def name(self) -> str:
        """`rank 3`, `ranks 2, 3`, `ranks 2, 3 …`."""
        if len(self.ranks) == 1:
            return f"rank {self.ranks[0]}"
        more = " …" if len(self.ranks) > 2 else ""
        return f"ranks {self.ranks[0]}, {self.ranks[1]}{more}"

    @property
    def used(self) -> list[SyncPoint]:
        """The points that the correction goes through, in order."""
        return sorted((point for point in self.told.points if point.used), key=lambda point: point.local)

    @property
    def worst(self) -> float:
        """The largest error bar, ns."""
        return max((one.error_ns or 0.0 for one in self.told.segments), default=0.0)


def clocks(sync: Sync) -> list[Clock]:
    """The clocks but the reference's own, least sure first; ranks with the same points share one."""
    found: dict[tuple[SyncPoint, ...], list[SyncRank]] = {}
    for rank in sync.ranks:
        if any(point.offset or point.low or point.high for point in rank.points):
            found.setdefault(rank.points, []).append(rank)
    every = [Clock(tuple(rank.rank for rank in ranks), ranks[0]) for ranks in found.values()]
    return sorted(every, key=lambda clock: (-clock.worst, clock.ranks))


def sync_figures(sync: Sync) -> list[Figure]:
    """Each of the least sure clocks beside the reference's; their drifts, their error bars, and what fewer
    points would have cost; none where no clock was compared twice.
    """
    shown = [clock for clock in clocks(sync) if len(clock.used) > 1][:SHOWN]
    if not shown:
        return []
    return [
        *(_offsets(clock) for clock in shown),
        _drifts(shown),
        _errors(shown),
        *(_fewer(clock) for clock in shown[:1] if len(clock.used) > 2),
    ]


def sync_report(sync: Sync | Mapping[str, Any] | bytes) -> str:
    """What is known of the clocks of a trace, as one HTML page that needs nothing else: in words, drawn, and
    as a table. `sync`: the document of `trace-reader sync`, read or not.

    msgspec.ValidationError where it is no such document.
    """
    from elbowroom.draw.svg import style, svg

    if isinstance(sync, bytes):
        sync = msgspec.json.decode(sync, type=Sync)
    elif not isinstance(sync, Sync):
        sync = msgspec.convert(sync, type=Sync)
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in summary(sync))
    done = "".join(f"<li>{escape(sentence)}</li>" for sentence in advice(sync))
    drawn = "".join(
        f"<h3>{escape(figure.title)}</h3><figure>{svg(figure)}"
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
        for figure in sync_figures(sync)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Clocks of a trace</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style()}{_STYLE}</style></head><body>'
        f"<h1>Clocks of a trace</h1>{said}"
        f"{f'<h2>What to do</h2><ul>{done}</ul>' if done else ''}"
        f"{f'<h2>Over time</h2>{drawn}' if drawn else ''}<h2>Ranks</h2>{_table(sync)}</body></html>\n"
    )


def line(clock: Clock, local: int) -> float:
    """The offset at `local` on the line from the first to the last point that is used, ns."""
    first, last = clock.used[0], clock.used[-1]
    return first.offset + (last.offset - first.offset) * (local - first.local) / (last.local - first.local)


def _seconds(clock: Clock, local: int) -> float:
    return (local - clock.used[0].local) / 1e9


def _offsets(clock: Clock) -> Figure:
    """Offsets less what a constant drift explains, with their bounds, and the line that corrects times."""
    used = clock.used
    left_out = [point for point in clock.told.points if not point.used]
    drift = (used[-1].offset - used[0].offset) / (used[-1].local - used[0].local) * 1e6
    series = [
        _points(clock, used, "points", "communication"),
        Series(
            name="correction",
            side="communication",
            style="line",
            drawn="smooth",
            x=tuple(_seconds(clock, point.local) for point in used),
            y=tuple((point.offset - line(clock, point.local)) / 1e3 for point in used),
            value="offset",
        ),
    ]
    if left_out:
        series.append(_points(clock, left_out, "left out", "computation"))
    rejected = f"; {len(left_out)} points left out" if left_out else ""
    return Figure(
        name=f"offset-{clock.ranks[0]}",
        title=f"{clock.name} ({clock.told.host}) beside the reference",
        x=Axis(label="time (s)"),
        left=Axis(label="offset beyond a constant drift (µs)"),
        series=tuple(series),
        caption=f"A constant drift of {numbers.number(drift, 4)} ppm is taken away. Whiskers: guaranteed "
        f"bounds{rejected}. As Fig. 3.18 of the thesis, upper part.",
    )


def _points(clock: Clock, points: Sequence[SyncPoint], name: str, side: Any) -> Series:
    def over(value: int, point: SyncPoint) -> float:
        return (value - line(clock, point.local)) / 1e3

    return Series(
        name=name,
        side=side,
        style="line",
        drawn="points",
        x=tuple(_seconds(clock, point.local) for point in points),
        y=tuple(over(point.offset, point) for point in points),
        low=tuple(over(point.low, point) for point in points),
        high=tuple(over(point.high, point) for point in points),
        value="offset",
        band="bounds",
    )


def _stairs(clock: Clock, values: Sequence[float], place: int) -> Series:
    """A value for each stretch between two points, as a curve with its steps."""
    x, y = [], []
    for stretch, value in zip(clock.told.segments, values, strict=True):
        x += [_seconds(clock, stretch.from_), _seconds(clock, stretch.to)]
        y += [value, value]
    return Series(
        name=clock.name,
        side=_SIDES[place % 2],
        style="line",
        drawn="smooth",
        x=tuple(x),
        y=tuple(y),
        value="value",
    )


def _drifts(shown: Sequence[Clock]) -> Figure:
    series = []
    for place, clock in enumerate(shown):
        drifts = [stretch.drift_ppb for stretch in clock.told.segments]
        middle = sorted(drifts)[len(drifts) // 2]
        series.append(_stairs(clock, [drift - middle for drift in drifts], place))
    return Figure(
        name="drifts",
        title="Rates against the reference",
        x=Axis(label="time (s)"),
        left=Axis(label="drift beyond its median (ppb)"),
        series=tuple(series),
        caption="A line through two points is right as long as this stays level; it rarely does for minutes.",
    )


def _errors(shown: Sequence[Clock]) -> Figure:
    return Figure(
        name="errors",
        title="How wrong corrected times may be",
        x=Axis(label="time (s)"),
        left=Axis(label="error bar (ns)", scale="log10"),
        series=tuple(
            _stairs(clock, [max(stretch.error_ns or 0.0, 1.0) for stretch in clock.told.segments], place)
            for place, clock in enumerate(shown)
        ),
        caption="Half the bounds' width, and how far the clock may leave the line between two points.",
    )


def _fewer(clock: Clock) -> Figure:
    """What times would be wrong by with one point, and with two (thesis, Fig. 3.16)."""
    used = clock.used
    x = tuple(_seconds(clock, point.local) for point in used)

    def wrong(name: str, side: Any, values: Sequence[float]) -> Series:
        return Series(name=name, side=side, style="line", drawn="smooth", x=x, y=tuple(values), value="error")

    one = [max(abs(point.offset - used[0].offset) / 1e3, 1e-3) for point in used]
    two = [max(abs(point.offset - line(clock, point.local)) / 1e3, 1e-3) for point in used]
    bars = [max(_bar(clock, point) / 1e3, 1e-3) for point in used]
    return Figure(
        name="fewer",
        title=f"{clock.name}: what fewer points would have cost",
        x=Axis(label="time (s)"),
        left=Axis(label="error (µs)", scale="log10"),
        series=(
            wrong("one point", "computation", one),
            wrong("two points", "both", two),
            wrong("all points: error bar", "communication", bars),
        ),
        caption="One point knows no drift; two know a constant one (Fig. 3.16 of the thesis).",
    )


def _bar(clock: Clock, point: SyncPoint) -> float:
    around = [one.error_ns or 0.0 for one in clock.told.segments if one.from_ <= point.local <= one.to]
    return max(around, default=0.0)


def _table(sync: Sync) -> str:
    rows = []
    for rank in sync.ranks:
        clock = Clock((rank.rank,), rank)
        used = clock.used
        drift = (
            numbers.number((used[-1].offset - used[0].offset) / (used[-1].local - used[0].local) * 1e6, 4)
            if len(used) > 1
            else "n/a"
        )
        error = numbers.number(clock.worst, 4) if rank.segments else "n/a"
        cells = (
            str(rank.rank), rank.host, str(len(rank.points)), str(len(rank.points) - len(used)), drift, error,
            ", ".join(rank.flags),
        )  # fmt: skip
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    names = ("rank", "host", "points", "left out", "drift (ppm)", "error at most (ns)", "flags")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
