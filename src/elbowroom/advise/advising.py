"""The advice: the best setup by predicted step time, with the fewest changes that surely gain.

The exhaustive product is compared at the best fit. Of the best setup's changes the fewest are kept that
surely gain (the 90 % interval leaves out 0) and over which the best one itself does not; a value is taken up
where that alone surely gains.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom import __version__
from elbowroom.advise.advice import Advice, Choice, Configuration
from elbowroom.advise.gains import Predicted, Predictor, gain, sure
from elbowroom.advise.job import AXES, Job, Setup
from elbowroom.advise.reasons import headline, reason, remark
from elbowroom.advise.setups import changed, differing, load_of, setups
from elbowroom.advise.steps import rates, steps
from elbowroom.errors import UsageError
from elbowroom.model.document import MODELS, Document, ModelName
from elbowroom.model.load import Load
from elbowroom.predict.answering import VIRTUAL, chosen

RUNNERS_UP = 5

ROUNDS = 4
"""Of taking up one change more; one settles it nearly always."""

TIE = 1e-3
"""Setups whose predicted times differ by less than this share are equally good."""

EQUALS = 200
"""So many equally good setups are looked at, those nearest to now."""


def advise(document: Document, job: Job, *, model: str = "", name: ModelName | None = None) -> Advice:
    """Advice for a job by a model's document; `model` says which file or machine that is.

    UsageError where the job does not fit the machine, leaves nothing to choose, or asks what the model cannot
    answer.
    """
    name = chosen(document, name)
    every = setups(job, document.machine)
    answered, left_out = answerable(document, job, every, name)
    totals = _totals(document, job, answered, name)
    ask, fitting = Predictor(document, job, name), _Fitting(set(answered))
    advised = _settled(ask, job, fitting, _equally_good(answered, totals, job.now))
    order = np.argsort(totals, kind="stable")
    ranked = [
        answered[index] for index in order[: RUNNERS_UP + 2] if answered[index] not in (advised, job.now)
    ]
    present, found = ask(job.now), ask(advised)
    whole = gain(present, found)
    configurations = [_configuration(document, job, name, item) for item in (present, found)]
    choices = _choices(ask, job, document, name, fitting, advised)
    return Advice(
        elbowroom=__version__,
        model=model,
        name=name,
        machine=document.machine,
        job=job,
        now=configurations[0],
        advised=configurations[1],
        gain=whole,
        sure=advised != job.now and sure(whole),
        sentence=headline(present, found, whole, choices),
        choices=choices,
        runners_up=tuple(_configuration(document, job, name, item) for item in ask.ask(ranked[:RUNNERS_UP])),
        considered=len(answered),
        left_out=left_out,
        notes=_notes(document, job, name, configurations),
    )


def answerable(
    document: Document, job: Job, every: Sequence[Setup], name: ModelName
) -> tuple[list[Setup], dict[str, int]]:
    """The setups that the model can answer, and how many not, by reason.

    UsageError, the model's, where it cannot answer the present one or no value of a choice but the present.
    """
    bare = without_draws(document)
    rates(bare, job, [job.now], name=name)
    _check_threads(document, job, name)
    kinds: dict[Load, Setup] = {}
    of = [_kind(load_of(setup, job.step)) for setup in every]
    for kind, setup in zip(of, every, strict=True):
        kinds.setdefault(kind, setup)
    refused: dict[Load, UsageError] = {}
    try:
        rates(bare, job, list(kinds.values()), name=name)
    except UsageError:
        for kind, setup in kinds.items():
            try:
                rates(bare, job, [setup], name=name)
            except UsageError as error:
                refused[kind] = error
    kept = [setup for kind, setup in zip(of, every, strict=True) if kind not in refused]
    _still_free(every, kept, refused)
    left_out = Counter(refused[kind].sentence() for kind in of if kind in refused)
    return kept, dict(left_out)


def _check_threads(document: Document, job: Job, name: ModelName) -> None:
    """A model that saw one communication thread says of several that they are as good as one, which is no
    reason to choose among them.
    """
    flow = document.models.flow
    if name != "flow" or flow is None or job.may.comm_threads is None:
        return
    if flow.load is None or "threads" not in flow.load.measured:
        raise UsageError(
            f"{document.machine.name}'s model has no run with several communication threads",
            field="may.comm_threads",
            value=list(job.may.comm_threads),
            mend="fit it with the plan `ring` too: elbowroom run ring --out RUN2; elbowroom fit RUN RUN2",
        )


def _kind(load: Load) -> Load:
    """Loads that differ in how many cores compute are answered alike, or not at all."""
    return msgspec.structs.replace(
        load, computing=tuple(msgspec.structs.replace(group, count=1) for group in load.computing)
    )


def _still_free(every: Sequence[Setup], kept: Sequence[Setup], refused: dict[Load, UsageError]) -> None:
    """Raises the model's own sentence where all of a choice asks what it has no runs for."""
    for axis in AXES:
        asked, left = ({getattr(setup, axis) for setup in some} for some in (every, kept))
        if len(asked) > 1 and len(left) == 1:
            raise next(iter(refused.values()))


def without_draws(document: Document) -> Document:
    """The document with the best fit of FLOW only: the quick first comparison."""
    models = document.models
    if models.flow is None:
        return document
    load = models.flow.load
    bare = None if load is None else msgspec.structs.replace(load, draws=())
    flow = msgspec.structs.replace(models.flow, draws=(), load=bare)
    return msgspec.structs.replace(document, models=msgspec.structs.replace(models, flow=flow))


def _totals(document: Document, job: Job, every: Sequence[Setup], name: ModelName) -> list[float]:
    """Predicted times (s) of the steps at the best fit."""
    given = rates(without_draws(document), job, every, name=name)
    return list(steps(job, every, given).total[0].tolist())


def _equally_good(every: Sequence[Setup], totals: Sequence[float], now: Setup) -> list[Setup]:
    """The setups of the least time, those with the fewest and the smallest changes first."""
    least = min(totals)
    equal = [setup for setup, total in zip(every, totals, strict=True) if total <= least * (1 + TIE)]

    def away(setup: Setup) -> tuple[int, int]:
        counts = ("cores", "cores_other", "comm_threads")
        return len(differing(setup, now)), sum(abs(getattr(setup, n) - getattr(now, n)) for n in counts)

    return sorted(equal, key=away)[:EQUALS]


class _Fitting:
    """Which setups may be asked for."""

    def __init__(self, every: set[Setup]) -> None:
        self._every = every

    def __contains__(self, setup: Setup) -> bool:
        return setup in self._every

    def backwards(self, setup: Setup, axis: str, now: Setup) -> tuple[Setup, tuple[str, ...]] | None:
        """The setup with that axis as now, and with as few others as it takes to fit; those others."""
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
        found = {getattr(other, axis) for other in self._every}
        others = [
            msgspec.structs.replace(setup, **{axis: value})
            for value in found
            if value != getattr(setup, axis)
        ]
        return [other for other in others if other in self]


def _settled(ask: Predictor, job: Job, fitting: _Fitting, equal: Sequence[Setup]) -> Setup:
    """The fewest changes that surely gain, than which nothing known surely gains more: towards the nearest of
    the equally good setups, or else the one whose time is surest.
    """
    surest = min(ask.ask(equal), key=lambda item: item.interval.high).setup
    setup = job.now
    for best in dict.fromkeys((equal[0], surest)):
        setup = _fewest(ask, job, fitting, best)
        if setup != job.now:
            break
    for _ in range(ROUNDS):
        more = _taken_up(ask, job, fitting, setup)
        if more == setup:
            break
        setup = _fewest(ask, job, fitting, more)
    return setup


def _fewest(ask: Predictor, job: Job, fitting: _Fitting, best: Setup) -> Setup:
    """Of all ways to make some of the best setup's changes, the one with the fewest that surely gains and
    that the best one does not surely gain over; of several, the one that gains most. The present setup where
    the best one does not surely gain over it.
    """
    present, whole = ask(job.now), ask(best)
    if gain(present, whole).low <= 0:
        return job.now
    axes = differing(best, job.now)
    for count in range(1, len(axes)):
        some = [
            msgspec.structs.replace(job.now, **{axis: getattr(best, axis) for axis in chosen_axes})
            for chosen_axes in itertools.combinations(axes, count)
        ]
        asked = ask.ask(setup for setup in some if setup in fitting)
        enough = [item for item in asked if gain(present, item).low > 0 and gain(item, whole).low <= 0]
        if enough:
            return min(enough, key=lambda item: item.total).setup
    return best


def _taken_up(ask: Predictor, job: Job, fitting: _Fitting, setup: Setup) -> Setup:
    """With the one change more that surely gains most."""
    open_axes = [axis for axis in AXES if getattr(setup, axis) == getattr(job.now, axis)]
    others = [other for axis in open_axes for other in fitting.along(setup, axis)]
    tried = [(gain(ask(setup), item), item.setup) for item in ask.ask(others)]
    better = [(saved.value, other) for saved, other in tried if saved.low > 0]
    return max(better, key=lambda item: item[0])[1] if better else setup


def _choices(
    ask: Predictor, job: Job, document: Document, name: ModelName, fitting: _Fitting, advised: Setup
) -> tuple[Choice, ...]:
    free = [axis for axis in AXES if getattr(job.may, axis) is not None]
    found = []
    for axis in free:
        if getattr(advised, axis) != getattr(job.now, axis):
            found.append(_change(ask, job, fitting, axis, advised, document, name))
        elif (stay := _stay(ask, job, fitting, axis, advised)) is not None:
            found.append(stay)
    return tuple(found)


def _change(
    ask: Predictor,
    job: Job,
    fitting: _Fitting,
    axis: str,
    advised: Setup,
    document: Document,
    name: ModelName,
) -> Choice:
    only = changed(job.now, axis, advised)
    alone = gain(ask(job.now), ask(only)) if only in fitting else None
    back = fitting.backwards(advised, axis, job.now)
    assert back is not None
    saved = gain(ask(back[0]), ask(advised))
    return Choice(
        axis=axis,
        now=_value(ask, job.now, axis),
        advised=_value(ask, advised, axis),
        sure=sure(saved),
        reason=reason(
            axis, ask(back[0]), ask(advised), _counted(document, job, name, axis, back[0], advised)
        ),
        alone=alone,
        back=saved,
        goes_with=back[1],
    )


def _stay(ask: Predictor, job: Job, fitting: _Fitting, axis: str, advised: Setup) -> Choice | None:
    """That an axis stays, and what its best other value might gain; None where no other value fits."""
    others = ask.ask(fitting.along(advised, axis))
    if not others:
        return None
    best = min(others, key=lambda item: item.total)
    might = gain(ask(advised), best)
    only = changed(job.now, axis, best.setup)
    now = _value(ask, job.now, axis)
    return Choice(
        axis=axis,
        now=now,
        advised=now,
        sure=sure(might),
        reason=remark(axis, ask(advised), best, might),
        other=_value(ask, best.setup, axis),
        alone=gain(ask(job.now), ask(only)) if only in fitting else None,
        back=might,
    )


def _value(ask: Predictor, setup: Setup, axis: str) -> object:
    """The axis' value; the accelerators' share as a number."""
    return ask(setup).w if axis == "w" else getattr(setup, axis)


def _counted(
    document: Document, job: Job, name: ModelName, axis: str, back: Setup, advised: Setup
) -> list[float]:
    """Bandwidths (MB/s) of the computation alone with 1 to as many cores of that axis as either setup has."""
    if axis not in ("cores", "cores_other"):
        return []
    most = max(getattr(back, axis), getattr(advised, axis))
    counts = [msgspec.structs.replace(advised, **{axis: n}) for n in range(1, most + 1)]
    return list(rates(without_draws(document), job, counts, name=name).streams[0, 0].tolist())


def _configuration(document: Document, job: Job, name: ModelName, found: Predicted) -> Configuration:
    from elbowroom.predict.loading import predict_loads

    load = load_of(found.setup, job.step)
    comp_alone, comm_alone, comp, comm = found.streams
    return Configuration(
        setup=msgspec.structs.replace(found.setup, w=found.w),
        load=load,
        separator=found.separator,
        t_comp=found.t_comp,
        t_comm=found.t_comm,
        l_comp=found.l_comp,
        l_comm=found.l_comm,
        t_acc=found.t_acc,
        total=found.interval,
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp,
        comm_together=comm,
        flags=predict_loads(document, [load], name=name)[0].flags,
    )


def _notes(
    document: Document, job: Job, name: ModelName, configurations: Sequence[Configuration]
) -> tuple[str, ...]:
    """What to know before believing the advice."""
    known = document.calibration
    notes = []
    if job.step.comp_bytes is not None:
        notes.append(
            f"Bytes are counted as {known.kernel} counts its own, with which the model was calibrated."
        )
    told = {"now": configurations[0].flags, "advised": configurations[1].flags}
    if told["now"] == told["advised"]:
        told = {"now, advised": told["now"]}
    notes += [f"{which}: {flag}" for which, flags in told.items() for flag in flags if flag != VIRTUAL]
    others = tuple(f"{other}{mark}" for other in MODELS if other != name for mark in ",:")
    return (*notes, *(doubt for doubt in document.validity if not doubt.startswith(others)))
