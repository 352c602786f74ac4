"""What recording costs a program, and whether its trace can be trusted (thesis, sections 3.3 and 3.5.1).

The program runs without a recorder and with it, for several sets of categories and numbers of threads, in
turns and in random order; what it costs is a ratio of medians over the same repetitions, so that what drifts
with time cancels. Pure: runs in, a document out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from elbowroom.errors import UsageError

SCHEMA, VERSION = "elbowroom-trace-overhead", 1

NONE, OFF, ALL = "none", "off", "all"
"""Sets by name: nothing is preloaded; all is preloaded, every category is off; every category is recorded."""

LIMIT = 0.05
"""A trace is trusted where recording surely costs less (the thesis' own runs lose 0 to 30 %)."""

LEAST = 3
"""Repetitions: fewer tell nothing of how sure it is."""

NOBODYS = "none"
"""A list of categories that no category is in: everything is off."""

State = Literal["trusted", "costly", "undecided", "lost"]


class Set(NamedTuple):
    """Categories that are recorded together; None: all. `name` is `none` where nothing is preloaded."""

    name: str
    categories: tuple[str, ...] | None


class Run(NamedTuple):
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


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one set with one number of threads: `values` by repetition, their median with interval and
    deciles; `overhead`: what is slower than without a recorder (0.03: 3 %), None for that itself. `events` of
    a run and per second of it, `lost` in the run that lost most.
    """

    threads: int | None
    set: str
    categories: tuple[str, ...] | None
    values: tuple[float, ...]
    median: Bounded
    d1: float
    d9: float
    overhead: Bounded | None
    events: int
    events_per_second: float
    lost: int
    advised_bytes: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a trace of everything can be trusted with so many threads, and what to do where not."""

    threads: int | None
    state: State
    text: str
    advice: tuple[str, ...] = ()
    categories: tuple[str, ...] | None = None


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
    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def decided(self) -> bool:
        """False where the machine is too noisy, or events were lost, for a verdict."""
        return all(verdict.state in ("trusted", "costly") for verdict in self.verdicts)


def sets_of(categories: Sequence[str]) -> tuple[Set, ...]:
    """The sets that tell what each of these categories costs: none, off, each alone, all."""
    alone = [Set(name, (name,)) for name in categories] if len(categories) > 1 else []
    return (Set(NONE, ()), Set(OFF, (NOBODYS,)), *alone, Set(ALL, None))


def parse_sets(text: str) -> tuple[Set, ...]:
    """The sets of `mpi;mpi,task`, and none, off and all beside them."""
    found = [Set(NONE, ()), Set(OFF, (NOBODYS,))]
    for part in text.split(";"):
        names = tuple(word.strip() for word in part.split(","))
        if not all(names):
            raise UsageError(
                "holds an empty name", field="categories", value=text, mend="sets are written mpi;mpi,task"
            )
        if ",".join(names) not in (NONE, OFF, ALL, *(one.name for one in found)):
            found.append(Set(",".join(names), names))
    return (*found, Set(ALL, None))


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
    runs: Sequence[Run],
    sets: Sequence[Set],
    *,
    command: Sequence[str],
    metric: str = "wall",
    rate: bool = False,
    limit: float = LIMIT,
    buffer: int = 0,
    seed: int = 0,
) -> Overhead:
    """Cases in the order of threads and sets, and a verdict for each number of threads."""
    threads = list(dict.fromkeys(run.threads for run in runs))
    threads.sort(key=lambda count: -1 if count is None else count)
    cases, verdicts = [], []
    for count in threads:
        here = {
            one.name: [run for run in runs if (run.threads, run.set) == (count, one.name)] for one in sets
        }
        found = [
            _case(one, here[one.name], here[NONE], rate=rate, seed=seed) for one in sets if here[one.name]
        ]
        cases += found
        verdicts.append(judge(count, found, limit, wall=metric == "wall"))
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


def _case(one: Set, runs: Sequence[Run], bare: Sequence[Run], *, rate: bool, seed: int) -> Case:
    from elbowroom.stats.summary import summarise

    values = [run.value for run in runs]
    told = summarise(values, "", seed, [run.repetition for run in runs])
    middle = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    return Case(
        threads=runs[0].threads,
        set=one.name,
        categories=one.categories,
        values=tuple(values),
        median=Bounded(value=told.median, low=told.low, high=told.high),
        d1=told.d1,
        d9=told.d9,
        overhead=None if one.name == NONE else overhead(bare, runs, rate=rate, seed=seed),
        events=middle.events,
        events_per_second=middle.events / middle.seconds if middle.seconds > 0 else 0.0,
        lost=max(run.lost for run in runs),
        advised_bytes=max(run.advised_bytes for run in runs),
    )


def overhead(bare: Sequence[Run], runs: Sequence[Run], *, rate: bool, seed: int = 0) -> Bounded | None:
    """How much slower `runs` are than `bare` ones, with the paired bootstrap's interval over repetitions,
    spread for few of them (stats.resampled). None where a median is not positive.
    """
    from elbowroom.stats.resampled import expansion
    from elbowroom.stats.summary import kept

    alone, traced = ({run.repetition: [run.value] for run in side} for side in (bare, runs))
    found = kept(alone, traced, duration=not rate, seed=seed)
    if found is None or min(found.value, found.low) <= 0:
        return None
    spread = expansion(min(len(alone), len(traced))) if min(len(alone), len(traced)) > 1 else 1.0
    logs = [-math.log(bound) for bound in (found.value, found.high, found.low)]
    value, low, high = (math.expm1(logs[0] + (log - logs[0]) * spread) for log in logs)
    return Bounded(value=value, low=low, high=high)


def judge(threads: int | None, cases: Sequence[Case], limit: float, *, wall: bool) -> Verdict:
    """What the cases of one number of threads say of a trace of everything; `wall`: the recorder's start and
    end are in what was measured.
    """
    named = {case.set: case for case in cases}
    whole = named[ALL]
    cost = whole.overhead
    if cost is None:
        return Verdict(threads=threads, state="undecided", text="The metric is not positive in every run.")
    told = f"{_percent(cost.value)} [{_percent(cost.low)}, {_percent(cost.high)}]"
    if whole.lost:
        text = f"{whole.lost} of {whole.events} events were lost: rings were full, and losing costs less."
        return Verdict(threads=threads, state="lost", text=text, advice=(_bigger(whole),))
    if cost.high <= limit:
        text = f"The trace can be trusted: recording everything costs {told}, surely less than {limit:.0%}."
        return Verdict(threads=threads, state="trusted", text=text)
    if cost.low <= limit:
        text = f"Too noisy to decide: recording everything costs {told}, and the limit is {limit:.0%}."
        mend = "Repeat more often (--repeat), with a longer run, on a machine that does nothing else."
        return Verdict(threads=threads, state="undecided", text=text, advice=(mend,))
    text = f"The trace cannot be trusted: recording everything costs {told}, surely more than {limit:.0%}."
    advice, categories = switch_off(named, limit, wall=wall)
    return Verdict(threads=threads, state="costly", text=text, advice=tuple(advice), categories=categories)


def switch_off(
    named: Mapping[str, Case], limit: float, *, wall: bool
) -> tuple[list[str], tuple[str, ...] | None]:
    """What to leave out, in sentences, and the categories that remain.

    The measured set that records most and surely costs less than the limit is what is advised; where there is
    none, everything but the category that costs most (where its interval says so; else that of most events).
    """
    off = named.get(OFF)
    if off is not None and off.overhead is not None and off.overhead.low > limit:
        alone = f"The recorder alone costs {_percent(off.overhead.value)}, with every category off"
        mend = "Trace a longer run (it starts and stops), or leave" if wall else "Leave"
        return [f"{alone}.", f"{mend} adapters out (--adapters)."], None
    fitting = [
        case
        for case in named.values()
        if case.categories and case.set not in (NONE, OFF) and case.overhead and case.overhead.high <= limit
    ]
    single = [case for case in named.values() if case.categories and len(case.categories) == 1]
    single = [case for case in single if case.set not in (NONE, OFF) and case.overhead is not None]
    advice, worst = [], _worst(single)
    if worst is not None and worst.overhead is not None:
        advice.append(
            f"{worst.set} costs most: {_percent(worst.overhead.value)}, {worst.events} events, "
            f"{worst.events_per_second:.3g} per second."
        )
    if fitting:
        best = max(fitting, key=lambda case: case.events)
        assert best.overhead is not None
        advice.append(
            f"Record with --categories {','.join(best.categories or ())}: that costs "
            f"{_percent(best.overhead.value)}, at most {_percent(best.overhead.high)}."
        )
        return advice, best.categories
    if worst is not None and len(single) > 1:
        rest = tuple(case.set for case in single if case is not worst)
        advice.append(f"Try --categories {','.join(rest)}: without {worst.set}, not measured yet.")
        return advice, rest
    advice.append("Record fewer events: filter types (elbow_trace_filter), or a region of interest.")
    return advice, None


def _worst(single: Sequence[Case]) -> Case | None:
    """The category that costs most, where that is sure; else the one with most events."""
    if not single:
        return None
    first, *others = sorted(single, key=lambda case: -_cost(case).value)
    if all(_cost(first).low > _cost(other).high for other in others):
        return first
    return max(single, key=lambda case: case.events)


def _cost(case: Case) -> Bounded:
    assert case.overhead is not None
    return case.overhead


def _bigger(case: Case) -> str:
    from elbowroom.draw.numbers import rounded_size

    return f"Give each thread a bigger ring: --buffer {rounded_size(case.advised_bytes).replace(' ', '')}."


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("-", "\u2212")
