"""Predicted steps: times of both sides and of the whole, for every draw of the model, of many setups at once.

A step computes W bytes and communicates N bytes; the share s of W comes first (the separator), the rest is
shared with the accelerators, which would take T_A for all of it:
    separator = s W / comp_alone,  T_M = (1 - s)(1 - w) W / comp_alone,  T_N = N / comm_alone,
    total = separator + max(w T_A, both),
where both is T_tot of models/overlap/law.py with L_M and L_N alone/together, or T_M + T_N without overlap.
A collective operation adds what of it is exposed (collectives.py).
On r times as many nodes as the job has now W is a share 1/r of that, and N a share 1/r^e. With p times as
many processes on a node, the pieces of its part have p^(1 - e) times the surface, and N is as much larger.
All computing cores share the work so that they end together. Sources: Langguth 2018, sections IV and VI.

The gain of changing from one setup to another, with its interval.

The model's draws are asked for both setups at once, so what they share cancels. What the model cannot follow
(its discrepancy) is an error of each bandwidth of its own: of the computation alone one for each set of
computing cores, of messages alone one for each kind of message, together one for each load. Setups that share
such a bandwidth share its error. With r the logarithm of the ratio of both totals, the interval is that of
r +- 1.645 s, s^2 = variance of r over the draws + sum of (difference of slopes x discrepancy)^2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.collectives import exposed, spread
from elbowroom.advise.job import BEST, Accelerator, Job, JobStep, Setup
from elbowroom.advise.setups import load_of, reference_of
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document
from elbowroom.models.flow.law import Array
from elbowroom.models.load import NORMAL_90
from elbowroom.models.predict import FittedModel
from elbowroom.stats.interval import Interval, around

MEGA = 1e6
"""B/s in a MB/s."""

STEP = 1e-4
"""Of the logarithm of a bandwidth, in differences."""


PARTS = ("separator", "t_comp", "t_comm", "l_comp", "l_comm", "t_acc", "collective")
"""What a step consists of: times and loss ratios."""


class SetupRates(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths (MB/s) of S setups: `streams` (4, 1 + D, S), in the order of STREAMS, row 0 the best fit;
    `moved`: bytes that a step computes (1 + D,); `discrepancy` (4, S): relative standard deviation of what
    the model cannot follow.
    """

    streams: Array
    moved: Array
    discrepancy: Array


class SetupTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times (s) and loss ratios of S setups, each (1 + D, S); `collective`: what of it is exposed; `w`: the
    accelerators' share, (S,).
    """

    separator: Array
    t_comp: Array
    t_comm: Array
    l_comp: Array
    l_comm: Array
    t_acc: Array
    collective: Array
    total: Array
    w: Array


def rates(document: Document, job: Job, setups: Sequence[Setup], *, name: str | None = None) -> SetupRates:
    """The predicted bandwidths of these setups. UsageError if the model cannot predict one."""
    loads = [load_of(setup, job.step) for setup in setups]
    distinct = list(dict.fromkeys(loads))
    reference = reference_of(job.step)
    wanted = distinct if reference is None else [*distinct, reference]
    draws = FittedModel(document, name).draws(wanted)
    streams = np.stack([getattr(draws, stream) for stream in STREAMS])
    position = {load: index for index, load in enumerate(distinct)}
    where = np.array([position[load] for load in loads])
    discrepancy = np.broadcast_to(np.asarray(draws.discrepancy, dtype=float).reshape(4, -1), (4, len(wanted)))
    return SetupRates(
        streams=streams[:, :, where],
        moved=_moved(job.step, None if reference is None else streams[0, :, -1]),
        discrepancy=discrepancy[:, where],
    )


def _moved(step: JobStep, reference: Array | None) -> Array:
    """Bytes of the computation: as given, or the measured time times its predicted bandwidth."""
    if step.t_comp is None:
        assert step.moved is not None
        return np.array([step.moved])
    assert reference is not None
    if not (reference > 0).all():
        raise UsageError(
            "has no computation there according to the model",
            field="step.t_comp",
            hint="check its cores and node",
        )
    return reference * MEGA * step.t_comp.seconds


def steps(job: Job, setups: Sequence[Setup], given: SetupRates) -> SetupTimes:
    """The steps of these setups at these rates; the accelerators' best shares are those of the best fit."""
    overlap = np.array([setup.overlap for setup in setups])
    fixed = np.array([np.nan if setup.w == BEST else setup.w for setup in setups], dtype=float)
    more = more_nodes(job, setups)
    return _steps(job, setups, more, overlap, fixed, given.streams, given.moved[:, None] / more)


def more_nodes(job: Job, setups: Sequence[Setup]) -> Array:
    """How many times the nodes that the job has now, of each setup."""
    return np.array([setup.nodes / job.now.nodes for setup in setups])


def pieces(job: Job, setups: Sequence[Setup]) -> Array:
    """How many times the bytes of messages that the processes of a node have now, of each setup."""
    more = np.array([setup.processes / job.now.processes for setup in setups])
    return more ** (1.0 - job.step.comm_exponent)


def _steps(
    job: Job,
    setups: Sequence[Setup],
    more: Array,
    overlap: NDArray[np.bool_],
    fixed: Array,
    streams: Array,
    moved: Array,
) -> SetupTimes:
    """`more`: of nodes; `fixed`: the accelerators' share, nan for the best one; `moved`: (1 + D or 1, S)."""
    comp_alone, comm_alone, comp, comm = np.maximum(streams, 1e-9) * MEGA
    step = job.step
    whole = (1.0 - step.separator) * moved / comp_alone
    t_comm = step.comm_bytes * pieces(job, setups) / more**step.comm_exponent / comm_alone
    # Nothing gets more together than alone; what a model says beyond that is rounding or an interval's end.
    l_comp, l_comm = np.maximum(comp_alone / comp, 1.0), np.maximum(comm_alone / comm, 1.0)
    t_acc = accelerator_time(job.accelerator, step.separator, moved) * np.ones_like(whole)
    best = best_share(whole[0], t_comm[0], l_comp[0], l_comm[0], t_acc[0], overlap)
    w = np.where(np.isnan(fixed), best, fixed)
    t_comp = whole * (1.0 - w)
    separator = step.separator * moved / comp_alone
    # Without accelerator t_acc is infinite and w is 0.
    busy = np.where(w > 0, w * np.where(w > 0, t_acc, 0.0), 0.0)
    collective = exposed(job.collective, [setup.way for setup in setups], t_comp)
    both = np.where(overlap, overlapped(t_comp, t_comm, l_comp, l_comm), t_comp + t_comm)
    return SetupTimes(
        separator=separator,
        t_comp=t_comp,
        t_comm=t_comm,
        l_comp=l_comp,
        l_comm=l_comm,
        t_acc=busy,
        collective=collective,
        total=separator + np.maximum(busy, both) + collective,
        w=w,
    )


def accelerator_time(accelerator: Accelerator | None, separator: float, moved: Array) -> Array:
    """T_A (s): all of the computation behind the separator on the accelerators; infinite without any."""
    if accelerator is None:
        return np.full_like(moved, np.inf)
    if accelerator.seconds is not None:
        return np.full_like(moved, (1.0 - separator) * accelerator.seconds)
    assert accelerator.bandwidth is not None
    return (1.0 - separator) * moved / (accelerator.bandwidth * MEGA)


def overlapped(t_comp: Array, t_comm: Array, l_comp: Array, l_comm: Array) -> Array:
    """T_tot of models/overlap/law.py (`Step.total`), element by element."""
    comp, comm = l_comp * t_comp, l_comm * t_comm
    return np.where(comp <= comm, t_comm + comp * (1 - 1 / l_comm), t_comp + comm * (1 - 1 / l_comp))


def best_share(
    whole: Array, t_comm: Array, l_comp: Array, l_comm: Array, t_acc: Array, overlap: NDArray[np.bool_]
) -> Array:
    """The accelerators' share at which both sides end at once; 1 where even the communication alone ends
    later than they do with everything. What `overlap.Node.best_split` finds by bisection: each of the two
    branches of T_tot is linear in w, and the side that ends last decides which one holds.
    """
    with np.errstate(invalid="ignore"):
        # Computation ends last: t_acc w = (1 - w) whole + t_comm l_comm (1 - 1/l_comp); also of no overlap.
        beside = np.where(overlap, t_comm * l_comm * (1 - 1 / l_comp), t_comm)
        last = (whole + beside) / (whole + t_acc)
        # Communication ends last: t_acc w = t_comm + (1 - w) whole l_comp (1 - 1/l_comm).
        lost = whole * l_comp * (1 - 1 / l_comm)
        first = (t_comm + lost) / (lost + t_acc)
        computes_last = ~overlap | (l_comp * (1 - last) * whole >= l_comm * t_comm)
        share = np.where(computes_last, last, first)
    return np.where(np.isfinite(t_acc), np.clip(share, 0.0, 1.0), 0.0)


def slopes(job: Job, setups: Sequence[Setup], given: SetupRates, w: Array) -> Array:
    """d log total / d log of each of the four bandwidths, and of the bytes computed, at the best fit: (5, S).
    The accelerators' share `w` (S,) is held.
    """
    overlap, more = np.array([setup.overlap for setup in setups]), more_nodes(job, setups)
    relative = np.empty((5, len(setups)))
    for k in range(5):
        ends = []
        for sign in (1.0, -1.0):
            streams, moved = given.streams[:, :1].copy(), given.moved[:1, None] / more
            (streams[k] if k < 4 else moved)[...] *= np.exp(sign * STEP)
            ends.append(_steps(job, setups, more, overlap, w, streams, moved).total[0])
        relative[k] = np.log(ends[0] / ends[1]) / (2 * STEP)
    return relative


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """One setup's step at the best fit (s), the logarithm of its total for each draw, row 0 the best fit, and
    what each error of the model's (relative standard deviation 1) would change of that logarithm, times it.
    """

    setup: Setup
    streams: tuple[float, float, float, float]
    separator: float
    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float
    t_acc: float
    collective: float
    w: float
    logs: Array
    errors: dict[Hashable, float]

    @property
    def total(self) -> float:
        """The step's time, s."""
        return math.exp(float(self.logs[0]))

    @property
    def interval(self) -> Interval:
        """The step's time with its 90 % interval, s."""
        spread = math.hypot(_deviation(self.logs), math.sqrt(sum(error**2 for error in self.errors.values())))
        factor = math.exp(NORMAL_90 * spread)
        return around(self.total, factor)


def gain(present: Predicted, other: Predicted) -> Interval:
    """The share of the present total that the other saves (below 0: costs), with its 90 % interval."""
    logs = other.logs - present.logs
    keys = {**present.errors, **other.errors}  # in order, so that their sum does not depend on hashes
    unlike = sum((other.errors.get(key, 0.0) - present.errors.get(key, 0.0)) ** 2 for key in keys)
    half = NORMAL_90 * math.hypot(_deviation(logs), math.sqrt(unlike))
    middle = float(logs[0])
    return Interval(
        value=-math.expm1(middle), low=-math.expm1(middle + half), high=-math.expm1(middle - half)
    )


def _deviation(logs: Array) -> float:
    return float(np.std(logs[1:])) if len(logs) > 1 else 0.0


class Predictor:
    """Predicted steps of a job by setup, with a cache; `name`: the document's model that is asked."""

    def __init__(self, document: Document, job: Job, name: str) -> None:
        self.document, self.job, self.name = document, job, name
        self._known: dict[Setup, Predicted] = {}

    @cached_property
    def _bare(self) -> Document:
        """The document without the draws of FLOW, for quick comparisons at the best fit."""
        models = self.document.models
        if models.flow is None:
            return self.document
        load = models.flow.load
        bare = None if load is None else msgspec.structs.replace(load, draws=())
        flow = msgspec.structs.replace(models.flow, draws=(), load=bare)
        return msgspec.structs.replace(self.document, models=msgspec.structs.replace(models, flow=flow))

    def best_fit(self, setups: Sequence[Setup]) -> SetupRates:
        """The bandwidths of these setups without draws. UsageError for what the model cannot answer."""
        return rates(self._bare, self.job, setups, name=self.name)

    def __call__(self, setup: Setup) -> Predicted:
        """One setup's step."""
        self.ask([setup])
        return self._known[setup]

    def ask(self, setups: Iterable[Setup]) -> list[Predicted]:
        """The steps of these setups, those not yet known all at once. UsageError for what the model cannot
        answer.
        """
        wanted = list(setups)
        missing = [setup for setup in dict.fromkeys(wanted) if setup not in self._known]
        if missing:
            given = rates(self.document, self.job, missing, name=self.name)
            self._known |= zip(missing, predicted(self.job, missing, given), strict=True)
        return [self._known[setup] for setup in wanted]


def predicted(job: Job, setups: Sequence[Setup], given: SetupRates) -> list[Predicted]:
    """The steps of these setups at these rates."""
    times = steps(job, setups, given)
    slope = slopes(job, setups, given, times.w)
    ways = [setup.way for setup in setups]
    deviation = spread(job.collective, ways, times.t_comp[0]) / times.total[0]
    return [
        Predicted(
            setup=setup,
            streams=tuple(given.streams[:, 0, index].tolist()),
            errors=_errors(job, setup, slope[:, index], given.discrepancy[:, index])
            | {("collective", *setup.way): float(deviation[index])},
            w=float(times.w[index]),
            logs=np.log(times.total[:, index]),
            **{part: float(getattr(times, part)[0, index]) for part in PARTS},
        )
        for index, setup in enumerate(setups)
    ]


def _errors(job: Job, setup: Setup, slope: Array, discrepancy: Array) -> dict[Hashable, float]:
    load = load_of(setup, job.step)
    of: tuple[Hashable, ...] = (load.computing, load.messages, load, load)
    errors: dict[Hashable, float] = {
        (stream, key): float(slope[k] * discrepancy[k])
        for k, (stream, key) in enumerate(zip(STREAMS, of, strict=True))
    }
    reference = reference_of(job.step)
    if reference is not None:
        # The bytes of a measured T_M are only as right as the bandwidth predicted where it was measured.
        key = (STREAMS[0], reference.computing)
        errors[key] = errors.get(key, 0.0) + float(slope[4] * discrepancy[0])
    return errors
