"""The overhead of recording as figures (thesis, Figs. 3.8 to 3.10) and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.quantities import plural, with_span
from elbowroom.trace.figure_page import figure_page
from elbowroom.trace.overhead import ALL, NONE, Overhead, OverheadVerdict, RunGroup

_BAND = "95 % interval"


def overhead_figures(overhead: Overhead) -> list[Figure]:
    """The metric and the number of events by set (thesis, Figs. 3.8 and 3.9), for each number of threads;
    where there are several, one figure over them (Fig. 3.10).
    """
    counts = list(dict.fromkeys(case.threads for case in overhead.cases))
    drawn = [
        _by_set(overhead, [case for case in overhead.cases if case.threads == count]) for count in counts
    ]
    there = all(any(case.set == name for case in overhead.cases) for name in (NONE, ALL))
    return [*drawn, _by_threads(overhead)] if len(counts) > 1 and there else drawn


def quantity(overhead: Overhead) -> str:
    """The metric, with its unit if known."""
    return "wall time (s)" if overhead.metric == "wall" else "metric of the program"


def _by_set(overhead: Overhead, cases: Sequence[RunGroup]) -> Figure:
    threads = cases[0].threads
    places = tuple(float(place) for place in range(len(cases)))
    costs = Series(
        name=quantity(overhead),
        hue="red",
        style="line",
        drawn="bars",
        x=places,
        y=tuple(case.median.value for case in cases),
        low=tuple(case.median.low for case in cases),
        high=tuple(case.median.high for case in cases),
        texts=tuple("" if case.overhead is None else f"{case.overhead.value:+.1%}" for case in cases),
        band=_BAND,
    )
    events = Series(
        name="recorded events",
        hue="blue",
        style="line",
        drawn="points",
        axis="right",
        x=places,
        y=tuple(float(case.events) for case in cases),
        value="events of a run",
    )
    return Figure(
        name=f"overhead-{threads or 'default'}",
        title="Without and with a recorder" + (f", {_threads(threads)}" if threads is not None else ""),
        x=Axis(label="recorded categories", names=tuple(case.set for case in cases)),
        left=Axis(label=quantity(overhead)),
        right=Axis(label="events"),
        series=(costs, events),
        caption="none: no recorder; off: recorder with every category off. Whiskers: 95 % intervals.",
    )


def _by_threads(overhead: Overhead) -> Figure:
    return Figure(
        name="overhead-threads",
        title="Numbers of threads",
        x=Axis(label="threads", whole=True),
        left=Axis(label=quantity(overhead)),
        series=(
            _over(overhead, NONE, "without a recorder", "alone"),
            _over(overhead, ALL, "all recorded", "together"),
        ),
        caption="Bands: first to last decile of the runs.",
    )


def _over(overhead: Overhead, name: str, text: str, style: str) -> Series:
    cases = [case for case in overhead.cases if case.set == name and case.threads is not None]
    return Series(
        name=text,
        hue="red" if style == "alone" else "blue",
        style="line",
        x=tuple(float(case.threads or 0) for case in cases),
        y=tuple(case.median.value for case in cases),
        low=tuple(case.d1 for case in cases),
        high=tuple(case.d9 for case in cases),
    )


def page(overhead: Overhead) -> str:
    """Verdicts, figures and the table as one self-contained page."""
    return figure_page(
        "Overhead of recording",
        [(_verdict(verdict), verdict.advice) for verdict in overhead.verdicts],
        overhead_figures(overhead),
        ("Runs", _columns(overhead), [_row(case) for case in overhead.cases]),
        command=" ".join(overhead.command),
        note=f"{overhead.repeat} repetitions in random order; medians, 95 % intervals by a paired bootstrap "
        f"over repetitions; buffer per thread: {overhead.buffer} B.",
    )


def _verdict(verdict: OverheadVerdict) -> str:
    return verdict.text if verdict.threads is None else f"{_threads(verdict.threads)}: {verdict.text}"


def _columns(overhead: Overhead) -> tuple[str, ...]:
    return ("recorded", "threads", quantity(overhead), "overhead", "events", "per second", "lost")


def _row(case: RunGroup) -> tuple[str, ...]:
    cost = case.overhead
    return (
        case.set,
        "" if case.threads is None else str(case.threads),
        f"{case.median.value:.4g}",
        "" if cost is None else with_span(*(f"{end:+.1%}" for end in (cost.value, cost.low, cost.high))),
        str(case.events),
        f"{case.events_per_second:.3g}",
        str(case.lost),
    )


def _threads(count: int) -> str:
    return plural(count, "thread")
