"""Work that flows: activities share a machine at rates that change whenever one starts or ends.

A step of a program (halo, interior, exchange), or a pipeline of such steps, is a set of activities with
predecessors. Between two events every active one proceeds at a constant rate, given by a callable of the set
of active ones: bandwidths that a model predicts for them, or the constant loss ratios of Langguth's model,
which is the special case of one computation and one communication (overlap/law.py; the total is the same).

An overlapped step from what a model predicts for its cores and placement.
"""

from __future__ import annotations

import graphlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.load import Prediction
from elbowroom.models.overlap.law import OverlappedStep, check
from elbowroom.stats.interval import Interval

Rates = Callable[[frozenset[str]], Mapping[str, float]]
"""From the names of what is active to the rate of each, work per unit of time."""

SAME = 1e-12
"""Two ends closer than this share of the time between two events are one event: they differ by rounding."""


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """`work` to be done once all of `after` have ended; its unit is that of the rates times that of time."""

    name: str
    work: float
    after: tuple[str, ...] = ()


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """From `start` to `end` the active ones proceeded at `rates`."""

    start: float
    end: float
    rates: dict[str, float]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What happened: spans in order, without gaps; when each activity began and ended."""

    spans: tuple[Span, ...]
    starts: dict[str, float]
    ends: dict[str, float]

    @property
    def total(self) -> float:
        """When the last activity ended."""
        return max(self.ends.values(), default=0.0)


def simulate(activities: Iterable[Activity], rates: Rates) -> Timeline:
    """Runs all activities, each as soon as its predecessors have ended.

    Raises UsageError for a name that appears twice or unknown, predecessors in a circle, work that is
    negative or not finite, and rates that are missing, negative, not finite, or all 0 (it would never end).
    """
    listed = tuple(activities)
    _check_activities(listed)
    run = _FlowState(listed, rates)
    run.begin(item.name for item in listed if not item.after)
    while run.left:
        run.advance()
    return Timeline(spans=tuple(run.spans), starts=run.starts, ends=run.ends)


def constant_losses(losses: Mapping[str, float]) -> Rates:
    """Rate 1 alone, 1/L with any other activity: work is then the time it takes alone.

    `losses`: L by name, each at least 1; UsageError otherwise, and later for a name that is not in it.
    """
    for name, loss in losses.items():
        check(f"loss of {name}", loss, low=1.0, what="a loss ratio", hint="give alone/together")

    def rates(active: frozenset[str]) -> dict[str, float]:
        shared = len(active) > 1
        return {name: 1.0 / losses[name] if shared else 1.0 for name in active if name in losses}

    return rates


def halo_steps(count: int, *, separator: float, interior: float, exchange: float) -> tuple[Activity, ...]:
    """`count` time steps as in section IV: compute what is sent, then exchange it while the interior is
    computed, then synchronise. Names: `separator 0`, `interior 0`, `exchange 0`, `separator 1`, ...
    """
    steps: list[Activity] = []
    before: tuple[str, ...] = ()
    for step in range(count):
        first, inner, messages = (f"{name} {step}" for name in ("separator", "interior", "exchange"))
        steps.append(Activity(name=first, work=separator, after=before))
        steps.append(Activity(name=inner, work=interior, after=(first,)))
        steps.append(Activity(name=messages, work=exchange, after=(first,)))
        before = (inner, messages)
    return tuple(steps)


class _FlowState:
    """The state between two events: what waits for what, what is left of what is active, and the time."""

    def __init__(self, activities: Sequence[Activity], rates: Rates) -> None:
        self.now = 0.0
        self.left: dict[str, float] = {}
        self.starts: dict[str, float] = {}
        self.ends: dict[str, float] = {}
        self.spans: list[Span] = []
        self._rates = rates
        self._known: dict[frozenset[str], dict[str, float]] = {}
        self._activities = {item.name: item for item in activities}
        self._missing = {item.name: len(set(item.after)) for item in activities}
        self._after: dict[str, list[str]] = {}
        for item in activities:
            for other in set(item.after):
                self._after.setdefault(other, []).append(item.name)

    def begin(self, names: Iterable[str]) -> None:
        """Starts these; what has no work ends at once, and lets others start."""
        ready = list(names)
        while ready:
            name = ready.pop()
            self.starts[name] = self.now
            if self._activities[name].work > 0.0:
                self.left[name] = self._activities[name].work
            else:
                ready += self._end(name)

    def _end(self, name: str) -> list[str]:
        """Ends one now; those that waited for it alone."""
        self.ends[name] = self.now
        freed = self._after.get(name, [])
        for other in freed:
            self._missing[other] -= 1
        return [other for other in freed if self._missing[other] == 0]

    def advance(self) -> None:
        """Goes to the next end of an activity."""
        rates = self._rates_now()
        needed = {name: work / rates[name] for name, work in self.left.items() if rates[name] > 0.0}
        if not needed:
            raise UsageError(
                "no activity proceeds, so the rest would never end",
                field="rates",
                value=sorted(self.left),
                hint="give at least one of them a positive rate",
            )
        step = min(needed.values())
        end = self.now + step
        self.spans.append(Span(start=self.now, end=end, rates=rates))
        self.now = end
        ended = [name for name, time in needed.items() if time <= step * (1.0 + SAME)]
        for name in ended:
            del self.left[name]
        for name in self.left:
            self.left[name] -= step * rates[name]
        self.begin([name for other in ended for name in self._end(other)])

    def _rates_now(self) -> dict[str, float]:
        active = frozenset(self.left)
        if active not in self._known:
            given = self._rates(active)
            for name in active:
                check(
                    f"rate of {name}",
                    given.get(name, math.nan),
                    low=0.0,
                    what="a rate",
                    hint=f"rates must contain it while {', '.join(sorted(active))} active",
                )
            self._known[active] = {name: given[name] for name in sorted(active)}
        return self._known[active]


def _check_activities(activities: Sequence[Activity]) -> None:
    after: dict[str, tuple[str, ...]] = {}
    for item in activities:
        if item.name in after:
            raise UsageError("appears twice", field="activity", value=item.name, hint="name each one once")
        check(f"work of {item.name}", item.work, low=0.0, what="work", hint="give how much there is to do")
        after[item.name] = item.after
    for name, others in after.items():
        for other in others:
            if other not in after:
                raise UsageError(
                    f"waits for {other!r}, which is not an activity",
                    field="activity",
                    value=name,
                    hint=f"known: {', '.join(after)}",
                )
    try:
        graphlib.TopologicalSorter(after).prepare()
    except graphlib.CycleError as error:
        raise UsageError(
            f"wait for each other in a circle: {', '.join(error.args[1])}",
            field="activities",
            hint="let one of them start first",
        ) from error


MEGA = 1e6
"""B/s in a MB/s."""

ROUNDING = 1e-9
"""A predicted bandwidth together that exceeds that alone by less than this share of it is equal to it."""


class PredictedStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step in seconds; `low` and `high`: its total if all four bandwidths were at the high, or the low, end
    of their intervals. `high` is None where at the low end something stands still.
    """

    step: OverlappedStep
    low: float
    high: float | None
    comp_bytes: float
    comm_bytes: float
    prediction: Prediction

    @property
    def p_comp(self) -> float:
        """Performance of the computation alone, B/s."""
        return self.prediction.comp_alone.value * MEGA


def predicted_step(prediction: Prediction, comp_bytes: float, comm_bytes: float) -> PredictedStep:
    """The step in which the computing cores together move `comp_bytes` of memory and messages `comm_bytes`.

    UsageError for bytes below 0, computing without cores, and predictions that are faster together than alone
    (the thesis' equations to the letter can be), of which no step can be made.
    """
    for field, value in (("comp_bytes", comp_bytes), ("comm_bytes", comm_bytes)):
        check(field, value, low=0.0, what="a number of bytes", hint="give what one step moves")
    if comp_bytes > 0.0 and prediction.comp_alone.value <= 0.0:
        raise UsageError(
            "nothing computes there, so its bytes are never moved",
            field="cores",
            value=prediction.situation.n,
            hint="give at least one computing core, or no --comp-bytes",
        )
    for side, together in (("comp", prediction.comp_together), ("comm", prediction.comm_together)):
        alone: Interval = getattr(prediction, f"{side}_alone")
        if together.value > alone.value * (1.0 + ROUNDING):
            raise UsageError(
                f"together it is predicted faster ({together.value:.1f} MB/s) than alone ({alone.value:.1f})",
                field=f"{side}_together",
                value=together.value,
                hint="leave out --faithful, or give --l-comp and --l-comm yourself",
            )
    moved = (comp_bytes, comm_bytes)
    step = _step(prediction, moved, "value")
    if step is None:
        raise UsageError(
            "one side does not progress while the other runs, so the step never ends",
            field="prediction",
            hint="give --l-comp and --l-comm yourself",
        )
    best, worst = _step(prediction, moved, "high"), _step(prediction, moved, "low")
    return PredictedStep(
        step=step,
        low=step.total if best is None else min(best.total, step.total),
        high=None if worst is None else max(worst.total, step.total),
        comp_bytes=comp_bytes,
        comm_bytes=comm_bytes,
        prediction=prediction,
    )


def predicted_rates(
    prediction: Prediction, computations: Collection[str], communications: Collection[str]
) -> Rates:
    """Rates (B/s) for `model.fluid.simulate`, whose activities then are bytes: of what is active,
    computations and communications have their bandwidths alone, or those together where the other side is
    active too; several of one side share that equally.

    UsageError, when it is simulated, for an activity that is of neither side.
    """
    sides = dict.fromkeys(computations, "comp") | dict.fromkeys(communications, "comm")

    def rates(active: frozenset[str]) -> dict[str, float]:
        counts = Counter(sides[name] for name in active if name in sides)
        state = "together" if len(counts) == 2 else "alone"
        bandwidths = {side: getattr(prediction, f"{side}_{state}").value * MEGA for side in counts}
        return {name: bandwidths[sides[name]] / counts[sides[name]] for name in active if name in sides}

    return rates


def _step(prediction: Prediction, moved: tuple[float, float], end: str) -> OverlappedStep | None:
    """The step with all bandwidths at one `end` of their intervals; None where a side then stands still."""
    comp = _side(prediction.comp_alone, prediction.comp_together, moved[0], end)
    comm = _side(prediction.comm_alone, prediction.comm_together, moved[1], end)
    if comp is None or comm is None:
        return None
    return OverlappedStep(t_comp=comp[0], t_comm=comm[0], l_comp=comp[1], l_comm=comm[1])


def _side(alone: Interval, together: Interval, moved: float, end: str) -> tuple[float, float] | None:
    """Time alone (s) and loss ratio; None for bytes that are never moved."""
    a: float = getattr(alone, end)
    b: float = getattr(together, end)
    if moved == 0.0:
        return 0.0, 1.0
    if b <= 0.0 or a <= 0.0:
        return None
    # The two intervals do not know of each other, so their ends may cross; alone is never slower.
    return moved / (a * MEGA), max(a / b, 1.0)
