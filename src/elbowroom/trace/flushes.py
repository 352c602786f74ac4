"""What an application loses where the recorder writes full buffers while it runs (thesis, Figs. 3.2, 3.3).

Runs without and with flushes alternate. Those with flushes write each buffer for the first time after
another number of events, so that flushes meet the application at different times. Pure: runs in, a document
out.

Figures: performance of each run with and without flushes, and when flushes were (thesis, Figs. 3.2 to 3.4).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from elbowroom.draw.figure import Axis, Figure, Hue, Mark, Series
from elbowroom.draw.html import figure_page
from elbowroom.quantities import with_span
from elbowroom.stats.interval import Interval
from elbowroom.stats.summary import summarise
from elbowroom.trace.activity import TASK, Floats, RecordedActivity, ns_inside
from elbowroom.trace.columns import BEGIN, END, Block, communicates
from elbowroom.trace.overhead import TimedRun, overhead

FLUSH = "flush"
"""Type of the recorder's events around a flush, and the policy that has them."""

PLAIN = "without flushes"


class Flush(msgspec.Struct, frozen=True, kw_only=True):
    """A thread wrote its buffer at `begin_s` after the start of the trace, for `seconds`: `inside` which span
    (its type; None: between spans), of which `category`; `others_in_tasks`: the share of that time which the
    other threads that run tasks spent in them (None: there are none).
    """

    rank: int
    thread: str
    begin_s: float
    seconds: float
    inside: str | None = None
    category: str | None = None
    others_in_tasks: float | None = None


class FlushRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its metric, the share of performance that it lost to the median of the runs without flushes
    (negative: it gained), how many events were recorded and did not fit, and its flushes.
    """

    repetition: int
    with_flushes: bool
    value: float
    lost: float
    events: int
    missing: int = 0
    trace_s: float
    flushes: tuple[Flush, ...] = ()


class FlushCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Runs in the order in which they ran; `undisturbed`: the median metric of those without flushes; `cost`:
    how much slower those with flushes are (0.03: 3 %; None: unknown); `buffer`: bytes of each thread.
    """

    schema: str = "elbowroom/trace-flushes"
    version: int = 1
    command: tuple[str, ...]
    metric: str
    rate: bool
    repeat: int
    seed: int
    buffer: int
    undisturbed: Interval
    cost: Interval | None
    runs: tuple[FlushRun, ...]

    @property
    def worst(self) -> FlushRun:
        """The run with flushes that lost most."""
        return max((run for run in self.runs if run.with_flushes), key=lambda run: run.lost)


class RecordedRun(NamedTuple):
    """A run with the flushes of its trace."""

    timed: TimedRun
    trace_s: float
    flushes: tuple[Flush, ...]


def flush_order(repeat: int, seed: int) -> Iterator[tuple[int, float | None]]:
    """Repetition of each run, and after which share of the events buffers are flushed first (None: never).

    Both kinds of run are in each repetition, in random order; the shares are the middles of `repeat` equal
    parts, each used once.
    """
    rng = random.Random(seed)
    shares = [(place + 0.5) / repeat for place in range(repeat)]
    rng.shuffle(shares)
    for repetition, share in enumerate(shares):
        pair: list[float | None] = [None, share]
        rng.shuffle(pair)
        yield from ((repetition, one) for one in pair)


def find_flushes(activity: RecordedActivity, events: Block) -> tuple[Flush, ...]:
    """The flushes of a trace in order of time, with what their threads and the others did meanwhile."""
    job = activity.job
    own = [index for index, kind in enumerate(job.types) if kind.name == FLUSH]
    spans = events[np.isin(events["kind"], (BEGIN, END))]
    is_flush = np.isin(spans["type"], own)
    flushes = []
    for thread in np.unique(spans["thread"][is_flush]):
        of_thread = spans["thread"] == thread
        begins = spans["time"][of_thread & is_flush & (spans["kind"] == BEGIN)]
        ends = spans["time"][of_thread & is_flush & (spans["kind"] == END)]
        for begin, end in zip(begins, ends, strict=False):
            before = spans[of_thread & ~is_flush & (spans["time"] <= begin)]
            kind = _innermost(before)
            flushes.append(
                Flush(
                    rank=job.ranks[job.threads[thread].rank].rank,
                    thread=job.threads[thread].name,
                    begin_s=int(begin) / 1e9,
                    seconds=int(end - begin) / 1e9,
                    inside=None if kind is None else job.types[kind].name,
                    category=None if kind is None else job.category(job.types[kind]),
                    others_in_tasks=_others_in_tasks(activity, int(thread), np.array([begin, end], float)),
                )
            )
    return tuple(sorted(flushes, key=lambda flush: flush.begin_s))


def _innermost(spans: Block) -> int | None:
    """The type of the span that is open after these begins and ends of a thread."""
    depth = np.cumsum(np.where(spans["kind"] == BEGIN, 1, -1))
    # An end without its begin closes nothing.
    depth = depth - np.minimum(np.minimum.accumulate(depth), 0) if len(depth) else depth
    if not len(depth) or depth[-1] <= 0:
        return None
    opened = np.flatnonzero((spans["kind"] == BEGIN) & (depth == depth[-1]))
    return int(spans["type"][opened[-1]])


def _others_in_tasks(activity: RecordedActivity, thread: int, edges: Floats) -> float | None:
    others = [worker for worker in activity.workers if worker != thread]
    if not others or edges[1] <= edges[0]:
        return None
    spans = [activity.spans.get((worker, TASK)) for worker in others]
    inside = sum(float(ns_inside(*span, edges)[0]) for span in spans if span is not None)
    return inside / (len(others) * float(edges[1] - edges[0]))


def analyse_flushes(
    runs: Sequence[RecordedRun],
    *,
    command: Sequence[str],
    metric: str,
    rate: bool,
    repeat: int,
    seed: int,
    buffer: int,
) -> FlushCosts:
    """The document of these runs, of which both kinds are in each repetition."""
    plain = [run.timed for run in runs if run.timed.set == PLAIN]
    flushed = [run.timed for run in runs if run.timed.set == FLUSH]
    summary = summarise([run.value for run in plain], "", seed, [run.repetition for run in plain])
    low, high = summary.ends(summary.median)
    return FlushCosts(
        command=tuple(command),
        metric=metric,
        rate=rate,
        repeat=repeat,
        seed=seed,
        buffer=buffer,
        undisturbed=Interval(value=summary.median, low=low, high=high),
        cost=overhead(plain, flushed, rate=rate),
        runs=tuple(
            FlushRun(
                repetition=run.timed.repetition,
                with_flushes=run.timed.set == FLUSH,
                value=run.timed.value,
                lost=_lost(run.timed.value, summary.median, rate=rate),
                events=run.timed.events,
                missing=run.timed.lost,
                trace_s=run.trace_s,
                flushes=run.flushes,
            )
            for run in runs
        ),
    )


def _lost(value: float, undisturbed: float, *, rate: bool) -> float:
    """The share of performance, which is the metric where it is a rate and its inverse where it is a time."""
    if rate:
        return 1 - value / undisturbed if undisturbed else 0.0
    return 1 - undisturbed / value if value else 0.0


_MS = 1e3
_MOST_MARKS = 12


def flush_figures(costs: FlushCosts) -> list[Figure]:
    """The metric of each run in order, runs with flushes marked; then, for each flush, when it was in its run
    and how much performance that run lost.
    """
    return [_by_run(costs), _by_time(costs)]


def _quantity(costs: FlushCosts) -> str:
    return "Wall time (s)" if costs.metric == "wall" else "Metric of the program"


def _by_run(costs: FlushCosts) -> Figure:
    numbered = list(enumerate(costs.runs, start=1))
    kinds: tuple[tuple[str, Hue, bool], ...] = (
        ("without flushes", "blue", False),
        ("with flushes", "red", True),
    )
    hit = [(number, run) for number, run in numbered if run.flushes]
    return Figure(
        name="runs",
        title="Each run, and where the recorder flushed its buffers",
        x=Axis(label="Run", whole=True),
        left=Axis(label=_quantity(costs), reference=costs.undisturbed.value),
        series=tuple(
            Series(
                name=name,
                hue=hue,
                style="line",
                drawn="points",
                x=tuple(float(number) for number, run in numbered if run.with_flushes is kind),
                y=tuple(run.value for _, run in numbered if run.with_flushes is kind),
                value="metric",
            )
            for name, hue, kind in kinds
        ),
        marks=tuple(Mark(x=float(number), text=f"run {number}: {_flushed(run)}") for number, run in hit)
        if len(hit) <= _MOST_MARKS
        else (),
        caption="The line across is the median of the runs without flushes.",
    )


def _flushed(run: FlushRun) -> str:
    total = _MS * sum(flush.seconds for flush in run.flushes)
    count = f"{len(run.flushes)} flush{'es' if len(run.flushes) != 1 else ''}"
    lost = f"{run.lost:.1%}".replace("-", "\u2212")
    return f"{count} from {run.flushes[0].begin_s:.3g} s on, {total:.3g} ms in all; lost {lost}"


def _by_time(costs: FlushCosts) -> Figure:
    """Each flush, in the colour of what its thread did (thesis, Fig. 3.3)."""
    kinds: tuple[tuple[str, Hue], ...] = (
        ("in a task", "red"),
        ("in communication", "blue"),
        ("elsewhere", "black"),
    )
    flushes = [(run, flush) for run in costs.runs for flush in run.flushes]
    return Figure(
        name="times",
        title="When flushes were, and what their runs lost",
        x=Axis(label="Time of the flush since the start of the trace (s)"),
        left=Axis(label="Lost performance (%)", reference=0.0),
        series=tuple(
            Series(
                name=name,
                hue=hue,
                style="line",
                drawn="points",
                x=tuple(flush.begin_s for _, flush in flushes if where_of(flush) == name),
                y=tuple(100 * run.lost for run, flush in flushes if where_of(flush) == name),
                value="lost performance",
            )
            for name, hue in kinds
            if any(where_of(flush) == name for _, flush in flushes)
        ),
    )


def where_of(flush: Flush) -> str:
    """What the thread did that was interrupted."""
    if flush.category == "task":
        return "in a task"
    return "in communication" if communicates(flush.category, flush.inside or "") else "elsewhere"


def flush_sentences(costs: FlushCosts) -> list[str]:
    """What flushes cost in the median, and the worst run."""
    worst = costs.worst
    if costs.cost is None:
        first = "n/a: the metric is not positive in every run, so the cost of flushes is unknown."
    else:
        ends = (f"{end:.1%}" for end in (costs.cost.value, costs.cost.low, costs.cost.high))
        first = f"Runs with flushes are {with_span(*ends)} slower than runs without.".replace("-", "\u2212")
        if costs.cost.low <= 0 <= costs.cost.high:
            first += " Whether flushes cost anything is undecided: use more repetitions on a quiet machine."
    sentences = [first]
    if not any(run.flushes for run in costs.runs):
        sentences.append("No buffer was flushed: no thread recorded enough events.")
    elif worst.flushes:
        sentences.append(f"The slowest of them had {_flushed(worst)} of its performance.")
    missing = sum(run.missing for run in costs.runs)
    if missing:
        sentences.append(
            f"{missing} events did not fit into the buffers, so runs without flushes recorded less."
        )
    return sentences


def flush_page(costs: FlushCosts) -> str:
    """Sentences, figures and the table of flushes as one page."""
    rows = [row for number, run in enumerate(costs.runs, start=1) for row in flush_rows(number, run)]
    return figure_page(
        "Flushes of the recorder's buffers",
        [(sentence, ()) for sentence in flush_sentences(costs)],
        flush_figures(costs),
        ("Flushes", COLUMNS, rows),
        command=" ".join(costs.command),
        note=f"{costs.repeat} runs without and {costs.repeat} with flushes, alternating in random order. "
        "Flushes are for comparison: other policies never write to a file from a thread of the program.",
    )


COLUMNS = ("run", "metric", "lost", "flush at", "took", "thread", "inside", "others in tasks")


def flush_rows(number: int, run: FlushRun) -> list[Sequence[str]]:
    """A row for each flush of a run, or one without a flush."""
    front = (str(number), f"{run.value:.4g}", f"{run.lost:.1%}".replace("-", "\u2212"))
    if not run.flushes:
        return [(*front, "", "", "", "", "")]
    rows: list[Sequence[str]] = []
    for place, flush in enumerate(run.flushes):
        others = "n/a" if flush.others_in_tasks is None else f"{flush.others_in_tasks:.0%}"
        own = front if place == 0 else ("", "", "")
        rows.append(
            (
                *own,
                f"{flush.begin_s:.4g} s",
                f"{flush.seconds * _MS:.3g} ms",
                f"{flush.rank}: {flush.thread}",
                flush.inside or "no span",
                others,
            )
        )
    return rows
