"""The overhead of recording a program, and whether its trace can be trusted (thesis, sections 3.3 and 3.5.1).

The program runs without and with the recorder, for several sets of categories and numbers of threads,
interleaved and in random order. The overhead is a ratio of medians over the same repetitions, so that drift
cancels. Pure: runs in, a document out.

Figures and a page (thesis, Figs. 3.8 to 3.10).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.draw.html import figure_page
from elbowroom.errors import UsageError, closest
from elbowroom.quantities import plural, rounded_size, with_span
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import FEWEST
from elbowroom.stats.summary import kept, summarise

SCHEMA, VERSION = "elbowroom/trace-overhead", 1

NONE, OFF, ALL = "none", "off", "all"
"""Sets by name: nothing is preloaded; preloaded with every category off; every category is recorded."""

LIMIT = 0.05
"""A trace is trusted if recording costs significantly less (runs of the thesis lose 0 to 30 %)."""

LEAST = FEWEST
"""Minimum number of repetitions for an interval."""

NO_CATEGORIES = "none"
"""An empty list of categories: everything is off."""

State = Literal["trusted", "costly", "undecided", "lost"]


class Set(NamedTuple):
    """Categories that are recorded together; None: all. `without`: types of events that are left out; `name`
    is `none` where nothing is preloaded.
    """

    name: str
    categories: tuple[str, ...] | None
    without: tuple[str, ...] = ()


class TimedRun(NamedTuple):
    """One run: its number of threads (None: as it chose), set and repetition, what it took or reached, and
    what was recorded, lost, and advised bytes for each thread (0 where nothing was recorded).
    """

    threads: int | None
    set: str
    repetition: int
    value: float
    seconds: float
    events: int = 0
    lost: int = 0
    advised_bytes: int = 0


class RunGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one set with one number of threads: `values` by repetition, their median with interval and
    deciles; `without`: types that are left out; `overhead`: what is slower than without a recorder (0.03:
    3 %), None for that itself. `events` of a run and per second of it, `lost` in the run that lost most.
    """

    threads: int | None
    set: str
    categories: tuple[str, ...] | None
    without: tuple[str, ...] = ()
    values: tuple[float, ...]
    median: Interval
    d1: float
    d9: float
    overhead: Interval | None
    events: int
    events_per_second: float
    lost: int
    advised_bytes: int


class OverheadVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a trace of everything can be trusted with that many threads, and hints if not."""

    threads: int | None
    state: State
    text: str
    advice: tuple[str, ...] = ()
    categories: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()


class Overhead(msgspec.Struct, frozen=True, kw_only=True):
    """What recording costs a command. `metric`: wall, or the expression that finds it in what the command
    prints; `rate`: more of it is better.
    """

    schema: str = SCHEMA
    version: int = VERSION
    command: tuple[str, ...]
    metric: str
    rate: bool
    repeat: int
    limit: float
    buffer: int
    seed: int
    cases: tuple[RunGroup, ...]
    verdicts: tuple[OverheadVerdict, ...]

    @property
    def decided(self) -> bool:
        """False where the machine is too noisy, or events were lost, for a verdict."""
        return all(verdict.state in ("trusted", "costly") for verdict in self.verdicts)


def sets_of(categories: Sequence[str]) -> tuple[Set, ...]:
    """The sets that tell what each of these categories costs: none, off, each alone, all."""
    alone = [Set(name, (name,)) for name in categories] if len(categories) > 1 else []
    return (Set(NONE, ()), Set(OFF, (NO_CATEGORIES,)), *alone, Set(ALL, None))


def parse_sets(text: str) -> tuple[Set, ...]:
    """The sets of `mpi;mpi,task`, and none, off and all beside them."""
    sets = [Set(NONE, ()), Set(OFF, (NO_CATEGORIES,))]
    for part in text.split(";"):
        names = tuple(word.strip() for word in part.split(","))
        if not all(names):
            raise UsageError(
                "has an empty name", field="categories", value=text, hint="write sets as mpi;mpi,task"
            )
        if ",".join(names) not in (NONE, OFF, ALL, *(one.name for one in sets)):
            sets.append(Set(",".join(names), names))
    return (*sets, Set(ALL, None))


FREQUENT = "frequent"
"""The types of events that a program has most of, as `--without` names them."""
MOST_FREQUENT = 4
"""Types that are left out one by one then, as in the thesis' Fig. 3.8."""


def sets_without(text: str, types: Sequence[str]) -> tuple[Set, ...]:
    """The sets of `submit;ready,push`: everything but these types, each list by itself, and none, off and
    all. `frequent`: each of the four types that come first in `types`, those of the program. UsageError for a
    type that it does not have.
    """
    lists = [tuple(word.strip() for word in part.split(",")) for part in text.split(";")]
    if lists == [(FREQUENT,)]:
        listable = [name for name in types if "," not in name]
        lists = [(name,) for name in listable[:MOST_FREQUENT]]
    for name in (name for part in lists for name in part):
        if name not in types:
            hint = closest(name, types)
            raise UsageError("is not a type of the program's events", field="without", value=name, hint=hint)
    left_out = [Set(f"all but {', '.join(part)}", None, part) for part in dict.fromkeys(lists)]
    return (Set(NONE, ()), Set(OFF, (NO_CATEGORIES,)), Set(ALL, None), *left_out)


def order(
    sets: Sequence[Set], threads: Sequence[int | None], repeat: int, seed: int
) -> Iterator[tuple[int, int | None, Set]]:
    """Repetition, threads and set of each run: every combination once in each repetition, in random order."""
    rng = random.Random(seed)
    for repetition in range(repeat):
        turn = [(count, one) for count in threads for one in sets]
        rng.shuffle(turn)
        for count, one in turn:
            yield repetition, count, one


def analyse(
    runs: Sequence[TimedRun],
    sets: Sequence[Set],
    *,
    command: Sequence[str],
    metric: str = "wall",
    rate: bool = False,
    limit: float = LIMIT,
    buffer: int = 0,
    seed: int = 0,
) -> Overhead:
    """Cases in the order of threads and sets, and a verdict for each number of threads. Runs whose metric is
    no finite number are left out, which the verdict says.
    """
    threads = list(dict.fromkeys(run.threads for run in runs))
    threads.sort(key=lambda count: -1 if count is None else count)
    cases, verdicts = [], []
    for count in threads:
        own = [run for run in runs if run.threads == count]
        finite = [run for run in own if math.isfinite(run.value)]
        here = {one.name: [run for run in finite if run.set == one.name] for one in sets}
        groups = [
            _case(one, here[one.name], here[NONE], rate=rate, seed=seed) for one in sets if here[one.name]
        ]
        cases += groups
        void = len(own) - len(finite)
        left = f"The metric was not a finite number in {void} of {len(own)} runs, which are left out."
        if len(_paired(here[NONE], here[ALL])[0]) < LEAST:
            text = f"n/a: {left} Too few runs remain to determine the overhead."
            verdicts.append(OverheadVerdict(threads=count, state="undecided", text=text))
            continue
        verdict = judge(count, groups, limit, wall=metric == "wall")
        verdicts.append(msgspec.structs.replace(verdict, advice=(*verdict.advice, left)) if void else verdict)
    return Overhead(
        command=tuple(command),
        metric=metric,
        rate=rate,
        repeat=max(run.repetition for run in runs) + 1,
        limit=limit,
        buffer=buffer,
        seed=seed,
        cases=tuple(cases),
        verdicts=tuple(verdicts),
    )


def _paired(bare: Sequence[TimedRun], runs: Sequence[TimedRun]) -> tuple[list[TimedRun], list[TimedRun]]:
    """The runs of the repetitions that both have."""
    both = {run.repetition for run in bare} & {run.repetition for run in runs}
    return [run for run in bare if run.repetition in both], [run for run in runs if run.repetition in both]


def _case(one: Set, runs: Sequence[TimedRun], bare: Sequence[TimedRun], *, rate: bool, seed: int) -> RunGroup:
    values = [run.value for run in runs]
    summary = summarise(values, "", seed, [run.repetition for run in runs])
    low, high = summary.ends(summary.median)
    middle = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    return RunGroup(
        threads=runs[0].threads,
        set=one.name,
        categories=one.categories,
        without=one.without,
        values=tuple(values),
        median=Interval(value=summary.median, low=low, high=high),
        d1=summary.d1,
        d9=summary.d9,
        overhead=None if one.name == NONE else overhead(*_paired(bare, runs), rate=rate),
        events=middle.events,
        events_per_second=middle.events / middle.seconds if middle.seconds > 0 else 0.0,
        lost=max(run.lost for run in runs),
        advised_bytes=max(run.advised_bytes for run in runs),
    )


def overhead(bare: Sequence[TimedRun], runs: Sequence[TimedRun], *, rate: bool) -> Interval | None:
    """How much slower `runs` are than `bare` ones, with the interval of the ratios inside repetitions
    (stats/signed_ranks.py). None where a median is not positive.
    """
    alone, traced = ({run.repetition: [run.value] for run in side} for side in (bare, runs))
    ratio = kept(alone, traced, duration=not rate)
    if ratio is None or ratio.value <= 0 or ratio.bounds is None or ratio.bounds[0] <= 0:
        return None
    low, high = ratio.bounds
    return Interval(value=1 / ratio.value - 1, low=1 / high - 1, high=1 / low - 1)


def judge(threads: int | None, cases: Sequence[RunGroup], limit: float, *, wall: bool) -> OverheadVerdict:
    """The verdict on a trace of everything with one number of threads; `wall`: the metric includes the start
    and the end of the recorder.
    """
    named = {case.set: case for case in cases}
    whole = named[ALL]
    cost = whole.overhead
    if cost is None:
        return OverheadVerdict(
            threads=threads, state="undecided", text="The metric is not positive in every run."
        )
    share = with_span(_percent(cost.value), _percent(cost.low), _percent(cost.high))
    if whole.lost:
        text = (
            f"{whole.lost} of {whole.events} events were lost in full rings; this understates the overhead."
        )
        return OverheadVerdict(threads=threads, state="lost", text=text, advice=(_bigger(whole),))
    if cost.high <= limit:
        text = (
            f"The trace can be trusted: recording everything costs {share}, "
            f"significantly less than {limit:.0%}."
        )
        return OverheadVerdict(threads=threads, state="trusted", text=text)
    if cost.low <= limit:
        text = f"Too noisy to decide: recording everything costs {share}, and the limit is {limit:.0%}."
        hint = "Use more repetitions (--repeat), a longer run, and a machine without other work."
        return OverheadVerdict(threads=threads, state="undecided", text=text, advice=(hint,))
    text = (
        f"The trace cannot be trusted: recording everything costs {share}, "
        f"significantly more than {limit:.0%}."
    )
    advice, categories, without = switch_off(named, limit, wall=wall)
    return OverheadVerdict(
        threads=threads,
        state="costly",
        text=text,
        advice=tuple(advice),
        categories=categories,
        without=without,
    )


def switch_off(
    named: Mapping[str, RunGroup], limit: float, *, wall: bool
) -> tuple[list[str], tuple[str, ...] | None, tuple[str, ...]]:
    """What to leave out, in sentences, the categories that remain, and the types that are left out.

    The advice is the measured set with most events whose overhead is significantly below the limit. Without
    one, it is everything except the category with the highest overhead (if significant; else most events).
    """
    off = named.get(OFF)
    if off is not None and off.overhead is not None and off.overhead.low > limit:
        alone = f"The recorder costs {_percent(off.overhead.value)} even with every category off"
        hint = (
            "Trace a longer run, because the recorder takes time to start and stop, or leave"
            if wall
            else "Leave"
        )
        return [f"{alone}.", f"{hint} out adapters (--adapters)."], None, ()
    fitting = [
        case
        for case in named.values()
        if (case.categories or case.without)
        and case.set not in (NONE, OFF)
        and case.overhead
        and case.overhead.high <= limit
    ]
    single = [case for case in named.values() if case.categories and len(case.categories) == 1]
    single = [case for case in single if case.set not in (NONE, OFF) and case.overhead is not None]
    advice, worst = [], _worst(single)
    if worst is not None and worst.overhead is not None:
        advice.append(
            f"The category {worst.set} costs most: {_percent(worst.overhead.value)}, {worst.events} events, "
            f"{worst.events_per_second:.3g} per second."
        )
    if fitting:
        best = max(fitting, key=lambda case: case.events)
        assert best.overhead is not None
        names = ",".join(best.without or best.categories or ())
        advice.append(
            f"Record with --{'without' if best.without else 'categories'} {names}, which costs "
            f"{_percent(best.overhead.value)}, at most {_percent(best.overhead.high)}."
        )
        return advice, best.categories, best.without
    if worst is not None and len(single) > 1:
        rest = tuple(case.set for case in single if case is not worst)
        advice.append(f"Try --categories {','.join(rest)}, without {worst.set}; this set was not measured.")
        return advice, rest, ()
    advice.append(
        "Record fewer events: leave out types (--without frequent measures which), or record a region of "
        "interest only."
    )
    return advice, None, ()


def _worst(single: Sequence[RunGroup]) -> RunGroup | None:
    """The category with the highest overhead, if significant; else the one with most events."""
    if not single:
        return None
    first, *others = sorted(single, key=lambda case: -_cost(case).value)
    if all(_cost(first).low > _cost(other).high for other in others):
        return first
    return max(single, key=lambda case: case.events)


def _cost(case: RunGroup) -> Interval:
    assert case.overhead is not None
    return case.overhead


def _bigger(case: RunGroup) -> str:
    return f"Use a larger ring for each thread: --buffer {rounded_size(case.advised_bytes).replace(' ', '')}."


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("-", "\u2212")


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
        axis="below",
        x=places,
        y=tuple(float(case.events) for case in cases),
        value="events of a run",
    )
    return Figure(
        name=f"overhead-{threads or 'default'}",
        title="Without and with a recorder" + (f", {_threads(threads)}" if threads is not None else ""),
        x=Axis(label="recorded", names=tuple(case.set for case in cases)),
        left=Axis(label=quantity(overhead)),
        below=Axis(label="events"),
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
