"""Tasks, workers and messages over time (thesis, Figs. 3.1 and 3.16).

Figures of how many events there are, of which type, when (thesis, Figs. 3.5 to 3.7).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.trace.activity import (
    IDLE,
    TASK,
    UNKNOWN,
    BarrierExits,
    Floats,
    Ints,
    RecordedActivity,
    exits_figure,
    exits_summary,
    ns_inside,
)
from elbowroom.trace.columns import CATEGORIES, SET_UP, communicates, sets_up
from elbowroom.trace.documents import Stat, TypeStat

_SECOND = 1e9
_TIME = Axis(label="Time (s)")
MOST_MESSAGES = 4000
"""Messages that are drawn, evenly chosen among all."""


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of all processes that were submitted in an iteration: how many ran, when the first one began
    and the last one ended, and the median of their beginnings, ns.
    """

    iteration: int
    tasks: int
    start_ns: int
    median_start_ns: float
    end_ns: int


class ActivityOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Over bins of `bin_ns`: at their ends the tasks that are submitted and not yet begun, ready and not yet
    begun (None: not recorded), and running; the workers' share of time in tasks, in communication, idle
    (without a task to run; None: not recorded) and elsewhere; `imbalance`: the busiest worker's time in tasks
    over the mean of all, less 1 (None: no task); `barriers`: when processes leave them (None: not known);
    `polling`: of the time without a task, the share in which workers used their cores (None: not recorded);
    `iterations`: where the program named them.
    """

    schema: str = "elbowroom/trace-activity"
    version: int = 1
    workers: int
    tasks: int
    messages: int
    duration_ns: int
    bin_ns: float
    submitted: tuple[int, ...] | None
    ready: tuple[int, ...] | None
    running: tuple[int, ...]
    in_tasks: tuple[float, ...]
    in_communication: tuple[float, ...]
    idle: tuple[float, ...] | None = None
    elsewhere: tuple[float, ...]
    imbalance: tuple[float | None, ...]
    whole_utilisation: float | None
    whole_imbalance: float | None
    barriers: BarrierExits | None = None
    polling: float | None = None
    iterations: tuple[Iteration, ...] = ()


def over_time(activity: RecordedActivity, bins: int) -> ActivityOverTime:
    """What the tasks and workers did in each of so many bins of time."""
    edges = np.linspace(0, max(activity.duration, 1), bins + 1)
    tasks = activity.tasks
    started = _before(tasks.start, edges[1:])
    busy = _shares(activity, edges, (TASK,))
    communicating = np.clip(_shares(activity, edges, CATEGORIES), 0, 1 - np.clip(busy, 0, 1))
    idle = None
    if any((worker, IDLE) in activity.spans for worker in activity.workers):
        idle = np.clip(_shares(activity, edges, (IDLE,)), 0, 1 - np.clip(busy + communicating, 0, 1))
    means = busy.mean(axis=0) if len(busy) else np.zeros(bins)
    others = np.array(_mean(communicating, bins)) + (0 if idle is None else np.array(_mean(idle, bins)))
    imbalances = _imbalance(busy)
    whole = busy.mean(axis=1)
    return ActivityOverTime(
        workers=len(activity.workers),
        tasks=len(tasks.task),
        messages=len(activity.communications.message),
        duration_ns=activity.duration,
        bin_ns=float(edges[1] - edges[0]),
        submitted=_waiting(tasks.submitted, started, edges),
        ready=_waiting(tasks.ready, started, edges),
        running=tuple((started - _before(tasks.end, edges[1:])).tolist()),
        in_tasks=tuple(means.tolist()),
        in_communication=tuple(_mean(communicating, bins)),
        idle=None if idle is None else tuple(_mean(idle, bins)),
        elsewhere=tuple((1 - means - others).tolist()) if len(busy) else (),
        imbalance=tuple(imbalances),
        whole_utilisation=float(whole.mean()) if len(whole) else None,
        whole_imbalance=float(whole.max() / whole.mean() - 1) if len(whole) and whole.mean() else None,
        barriers=exits_summary(activity.exits, activity.ranks),
        polling=activity.polling,
        iterations=_iterations(activity),
    )


def _iterations(activity: RecordedActivity) -> tuple[Iteration, ...]:
    tasks = activity.tasks
    ran = (tasks.iteration != UNKNOWN) & (tasks.start != UNKNOWN) & (tasks.end != UNKNOWN)
    numbers, start, end = tasks.iteration[ran], tasks.start[ran], tasks.end[ran]
    return tuple(
        Iteration(
            iteration=int(number),
            tasks=int((numbers == number).sum()),
            start_ns=int(start[numbers == number].min()),
            median_start_ns=float(np.median(start[numbers == number])),
            end_ns=int(end[numbers == number].max()),
        )
        for number in np.unique(numbers)
    )


def _mean(shares: Floats, bins: int) -> list[float]:
    values: list[float] = shares.mean(axis=0).tolist() if len(shares) else [0.0] * bins
    return values


def _before(times: Ints, moments: Floats) -> Ints:
    """How many of the known times are at or before each moment."""
    return np.searchsorted(np.sort(times[times != UNKNOWN]), moments, side="right").astype(np.int64)


def _waiting(times: Ints, started: Ints, edges: Floats) -> tuple[int, ...] | None:
    """How many have that time behind them and have not begun; None where it was not recorded."""
    if not (times != UNKNOWN).any():
        return None
    return tuple(np.maximum(_before(times, edges[1:]) - started, 0).tolist())


def _shares(activity: RecordedActivity, edges: Floats, categories: Sequence[str]) -> Floats:
    """Of each worker (row) and bin, the share of time inside spans of the categories."""
    rows = []
    for worker in activity.workers:
        inside = np.zeros(len(edges) - 1)
        for category in categories:
            if (worker, category) in activity.spans:
                inside += ns_inside(*activity.spans[worker, category], edges)
        rows.append(inside / np.diff(edges))
    return np.array(rows).reshape(len(rows), len(edges) - 1)


def _imbalance(busy: Floats) -> list[float | None]:
    if not len(busy):
        return [None] * busy.shape[1]
    means = busy.mean(axis=0)
    return [
        float(most / mean - 1) if mean > 0 else None
        for most, mean in zip(busy.max(axis=0), means, strict=True)
    ]


def activity_figures(activity: RecordedActivity, over_time: ActivityOverTime) -> list[Figure]:
    """Tasks, states of workers, utilisation and imbalance, durations of messages, exits of barriers."""
    figures = []
    if over_time.tasks:
        figures += [_task_figure(over_time), _state_figure(over_time), _balance_figure(over_time)]
    if over_time.iterations:
        figures.append(_iteration_figure(over_time.iterations))
    if over_time.messages:
        figures.append(_message_figure(activity))
    if activity.exits.size:
        figures.append(exits_figure(activity.exits, activity.ranks))
    return figures


def _middles(over_time: ActivityOverTime) -> tuple[float, ...]:
    return tuple((place + 0.5) * over_time.bin_ns / _SECOND for place in range(len(over_time.running)))


def _task_figure(over_time: ActivityOverTime) -> Figure:
    ends = tuple((place + 1) * over_time.bin_ns / _SECOND for place in range(len(over_time.running)))
    curves: tuple[tuple[str, Hue, tuple[int, ...] | None], ...] = (
        ("submitted, not started", "black", over_time.submitted),
        ("ready, not started", "blue", over_time.ready),
        ("running", "red", over_time.running),
    )
    return Figure(
        name="tasks",
        title="Tasks over time",
        x=_TIME,
        left=Axis(label="Tasks"),
        series=tuple(
            _line(name, hue, ends, [float(value) for value in values])
            for name, hue, values in curves
            if values is not None
        ),
    )


def _state_figure(over_time: ActivityOverTime) -> Figure:
    rest: tuple[tuple[str, Hue, Sequence[float]], ...] = (
        (("elsewhere: runtime, waiting, idle", "black", over_time.elsewhere),)
        if over_time.idle is None
        else (("idle", "black", over_time.idle), ("elsewhere: runtime, waiting", "blue", over_time.elsewhere))
    )
    states: tuple[tuple[str, Hue, Sequence[float]], ...] = (
        ("in tasks", "red", over_time.in_tasks),
        ("in communication", "blue", over_time.in_communication),
        *rest,
    )
    return Figure(
        name="states",
        title=f"States of {over_time.workers} workers over time",
        x=_TIME,
        left=Axis(label="Share of the workers' time"),
        series=tuple(
            Series(
                name=name,
                hue=hue,
                style="line",
                drawn="area",
                x=_middles(over_time),
                y=tuple(values),
                value="share",
            )
            for name, hue, values in states
        ),
    )


def _iteration_figure(iterations: Sequence[Iteration]) -> Figure:
    """From the first begin to the last end of each iteration's tasks: iterations overlap where bands do."""
    return Figure(
        name="iterations",
        title=f"{len(iterations)} iterations",
        x=Axis(label="Iteration", whole=True),
        left=Axis(label="Time (s)"),
        series=(
            Series(
                name="tasks",
                hue="red",
                style="line",
                x=tuple(float(one.iteration) for one in iterations),
                y=tuple(one.median_start_ns / _SECOND for one in iterations),
                low=tuple(one.start_ns / _SECOND for one in iterations),
                high=tuple(one.end_ns / _SECOND for one in iterations),
                value="median begin",
                band="first begin – last end",
            ),
        ),
    )


def _balance_figure(over_time: ActivityOverTime) -> Figure:
    known = [(x, y) for x, y in zip(_middles(over_time), over_time.imbalance, strict=True) if y is not None]
    return Figure(
        name="balance",
        title="Utilisation and imbalance over time",
        x=_TIME,
        left=Axis(label="Utilisation of the workers", reach=1.0),
        below=Axis(label="Imbalance: busiest worker / mean - 1"),
        series=(
            _line("utilisation", "blue", _middles(over_time), over_time.in_tasks),
            msgspec.structs.replace(
                _line("imbalance", "red", [x for x, _ in known], [y for _, y in known]), axis="below"
            ),
        ),
    )


def _line(name: str, hue: Hue, x: Sequence[float], y: Sequence[float]) -> Series:
    return Series(name=name, hue=hue, style="line", drawn="smooth", x=tuple(x), y=tuple(y), value=name)


def _message_figure(activity: RecordedActivity) -> Figure:
    """Durations by one offset for the whole job, and by offsets between comparisons (Fig. 3.16)."""
    every = activity.communications
    chosen = np.unique(np.linspace(0, len(every.sent) - 1, MOST_MESSAGES).astype(np.int64))
    x = tuple((every.sent[chosen] / _SECOND).tolist())
    curves: tuple[tuple[str, Hue, Ints], ...] = (
        ("one offset for the whole job", "black", every.received_once - every.sent_once),
        ("corrected between comparisons", "blue", every.received - every.sent),
    )
    return Figure(
        name="durations",
        title="Durations of messages over time",
        x=Axis(label="Time of the send (s)"),
        left=Axis(label="Duration of a message (µs)", reference=0.0),
        series=tuple(
            Series(
                name=name,
                hue=hue,
                style="line",
                drawn="points",
                x=x,
                y=tuple((durations[chosen] / 1e3).tolist()),
                value="duration",
            )
            for name, hue, durations in curves
        ),
        caption="Below 0 a message arrives before it was sent.",
    )


_HUES: tuple[Hue, ...] = ("red", "blue")

BARS = 7
"""Types that have a bar of their own, the most frequent ones: more names do not fit side by side."""

_LETTERS = 9
"""Of a name's line below a bar."""

_AREAS = 3
"""Types of each hue that have an area of their own: a hue has so many colours."""


def trace_figures(stat: Stat) -> list[Figure]:
    """Events by type, per second over time, and per second over time by type (thesis, Figs. 3.5 to 3.7)."""
    there = [one for one in stat.types if one.events]
    ordered = sorted(there, key=lambda one: (-one.events, one.category, one.name))
    return [_by_type(ordered), _over_time(stat, ordered), _by_type_over_time(stat, ordered)]


def rates(stat: Stat, one: TypeStat) -> tuple[float, ...]:
    """Events per second in each bin."""
    seconds = stat.bin_ns / 1e9
    return tuple(count / seconds for count in one.per_bin)


def _by_type(ordered: Sequence[TypeStat]) -> Figure:
    shown, rest = ordered[:BARS], ordered[BARS:]
    names = [_breakable(one.name) for one in shown] + [f"{len(rest)} more"] * bool(rest)
    series = [
        _bars("blue", "MPI and messages", shown),
        _bars("red", "other types", shown),
        _bars("black", SET_UP, shown),
    ]
    if rest:
        series.append(
            Series(
                name="all other types",
                style="line",
                drawn="bars",
                x=(float(len(shown)),),
                y=(float(sum(one.events for one in rest)),),
                value="events",
            )
        )
    return Figure(
        name="types",
        title="Events by type",
        x=Axis(label="type", names=tuple(names)),
        left=Axis(label="events"),
        series=tuple(one for one in series if one is not None),
    )


def _bars(hue: Hue, name: str, shown: Sequence[TypeStat]) -> Series | None:
    places = [place for place, one in enumerate(shown) if _hue(one) == hue]
    if not places:
        return None
    return Series(
        name=name,
        hue=hue,
        style="line",
        drawn="bars",
        x=tuple(float(place) for place in places),
        y=tuple(float(shown[place].events) for place in places),
        value="events",
    )


def _breakable(name: str) -> str:
    """Long names may go on in another line after an underscore."""
    return name if len(name) <= _LETTERS else name.replace("_", "_ ")


def _over_time(stat: Stat, ordered: Sequence[TypeStat]) -> Figure:
    return Figure(
        name="events",
        title="Events over time",
        x=Axis(label="time (s)"),
        left=Axis(label="events per second"),
        series=(_area(stat, "all types", "black", ordered),) if ordered else (),
    )


def _by_type_over_time(stat: Stat, ordered: Sequence[TypeStat]) -> Figure:
    own = [one for hue in _HUES for one in [one for one in ordered if _hue(one) == hue][:_AREAS]]
    rest = [one for one in ordered if one not in own]
    series = [_area(stat, one.name, _hue(one), [one]) for one in own]
    if rest:
        series.append(_area(stat, f"{len(rest)} other types", "black", rest))
    return Figure(
        name="types-over-time",
        title="Events over time by type",
        x=Axis(label="time (s)"),
        left=Axis(label="events per second"),
        series=tuple(series),
    )


def _area(stat: Stat, name: str, hue: Hue, types: Sequence[TypeStat]) -> Series:
    """Events per second of these types together, at the middles of the bins."""
    heights = [sum(values) for values in zip(*(rates(stat, one) for one in types), strict=True)]
    return Series(
        name=name,
        hue=hue,
        style="line",
        drawn="area",
        x=tuple((place + 0.5) * stat.bin_ns / 1e9 for place in range(len(heights))),
        y=tuple(heights),
        value="events per second",
    )


def _hue(one: TypeStat) -> Hue:
    if sets_up(one.name):
        return "black"
    return "blue" if communicates(one.category, one.name) else "red"
