"""Performance of each run with and without flushes, and when flushes were (thesis, Figs. 3.2 to 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Hue, Mark, Series
from elbowroom.quantities import with_span
from elbowroom.trace.figure_page import figure_page
from elbowroom.trace.flushes import Flush, FlushCosts, FlushRun
from elbowroom.trace.mpi_calls import communicates

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
    found = [(run, flush) for run in costs.runs for flush in run.flushes]
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
                x=tuple(flush.begin_s for _, flush in found if where_of(flush) == name),
                y=tuple(100 * run.lost for run, flush in found if where_of(flush) == name),
                value="lost performance",
            )
            for name, hue in kinds
            if any(where_of(flush) == name for _, flush in found)
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
