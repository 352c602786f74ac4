"""The advice: the smallest set of changes whose predicted gain is significant.

All setups are compared at the best fit. A gain is significant if its 90 % interval excludes 0. Of the best
setup's changes, the smallest subset is kept that gains significantly and over which the best setup itself
does not. Then single further changes are added while one gains significantly.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.advise.advice import Advice, Choice, Configuration
from elbowroom.advise.job import AXES, Job, Setup
from elbowroom.advise.reasons import headline, reason, remark
from elbowroom.advise.setups import changed, differing, load_of, setups
from elbowroom.advise.steps import PARTS, Predicted, Predictor, gain, steps
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document
from elbowroom.models.load import Load
from elbowroom.models.predict import VIRTUAL, FittedModel, chosen
from elbowroom.models.registry import names
from elbowroom.version import __version__

RUNNERS_UP = 5

ROUNDS = 4
"""Rounds of adding one further change; one round is nearly always enough."""

TIE = 1e-3
"""Setups whose predicted times differ by less than this share are equally good."""

EQUALS = 200
"""Number of equally good setups that are considered, those closest to the present one."""


def advise(document: Document, job: Job, *, model: str = "", name: str | None = None) -> Advice:
    """Advice for a job from a model's document; `model` is the name of its file or machine.

    UsageError if the job does not fit the machine, leaves nothing to choose, or needs a prediction that the
    model cannot make.
    """
    name = chosen(document, name)
    every = setups(job, document.machine)
    ask = Predictor(document, job, name)
    answered, left_out = answered_setups(ask, every)
    totals = steps(job, answered, ask.best_fit(answered)).total[0].tolist()
    fitting = _Fitting(set(answered))
    advised = _settled(ask, fitting, _equally_good(answered, totals, job.now))
    order = np.argsort(totals, kind="stable")
    ranked = [
        answered[index] for index in order[: RUNNERS_UP + 2] if answered[index] not in (advised, job.now)
    ]
    present, best = ask(job.now), ask(advised)
    whole = gain(present, best)
    configurations = [_configuration(ask, item) for item in (present, best)]
    choices = _choices(ask, fitting, advised)
    return Advice(
        elbowroom=__version__,
        model=model,
        name=name,
        machine=document.machine,
        job=job,
        now=configurations[0],
        advised=configurations[1],
        gain=whole,
        significant=advised != job.now and whole.excludes_zero,
        sentence=headline(present, best, whole, choices),
        choices=choices,
        runners_up=tuple(_configuration(ask, item) for item in ask.ask(ranked[:RUNNERS_UP])),
        considered=len(answered),
        left_out=left_out,
        notes=_notes(ask, configurations),
    )


def answered_setups(ask: Predictor, every: Sequence[Setup]) -> tuple[list[Setup], dict[str, int]]:
    """The setups that the model can predict, and the number of the others by reason.

    UsageError, the model's, if it cannot predict the present setup, or any other value of a choice.
    """
    ask.best_fit([ask.job.now])
    _check_threads(ask)
    kinds: dict[Load, Setup] = {}
    of = [_kind(load_of(setup, ask.job.step)) for setup in every]
    for kind, setup in zip(of, every, strict=True):
        kinds.setdefault(kind, setup)
    refused: dict[Load, UsageError] = {}
    try:
        ask.best_fit(list(kinds.values()))
    except UsageError:
        for kind, setup in kinds.items():
            try:
                ask.best_fit([setup])
            except UsageError as error:
                refused[kind] = error
    kept = [setup for kind, setup in zip(of, every, strict=True) if kind not in refused]
    _still_free(every, kept, refused)
    left_out = Counter(refused[kind].sentence() for kind in of if kind in refused)
    return kept, dict(left_out)


def _check_threads(ask: Predictor) -> None:
    """Refuses to choose a number of communication threads, or of processes with one each, by a model of one
    thread only: it predicts the same for any number.
    """
    flow, may = ask.document.models.flow, ask.job.may
    axis = "comm_threads" if may.comm_threads is not None else "processes"
    threads = getattr(may, axis)
    if ask.name != "flow" or flow is None or threads is None:
        return
    if flow.load is None or "threads" not in flow.load.measured:
        raise UsageError(
            f"the model of {ask.document.machine.name} has no run with several communication threads",
            field=f"may.{axis}",
            value=list(threads),
            hint="also fit a run of the plan `ring`: elbowroom run ring --out RUN2; elbowroom fit RUN RUN2",
        )


def _kind(load: Load) -> Load:
    """The load without its number of cores: the model can predict all such loads, or none."""
    return msgspec.structs.replace(
        load, computing=tuple(msgspec.structs.replace(group, count=1) for group in load.computing)
    )


def _still_free(every: Sequence[Setup], kept: Sequence[Setup], refused: dict[Load, UsageError]) -> None:
    """Raises the model's own error if it can predict only the present value of a choice."""
    for axis in AXES:
        offered, left = ({getattr(setup, axis) for setup in some} for some in (every, kept))
        if len(offered) > 1 and len(left) == 1:
            raise next(iter(refused.values()))


def _equally_good(every: Sequence[Setup], totals: Sequence[float], now: Setup) -> list[Setup]:
    """The setups with the shortest time; those with the fewest and smallest changes come first."""
    least = min(totals)
    equal = [setup for setup, total in zip(every, totals, strict=True) if total <= least * (1 + TIE)]

    def away(setup: Setup) -> tuple[int, int]:
        counts = ("cores", "cores_other", "comm_threads", "processes")
        return len(differing(setup, now)), sum(abs(getattr(setup, n) - getattr(now, n)) for n in counts)

    return sorted(equal, key=away)[:EQUALS]


class _Fitting:
    """The setups that fit the machine and that the model can predict."""

    def __init__(self, every: set[Setup]) -> None:
        self._every = every

    def __contains__(self, setup: Setup) -> bool:
        return setup in self._every

    def backwards(self, setup: Setup, axis: str, now: Setup) -> tuple[Setup, tuple[str, ...]] | None:
        """The setup with that axis, and as few others as it takes to fit, changed back; and those others."""
        plain = changed(setup, axis, now)
        if plain in self:
            return plain, ()
        others = [other for other in differing(setup, now) if other != axis]
        for other in others:
            if (both := changed(plain, other, now)) in self:
                return both, (other,)
        return (now, tuple(others)) if others else None

    def along(self, setup: Setup, axis: str) -> list[Setup]:
        """The setups that differ in that axis only."""
        values = {getattr(other, axis) for other in self._every}
        others = [
            msgspec.structs.replace(setup, **{axis: value})
            for value in values
            if value != getattr(setup, axis)
        ]
        return [other for other in others if other in self]


def _settled(ask: Predictor, fitting: _Fitting, equal: Sequence[Setup]) -> Setup:
    """The smallest set of changes with a significant gain, over which no other setup gains significantly. It
    leads towards the nearest of the equally good setups, or else towards the one with the narrowest interval.
    """
    surest = min(ask.ask(equal), key=lambda item: item.interval.high).setup
    setup = ask.job.now
    for best in dict.fromkeys((equal[0], surest)):
        setup = _fewest(ask, fitting, best)
        if setup != ask.job.now:
            break
    for _ in range(ROUNDS):
        more = _taken_up(ask, fitting, setup)
        if more == setup:
            break
        setup = _fewest(ask, fitting, more)
    return setup


def _fewest(ask: Predictor, fitting: _Fitting, best: Setup) -> Setup:
    """The smallest subset of the best setup's changes that gains significantly and over which the best setup
    does not; of several, the one that gains most. The present setup if the best one gains nothing over it.
    """
    now = ask.job.now
    present, whole = ask(now), ask(best)
    if gain(present, whole).low <= 0:
        return now
    axes = differing(best, now)
    for count in range(1, len(axes)):
        some = [
            msgspec.structs.replace(now, **{axis: getattr(best, axis) for axis in chosen_axes})
            for chosen_axes in itertools.combinations(axes, count)
        ]
        candidates = ask.ask(setup for setup in some if setup in fitting)
        enough = [item for item in candidates if gain(present, item).low > 0 and gain(item, whole).low <= 0]
        if enough:
            return min(enough, key=lambda item: item.total).setup
    return best


def _taken_up(ask: Predictor, fitting: _Fitting, setup: Setup) -> Setup:
    """The setup with the one further change that gains most, if that is significant."""
    open_axes = [axis for axis in AXES if getattr(setup, axis) == getattr(ask.job.now, axis)]
    others = [other for axis in open_axes for other in fitting.along(setup, axis)]
    tried = [(gain(ask(setup), item), item.setup) for item in ask.ask(others)]
    better = [(saved.value, other) for saved, other in tried if saved.low > 0]
    return max(better, key=lambda item: item[0])[1] if better else setup


def _choices(ask: Predictor, fitting: _Fitting, advised: Setup) -> tuple[Choice, ...]:
    free = [axis for axis in AXES if getattr(ask.job.may, axis) is not None]
    choices = []
    for axis in free:
        if getattr(advised, axis) != getattr(ask.job.now, axis):
            choices.append(_change(ask, fitting, axis, advised))
        elif (stay := _stay(ask, fitting, axis, advised)) is not None:
            choices.append(stay)
    return tuple(choices)


def _change(ask: Predictor, fitting: _Fitting, axis: str, advised: Setup) -> Choice:
    present = ask.job.now
    only = changed(present, axis, advised)
    alone = gain(ask(present), ask(only)) if only in fitting else None
    back = fitting.backwards(advised, axis, present)
    assert back is not None
    saved = gain(ask(back[0]), ask(advised))
    return Choice(
        axis=axis,
        now=_value(ask, present, axis),
        advised=_value(ask, advised, axis),
        significant=saved.excludes_zero,
        reason=reason(axis, ask(back[0]), ask(advised), _counted(ask, axis, back[0], advised)),
        alone=alone,
        back=saved,
        goes_with=back[1],
    )


def _stay(ask: Predictor, fitting: _Fitting, axis: str, advised: Setup) -> Choice | None:
    """The choice to keep an axis, and what its best other value might gain; None if no other value fits."""
    others = ask.ask(fitting.along(advised, axis))
    if not others:
        return None
    best = min(others, key=lambda item: item.total)
    might = gain(ask(advised), best)
    present = ask.job.now
    only = changed(present, axis, best.setup)
    now = _value(ask, present, axis)
    return Choice(
        axis=axis,
        now=now,
        advised=now,
        significant=might.excludes_zero,
        reason=remark(axis, ask(advised), best, might),
        other=_value(ask, best.setup, axis),
        alone=gain(ask(present), ask(only)) if only in fitting else None,
        back=might,
    )


def _value(ask: Predictor, setup: Setup, axis: str) -> object:
    """The value of an axis; for the accelerators' share, a number."""
    return ask(setup).w if axis == "w" else getattr(setup, axis)


def _counted(ask: Predictor, axis: str, back: Setup, advised: Setup) -> list[float]:
    """Bandwidths (MB/s) of the computation alone with 1 to as many cores of that axis as either setup has."""
    if axis not in ("cores", "cores_other"):
        return []
    most = max(getattr(back, axis), getattr(advised, axis))
    counts = [msgspec.structs.replace(advised, **{axis: n}) for n in range(1, most + 1)]
    return list(ask.best_fit(counts).streams[0, 0].tolist())


def _configuration(ask: Predictor, predicted: Predicted) -> Configuration:
    load = load_of(predicted.setup, ask.job.step)
    return Configuration(
        setup=msgspec.structs.replace(predicted.setup, w=predicted.w),
        load=load,
        **{part: getattr(predicted, part) for part in PARTS},
        total=predicted.interval,
        **dict(zip(STREAMS, predicted.streams, strict=True)),
        flags=FittedModel(ask.document, ask.name).predict_loads([load])[0].flags,
    )


def _notes(ask: Predictor, configurations: Sequence[Configuration]) -> tuple[str, ...]:
    """Limits of the advice."""
    known = ask.document.calibration
    notes = []
    if ask.job.step.comp_bytes is not None:
        notes.append(f"comp_bytes must be counted as in {known.kernel}, with which the model was calibrated.")
    notes += _node_limit(ask.job, configurations[1])
    flagged = {"now": configurations[0].flags, "advised": configurations[1].flags}
    if flagged["now"] == flagged["advised"]:
        flagged = {"now, advised": flagged["now"]}
    notes += [f"{which}: {flag}" for which, flags in flagged.items() for flag in flags if flag != VIRTUAL]
    others = tuple(f"{other}{mark}" for other in names() if other != ask.name for mark in ",:")
    return (*notes, *(doubt for doubt in ask.document.validity if not doubt.startswith(others)))


def _node_limit(job: Job, advised: Configuration) -> list[str]:
    """From how many nodes on communication limits the advised setup; empty where the nodes stay or it never
    does.
    """
    shrinks = 1 - job.step.comm_exponent
    if job.may.nodes is None or not shrinks or not advised.setup.overlap or not advised.t_comm:
        return []
    ratio = advised.l_comp * advised.t_comp / (advised.l_comm * advised.t_comm)
    if not ratio > 0:
        return []
    nodes = advised.setup.nodes * ratio ** (1 / shrinks)
    alone = advised.setup.nodes * (advised.t_comp / advised.t_comm) ** (1 / shrinks)
    return [
        f"Communication limits the advised setup from {nodes:,.3g} nodes on, where T_M^C = T_N^C; without "
        f"contention it would from {alone:,.3g}."
    ]
