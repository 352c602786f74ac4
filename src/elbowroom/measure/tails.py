"""Tails of a run's messages: from the entries of its journal to percentiles, stalls, and their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from elbowroom.draw.figure import TextTable
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry
from elbowroom.quantities import format_size, number, short_time, span
from elbowroom.stats.interval import Interval
from elbowroom.stats.tails import PERCENTILES, Disturbance, Tail, TailValue, Window, disturbances, tail
from elbowroom.store.journal import Due

NO_PERIOD = (
    "no message of this run was due at a fixed time, and a tail needs each message; measure it again with "
    "--set message_period=20us"
)
"""Why most runs have no tails."""

_STYLES: dict[str, Style] = {"B": "alone", "AB": "together"}
_SHOWN = 5
"""Classes of stalls that are printed, the longest ones."""


def tails(entries: Iterable[Entry], points: Sequence[Point]) -> tuple[PointTail, ...]:
    """The tails of the points whose messages had a period, alone and together, in the order of the points."""
    windows: dict[tuple[str, Style], list[Window]] = {}
    calls: dict[tuple[str, Style], float] = {}
    for entry in entries:
        for phase in () if entry.closing else entry.record.get("phases", ()):
            plain = phase.get("comm", {}).get("due")
            if plain is None or phase.get("status") == "void":
                continue
            due = msgspec.convert(plain, Due)
            key = (entry.point, _STYLES[phase["phase"]])
            windows.setdefault(key, []).append(_window(phase["comm"], due))
            calls[key] = due.clock_call_ns
    keys = [(point.id, style) for point in points for style in _STYLES.values()]
    return tuple(point_tail(*key, windows[key], calls[key]) for key in keys if key in windows)


def _window(comm: Mapping[str, Any], due: Due) -> Window:
    """Times in us; a batch is one message, whose value is half of its round trip."""
    trips = 2 * np.array(comm["batches"], dtype=np.float64)
    late = np.array(due.late_us, dtype=np.float64)
    times = due.first_ns / 1e3 + due.period_us * np.arange(len(trips), dtype=np.float64)
    return Window(period=due.period_us, due=times, latencies=late + trips, round_trips=trips)


def tables(tails: Sequence[PointTail], points: Sequence[Point]) -> tuple[TextTable, ...]:
    """A table for each point: percentiles of the latencies alone and together; its stalls are below it."""
    known = {point.id: point for point in points}
    by_point: dict[str, list[PointTail]] = {}
    for one in tails:
        by_point.setdefault(one.point, []).append(one)
    return tuple(_table(known[point], several) for point, several in by_point.items())


def _table(point: Point, tails: Sequence[PointTail]) -> TextTable:
    measured = [(one.style, one.tail) for one in tails if one.tail is not None]
    rows = []
    for at, percent in enumerate(PERCENTILES if measured else ()):
        rows.append(
            (f"p{percent:g}", *(cell for _, tail in measured for cell in _cells(tail.percentiles[at])))
        )
    if measured:
        rows.append(("max", *(cell for _, tail in measured for cell in (number(tail.maximum), ""))))
    kernel = "messages" if point.kernel == "none" else f"{point.kernel}, n = {point.n}"
    return TextTable(
        title=f"Latency from the due time, us: {kernel}, {format_size(point.size)}"
        + " (control)" * (point.role == "control"),
        columns=("", *(column for style, _ in measured for column in (style, "95 %"))),
        rows=tuple(rows),
        left=(0, *(2 + 2 * at for at in range(len(measured)))),
        below=tuple(sentence for one in tails for sentence in _sentences(one)),
        legend="A latency is counted from the time at which the message is due until its answer has arrived, "
        "also while earlier messages are delayed. n/a: too few independent latencies.",
    )


def _cells(value: TailValue) -> tuple[str, str]:
    if value.value is None or value.low is None or value.high is None:
        return "n/a", f"needs {value.needed}"
    return number(value.value), span(number(value.low), number(value.high))


def _sentences(one: PointTail) -> list[str]:
    if one.tail is None:
        return [f"{one.style}: n/a, {one.reason}"]
    share = f"{100 * one.clock_share:.2g} %"
    counted = f"{one.tail.count} messages, one every {_duration(one.period_us)}"
    if one.tail.independent < one.tail.count:
        counted += f", as good as {one.tail.independent} independent ones"
    head = f"{one.style}: {counted}; a clock call of {one.clock_call_ns:.3g} ns ({share}) is in each time."
    if not one.disturbances:
        return [head, f"{one.style}: no stalls."]
    return [head, *(f"{one.style}: {_stalls(stalls)}" for stalls in one.disturbances[:_SHOWN])]


def _stalls(disturbance: Disturbance) -> str:
    plural = "stall" if disturbance.count == 1 else "stalls"
    text = f"{disturbance.count} {plural} of {_with_ends(disturbance.length)}"
    if disturbance.period is None:
        return f"{text}, no period."
    return f"{text}; {disturbance.in_step} of them follow a period of {_with_ends(disturbance.period)}."


def _with_ends(value: Interval) -> str:
    return f"{_duration(value.value)} ({span(_duration(value.low), _duration(value.high))})"


def _duration(us: float) -> str:
    return short_time(us * 1e-6, digits=4)


Style = Literal["alone", "together"]


class PointTail(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of a point's messages, us, each counted from the time at which the message was due until its
    answer had arrived.

    `round_trip_us`: median from the actual start; every time has `clock_call_ns` in it. `tail` is None where
    `reason` says why. Lengths and periods of `disturbances` are in us too.
    """

    point: str
    style: Style
    period_us: float
    round_trip_us: float
    clock_call_ns: float
    tail: Tail | None
    disturbances: tuple[Disturbance, ...] = ()
    reason: str = ""

    @property
    def clock_share(self) -> float:
        """The part of the median round trip that is the cost of reading the clock."""
        return self.clock_call_ns / 1e3 / self.round_trip_us if self.round_trip_us else 0.0


def point_tail(point: str, style: Style, windows: Sequence[Window], clock_call_ns: float) -> PointTail:
    """The tail over all windows of a point, in the order of measuring; times in us.

    Where a round trip takes longer than the period on average, messages wait ever longer: their latencies are
    those of the window's length, and have no percentiles.
    """
    trips = np.concatenate([window.round_trips for window in windows])
    period = windows[0].period
    shared = PointTail(
        point=point,
        style=style,
        period_us=period,
        round_trip_us=float(np.median(trips)),
        clock_call_ns=clock_call_ns,
        tail=None,
    )
    mean = float(trips.mean())
    if mean >= period:
        return msgspec.structs.replace(
            shared,
            reason=f"a message is due every {period:g} us, and a round trip takes {mean:.3g} us on average: "
            f"messages wait ever longer; give a message_period of {2 * mean:.2g} us or more",
        )
    latencies = np.concatenate([window.latencies for window in windows])
    return msgspec.structs.replace(shared, tail=tail(latencies), disturbances=disturbances(windows))
