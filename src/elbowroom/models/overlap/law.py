"""How long a step takes that computes and communicates at once (Langguth, Cai, Sourouri 2018, sections IV and
VI), beside what people assume without a model: the longer of the two, and one after the other.

All times are in one unit, any one; performances are work per that unit. Loss ratios are the bandwidth alone
divided by the bandwidth together, so they are at least 1.

How far the overlap model is from measured steps, and beside it what people assume without a model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.stats.overlapped_times import OverlappedTimes

HARDLY = 0.05
"""A gain below this share of the time one after the other is called hardly worth the effort: it is no larger
than the model's own mean error on the measurements that were published with it (Table II: 5.7 %).
"""


class OverlappedStep(msgspec.Struct, frozen=True, kw_only=True):
    """What overlaps: the times of computation and communication alone and their loss ratios L_M and L_N.

    Raises UsageError where a time is negative, a ratio below 1, or either is no finite number.
    """

    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float

    def __post_init__(self) -> None:
        for field in ("t_comp", "t_comm"):
            check(field, getattr(self, field), low=0.0, what="a time", hint="give the time it takes alone")
        for field in ("l_comp", "l_comm"):
            check(
                field,
                getattr(self, field),
                low=1.0,
                what="a loss ratio",
                hint="give the bandwidth alone divided by the bandwidth together",
            )

    @property
    def comp_contended(self) -> float:
        """T_M^C: the computation's time when the communication never ends."""
        return self.l_comp * self.t_comp

    @property
    def comm_contended(self) -> float:
        """T_N^C: the communication's time when the computation never ends."""
        return self.l_comm * self.t_comm

    @property
    def naive_max(self) -> float:
        """The longer of the two: what overlapping gives when nothing is shared."""
        return max(self.t_comp, self.t_comm)

    @property
    def naive_sum(self) -> float:
        return self.t_comp + self.t_comm

    @property
    def together(self) -> float:
        """How long both are active, and both at their contended bandwidth."""
        return min(self.comp_contended, self.comm_contended)

    @property
    def total(self) -> float:
        """T_tot (section IV): contended until the first ends, then the other at its bandwidth alone.

        Written as the time alone of the one that ends last and what the other costs it, which is the same and
        exact where one of them has nothing to do.
        """
        if self.comp_contended <= self.comm_contended:
            return self.t_comm + self.together * (1.0 - 1.0 / self.l_comm)
        return self.t_comp + self.together * (1.0 - 1.0 / self.l_comp)

    @property
    def gain(self) -> float:
        """What overlapping saves of the time one after the other, as a share of it; negative where it costs.

        Its sign does not depend on the times: it is that of 1/L_M + 1/L_N - 1, the work done per unit of time
        together, less that one after the other.
        """
        return 1.0 - self.total / self.naive_sum if self.naive_sum > 0.0 else 0.0

    @property
    def overlap(self) -> float | None:
        """(serial - total) / min(T_M, T_N), unclamped; None where a side takes no time."""
        return self._times.overlap

    @property
    def fraction_of_ideal(self) -> float | None:
        """What overlapping saves as a share of what it would save without contention: (serial - total) /
        (serial - max(T_M, T_N)). None where a side takes no time.
        """
        return self._times.fraction_of_ideal

    @property
    def _times(self) -> OverlappedTimes:
        return OverlappedTimes(comp=self.t_comp, comm=self.t_comm, together=self.total)

    @property
    def pace(self) -> float:
        """1/L_M + 1/L_N: work done while both are active, relative to one after the other. Below 1 it is
        better not to overlap.
        """
        return 1.0 / self.l_comp + 1.0 / self.l_comm


class WorkSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A split of the work between CPU and accelerators: `w` of it runs on the accelerators, for `t_acc`; the
    CPU's part overlaps the communication as `step`.
    """

    w: float
    t_acc: float
    step: OverlappedStep

    @property
    def total(self) -> float:
        """The time of the slower side."""
        return max(self.t_acc, self.step.total)


class AcceleratedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with accelerators (section VI): `work` per step, the performances of CPU and accelerators, the
    time of the communication alone, and the loss ratios of the CPU's part. `w_limit`: the largest share of
    the work whose data fits into the accelerators' memory.

    Raises UsageError as `Step` does, and where work or a performance is not positive.
    """

    work: float
    p_comp: float
    p_acc: float
    t_comm: float
    l_comp: float
    l_comm: float
    w_limit: float = 1.0

    def __post_init__(self) -> None:
        hint = "give the memory of the accelerators divided by the data of all work"
        check("w_limit", self.w_limit, low=0.0, high=1.0, what="the largest share", hint=hint)
        for field, what, hint in (
            ("work", "the work of a step", "give how much there is to do, CPU and accelerators together"),
            ("p_comp", "a performance", "give the CPU's work per unit of time, alone"),
            ("p_acc", "a performance", "give the accelerators' work per unit of time, all together"),
        ):
            check(field, getattr(self, field), low=0.0, above=True, what=what, hint=hint)
        self.split(self.w_limit)

    def split(self, w: float) -> WorkSplit:
        """The step with the share `w` of the work on the accelerators, 0 to `w_limit`; UsageError else."""
        hint = "give a share of the work" + (", whose data their memory holds" if self.w_limit < 1.0 else "")
        check("w", w, low=0.0, high=self.w_limit, what="the accelerators' share", hint=hint)
        step = OverlappedStep(
            t_comp=self.work * (1.0 - w) / self.p_comp,
            t_comm=self.t_comm,
            l_comp=self.l_comp,
            l_comm=self.l_comm,
        )
        return WorkSplit(w=w, t_acc=self.work * w / self.p_acc, step=step)

    def best_split(self) -> WorkSplit:
        """The split that takes least time, by bisection.

        More on the accelerators takes them longer and the CPU less, so the best split is where both end at
        once; there is none where even the communication alone outlasts all the work on the accelerators
        (T_N >= W/P_A), and then they get all of it that their memory holds. The CPU gets all only where they
        hold nothing.
        """
        whole = self.split(self.w_limit)
        if whole.step.total >= whole.t_acc:
            return whole
        low, high = 0.0, self.w_limit
        while low < (middle := (low + high) / 2.0) < high:
            split = self.split(middle)
            if split.t_acc < split.step.total:
                low = middle
            else:
                high = middle
        return min((self.split(low), self.split(high)), key=lambda split: split.total)


def worth(step: OverlappedStep) -> str:
    """One sentence: is overlapping worth it, and why."""
    total, one_by_one = _plain(step.total), _plain(step.naive_sum)
    if min(step.t_comp, step.t_comm) == 0.0:
        return f"There is nothing to overlap: the step takes {total} either way."
    figures = f"{total} against {one_by_one} one after the other"
    pace = f"1/L_M + 1/L_N = {step.pace:.3f}"
    free = f"without contention it would be {_plain(step.naive_max)}"
    if step.gain < 0.0:
        return (
            f"Overlapping is not worth it: {figures}, {-step.gain:.1%} longer, because both together get "
            f"less done than one after the other ({pace} is below 1)."
        )
    if step.gain < HARDLY:
        return f"Overlapping is hardly worth it: {figures}, {step.gain:.1%} saved ({pace}; {free})."
    return f"Overlapping is worth it: {figures}, {step.gain:.1%} saved ({pace}; {free})."


def check(
    field: str,
    value: float,
    *,
    low: float,
    high: float = math.inf,
    above: bool = False,
    what: str,
    hint: str,
) -> None:
    """Raises UsageError unless `value` is finite and low <= value <= high (low < value when `above`)."""
    if math.isfinite(value) and low <= value <= high and not (above and value == low):
        return
    if high < math.inf:
        bounds = f"{what} is between {low:g} and {high:g}"
    else:
        bounds = f"{what} is {'above' if above else 'at least'} {low:g} and finite"
    raise UsageError(bounds, field=field, value=value, hint=hint)


def _plain(value: float) -> str:
    return f"{value:.4g}"


RIVALS = ("total", "naive_max", "naive_sum")
"""The model's total, the longer of the two, one after the other: names of Step's properties."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """An overlapped step and how long it took; `measured` None: not measured. `label` names it."""

    label: str
    step: OverlappedStep
    measured: float | None = None

    def error(self, rival: str) -> float | None:
        """(predicted - measured) / measured."""
        if self.measured is None:
            return None
        predicted: float = getattr(self.step, rival)
        return (predicted - self.measured) / self.measured


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """Mean absolute error as a share of what was measured, and as a share of what was predicted: the latter
    is how the paper's Table II has it, and flatters whoever predicts too much.
    """

    of_measured: float
    of_predicted: float | None


def deviations(trials: Sequence[Trial]) -> dict[str, Deviation]:
    """For each of RIVALS; empty where nothing was measured. `of_predicted`: None where a prediction is 0."""
    measured = [(trial, trial.measured) for trial in trials if trial.measured is not None]
    table = {}
    for rival in RIVALS if measured else ():
        pairs = [(float(getattr(trial.step, rival)), value) for trial, value in measured]
        known = all(predicted > 0.0 for predicted, _ in pairs)
        table[rival] = Deviation(
            of_measured=sum(abs(a - b) / b for a, b in pairs) / len(pairs),
            of_predicted=sum(abs(a - b) / a for a, b in pairs) / len(pairs) if known else None,
        )
    return table
