"""A job on the machine's contention map: what each side keeps and how long a step takes, for any number of
computing cores and any message size, with the job's data where they are now and where they are advised.

The x axis is the demand of the computation: cores, each with its bandwidth alone. The y axis is the demand of
the messages: their size, and the bandwidth that messages of that size reach alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from elbowroom.advise.advice import Advice, Configuration
from elbowroom.advise.job import Setup
from elbowroom.advise.setups import load_of, misfit
from elbowroom.advise.steps import Predictor, gain, steps
from elbowroom.machine.identity import check_same, difference
from elbowroom.models.document import Document
from elbowroom.models.flow.law import Array
from elbowroom.models.load import NORMAL_90
from elbowroom.models.predict import FittedModel
from elbowroom.stats.interval import Interval, around

Axis = Literal["cores", "cores_other"]
Name = Literal["now", "advised", "moved"]

LOSES = 0.95
"""A side that keeps less than this of its bandwidth loses."""
PER_OCTAVE = 2
"""Message sizes of a map per power of two."""
BELOW = 2**8
"""A map reaches at most this factor below the smallest message of the job."""


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """The job on its map: `now`, `advised`, or `moved` (as now, but with what is not on the map's axes as
    advised). `total` (s) and what each side keeps with 90 % intervals; `counts` and `sizes`: how far away the
    step's time does not surely differ from here (its 90 % interval holds no difference), along each axis.
    """

    name: Name
    setup: Setup
    count: int
    size: int
    total: Interval
    kept_comp: Interval
    kept_comm: Interval
    counts: tuple[int, int]
    sizes: tuple[int, int]

    @property
    def loses(self) -> str:
        """Which sides lose there, in words; none without overlap."""
        if not self.setup.overlap:
            return "no overlap: neither side loses"
        return who_loses(self.kept_comp.value, self.kept_comm.value)


class ContentionMap(msgspec.Struct, frozen=True, kw_only=True):
    """One placement: `setup` says where everything is; `axis` is the setup's field that goes across, as
    `counts`; `sizes` (bytes) go up. `kept_comp`, `kept_comm` and `total` (s) are (sizes, counts); `one_core`:
    MB/s that one core asks for; `asked`: MB/s that messages of each size reach alone.
    """

    setup: Setup
    axis: Axis
    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    kept_comp: Array
    kept_comm: Array
    total: Array
    one_core: float
    size_rates: tuple[float, ...]
    spots: tuple[Spot, ...]


def who_loses(kept_comp: float, kept_comm: float) -> str:
    """Which sides lose, in words."""
    lost = [name for name, kept in (("communication", kept_comm), ("computation", kept_comp)) if kept < LOSES]
    return {0: "neither side loses", 2: "both lose"}.get(len(lost)) or f"only {lost[0]} loses"


def contention_maps(document: Document, advice: Advice) -> tuple[ContentionMap, ...]:
    """The map of the present placement, and that of the advised one where it differs.

    A model that knows one message size gives maps of one row. UsageError for what the model cannot answer.
    """
    of = _MapBuilder(document, advice)
    now, advised = of.setup(advice.now), of.setup(advice.advised)
    if of.placed(now) == of.placed(advised):
        points: list[tuple[Name, Setup]] = [("now", now)]
        if (now.size, getattr(now, of.axis)) != (advised.size, getattr(advised, of.axis)):
            points.append(("advised", advised))
        return (of.map(now, points),)
    moved = msgspec.structs.replace(advised, size=now.size, **{of.axis: getattr(now, of.axis)})
    there = moved != advised and misfit(moved, advice.job.step, document.machine) is None
    points = [("moved", moved), ("advised", advised)] if there else [("advised", advised)]
    return of.map(now, [("now", now)]), of.map(advised, points)


class _MapBuilder:
    """What all maps of one job share: the axes, and the model that is asked."""

    def __init__(self, document: Document, advice: Advice) -> None:
        self.document, self.advice, self.job = document, advice, advice.job
        now, advised = advice.now.setup, advice.advised.setup
        second_only = now.cores == advised.cores and now.cores_other != advised.cores_other
        self.axis: Axis = "cores_other" if second_only or not (now.cores or advised.cores) else "cores"
        self.ask = Predictor(document, self.job, advice.name)
        self.sizes = self._sizes((self.setup(advice.now), self.setup(advice.advised)))

    def setup(self, of: Configuration) -> Setup:
        """The setup with the message size in bytes, as maps have it."""
        size = self.document.calibration.size if of.setup.size is None else of.setup.size
        return msgspec.structs.replace(of.setup, size=size)

    def placed(self, setup: Setup) -> Setup:
        """What a map has one value of."""
        return msgspec.structs.replace(setup, size=None, comm_socket=None, **{self.axis: 1})

    def _sizes(self, setups: Sequence[Setup]) -> tuple[int, ...]:
        """From the smallest to the largest message that the model knows and the job may have."""
        own = {setup.size for setup in setups if setup.size is not None}
        known = _known_sizes(self.document)
        if known is None:
            return tuple(sorted(own))
        may = {size for size in self.job.may.size or () if size}
        low = max(known[0], min(own | may) / BELOW)
        high = max(min(known[1], self.job.step.comm_bytes), *own)
        first, last = (math.log2(size) * PER_OCTAVE for size in (min(low, *own), high))
        steps = range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1)
        return tuple(sorted(own | {round(2 ** (step / PER_OCTAVE)) for step in steps}))

    def map(self, setup: Setup, points: Sequence[tuple[Name, Setup]]) -> ContentionMap:
        """The map of the setup's placement with these points."""
        counts = self._counts(setup, points)
        grid = [self._at(setup, count, size) for size in self.sizes for count in counts]
        given = self.ask.best_fit(grid)
        times = steps(self.job, grid, given)
        shape = (len(self.sizes), len(counts))
        comp_alone, comm_alone, comp, comm = given.streams[:, 0].reshape(4, *shape)
        return ContentionMap(
            setup=setup,
            axis=self.axis,
            counts=counts,
            sizes=self.sizes,
            kept_comp=comp / comp_alone,
            kept_comm=comm / comm_alone,
            total=times.total[0].reshape(shape),
            one_core=self._one_core(setup),
            size_rates=tuple(comm_alone[:, 0].tolist()),
            spots=tuple(self._spot(name, at, counts) for name, at in points),
        )

    def _counts(self, setup: Setup, points: Sequence[tuple[Name, Setup]]) -> tuple[int, ...]:
        """From one core (none, where a point has none there) to as many as fit, and as the points have."""
        shape, step = self.document.machine, self.job.step
        own = [getattr(at, self.axis) for _, at in points]
        every = range(1, shape.cores_first_socket + 1)
        fitting = [n for n in every if misfit(self._at(setup, n, self.sizes[0]), step, shape) is None]
        return tuple(range(min(1, *own), max([*own, *fitting]) + 1))

    def _at(self, setup: Setup, count: int, size: int) -> Setup:
        return msgspec.structs.replace(setup, size=size, **{self.axis: count})

    def _one_core(self, setup: Setup) -> float:
        """MB/s that one core of the axis gets alone."""
        other: Axis = "cores" if self.axis == "cores_other" else "cores_other"
        one = msgspec.structs.replace(setup, **{self.axis: 1, other: 0})
        return float(self.ask.best_fit([one]).streams[0, 0, 0])

    def _spot(self, name: Name, at: Setup, counts: Sequence[int]) -> Spot:
        assert at.size is not None
        count, place = getattr(at, self.axis), self.sizes.index(at.size)
        along = [self._at(at, other, at.size) for other in counts]
        up = [self._at(at, count, size) for size in self.sizes]
        left, right = self._alike(at, along, counts.index(count))
        low, high = self._alike(at, up, place)
        kept_comp, kept_comm = self._kept(at)
        return Spot(
            name=name,
            setup=at,
            count=count,
            size=at.size,
            total=self.ask(at).interval,
            kept_comp=kept_comp,
            kept_comm=kept_comm,
            counts=(counts[left], counts[right]),
            sizes=(self.sizes[low], self.sizes[high]),
        )

    def _alike(self, at: Setup, line: Sequence[Setup], own: int) -> tuple[int, int]:
        """The first and last of those next to `own` on the line that do not surely differ from it."""
        here = self.ask(at)
        saved = [gain(here, other) for other in self.ask.ask(line)]
        alike = [share.low <= 0 <= share.high for share in saved]
        low = high = own
        while low > 0 and alike[low - 1]:
            low -= 1
        while high < len(line) - 1 and alike[high + 1]:
            high += 1
        return low, high

    def _kept(self, at: Setup) -> tuple[Interval, Interval]:
        """What computation and communication keep, with 90 % intervals from the draws and the discrepancy."""
        draws = FittedModel(self.document, self.advice.name).draws([load_of(at, self.job.step)])
        unlike = np.broadcast_to(np.asarray(draws.discrepancy, dtype=float).reshape(4, -1), (4, 1))[:, 0]
        comp = _ratio(draws.comp_together[:, 0], draws.comp_alone[:, 0], unlike[2], unlike[0])
        return comp, _ratio(draws.comm_together[:, 0], draws.comm_alone[:, 0], unlike[3], unlike[1])


def _ratio(together: Array, alone: Array, unlike: float, unlike_alone: float) -> Interval:
    logs = np.log(np.maximum(together, 1e-9) / np.maximum(alone, 1e-9))
    spread = math.hypot(float(np.std(logs[1:])) if len(logs) > 1 else 0.0, unlike, unlike_alone)
    factor, value = math.exp(NORMAL_90 * spread), math.exp(float(logs[0]))
    return around(value, factor)


def _known_sizes(document: Document) -> tuple[int, int] | None:
    """The smallest and largest message that a model tells apart; None where it knows one size."""
    flow = document.models.flow
    if flow is not None and flow.load is not None and "sizes" in flow.load.measured:
        return flow.load.size_low, flow.load.size_high
    law = document.message_size
    return None if law is None else (min(law.sizes), max(law.sizes))


def check_shown(advice: Advice, document: Document) -> None:
    """UsageError if the advice is for another machine than the model."""
    check_same(
        difference(advice.machine, document.machine, advice.machine.__struct_fields__),
        message=f"is advice for {advice.machine.name}, but the model is for {document.machine.name}",
        field="advice",
        value=None,
        hint="get new advice: elbowroom advise M.json --job JOB.toml",
        places=("in the advice", "in the model"),
    )
