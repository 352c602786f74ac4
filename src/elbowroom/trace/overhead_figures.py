"""What recording costs, drawn (thesis, Figs. 3.8 to 3.10), and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.overhead import ALL, NONE, Case, Overhead, Verdict

_BAND = "95 % interval"

_STYLE = (
    "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif;"
    "color:var(--ink);background:var(--paper)}h1{font-size:1.3rem}h2{font-size:1.1rem;margin-top:2rem}"
    "table{border-collapse:collapse;font-size:.9rem}th,td{padding:.2rem .6rem;text-align:right;"
    "border-bottom:1px solid var(--grid)}th:first-child,td:first-child{text-align:left}code{font-size:.9em}"
)


def figures(found: Overhead) -> list[Figure]:
    """One figure of all sets for each number of threads; where there are several, one over them."""
    counts = list(dict.fromkeys(case.threads for case in found.cases))
    drawn = [_by_set(found, [case for case in found.cases if case.threads == count]) for count in counts]
    return [*drawn, _by_threads(found)] if len(counts) > 1 else drawn


def quantity(found: Overhead) -> str:
    """What the metric is, with its unit where that is known."""
    return "wall time (s)" if found.metric == "wall" else "metric of the program"


def _by_set(found: Overhead, cases: Sequence[Case]) -> Figure:
    threads = cases[0].threads
    places = tuple(float(place) for place in range(len(cases)))
    costs = Series(
        name=quantity(found),
        side="computation",
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
        side="communication",
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
        left=Axis(label=quantity(found)),
        right=Axis(label="events"),
        series=(costs, events),
        caption="none: nothing is preloaded; off: every category is off. Whiskers: 95 % intervals.",
    )


def _by_threads(found: Overhead) -> Figure:
    return Figure(
        name="overhead-threads",
        title="Numbers of threads",
        x=Axis(label="threads", whole=True),
        left=Axis(label=quantity(found)),
        series=(
            _over(found, NONE, "without a recorder", "alone"),
            _over(found, ALL, "all recorded", "together"),
        ),
        caption="Bands: first to last decile of the runs.",
    )


def _over(found: Overhead, name: str, text: str, style: str) -> Series:
    cases = [case for case in found.cases if case.set == name and case.threads is not None]
    return Series(
        name=text,
        side="computation" if style == "alone" else "communication",
        style="line",
        x=tuple(float(case.threads or 0) for case in cases),
        y=tuple(case.median.value for case in cases),
        low=tuple(case.d1 for case in cases),
        high=tuple(case.d9 for case in cases),
    )


def page(found: Overhead) -> str:
    """Verdicts, figures and the table as one page that needs nothing else."""
    from elbowroom.draw.svg import style, svg

    command = escape(" ".join(found.command))
    drawn = "".join(f"<figure>{svg(figure)}</figure>" for figure in figures(found))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>What recording costs</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style()}{_STYLE}</style></head><body>'
        f"<h1>What recording costs: <code>{command}</code></h1>"
        f"{''.join(map(_told, found.verdicts))}"
        f"<h2>Figures</h2>{drawn}<h2>Runs</h2>{_table(found)}"
        f"<p>{found.repeat} repetitions in random order; medians, 95 % intervals by a paired bootstrap over "
        f"repetitions; buffer of a thread {found.buffer} B.</p></body></html>\n"
    )


def _told(verdict: Verdict) -> str:
    head = "" if verdict.threads is None else f"{_threads(verdict.threads)}: "
    advice = "".join(f"<li>{escape(sentence)}</li>" for sentence in verdict.advice)
    return f"<p><strong>{head}{escape(verdict.text)}</strong></p>" + (f"<ul>{advice}</ul>" if advice else "")


def _table(found: Overhead) -> str:
    rows = []
    for case in found.cases:
        cost = case.overhead
        told = "" if cost is None else f"{cost.value:+.1%} [{cost.low:+.1%}, {cost.high:+.1%}]"
        cells = (
            case.set,
            "" if case.threads is None else str(case.threads),
            f"{case.median.value:.4g}",
            told,
            str(case.events),
            f"{case.events_per_second:.3g}",
            str(case.lost),
        )
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    names = ("recorded", "threads", quantity(found), "costs", "events", "per second", "lost")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count != 1 else ''}"
