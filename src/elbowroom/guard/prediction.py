"""What a lever may gain at most by a model of the machine, before anything is tried.

While messages move, `before` cores have memory-bound work, and with the lever `after` of them. The model says
what computation and messages keep of their bandwidths in either case; a step gains what the side that keeps
less gets back, for as long as messages move. It is the most, because it takes all messages to move beside
memory-bound work on all these cores, in the placement that loses most, and a step to wait for that side.
Cores that messages and tasks share, waiting and polling are no part of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from elbowroom.models.document import Document
from elbowroom.models.load import Prediction
from elbowroom.models.predict import FittedModel, situations
from elbowroom.stats.interval import Interval

_MEGA = 1e6


class SiteModel(NamedTuple):
    """The document of the model of this machine; None: there is none, for this reason."""

    document: Document | None
    reason: str = ""


NO_MODEL = SiteModel(None, "no model of this machine is given")


class KeptShare(NamedTuple):
    """Of an own bandwidth, what a side keeps, and the half-width of its 90 % interval."""

    value: float
    half_width: float


ALL_OF_IT = KeptShare(1.0, 0.0)


class PredictedGains:
    """Gains by the model of a `document` while messages of `rate` B/s enter or leave this node, whichever is
    more.
    """

    def __init__(self, document: Document, rate: float) -> None:
        """Predicts nothing yet. UsageError for a document without a model of memory."""
        self._model, self.rate = FittedModel(document), rate
        self._predictions = cache(self._of_cores)

    def gain(self, before: int, after: int, *, of_messages: bool) -> Interval:
        """The share of a step that is gained at most where `after` cores in place of `before` have
        memory-bound work while messages move, with its 90 % interval. `of_messages`: the computation is
        another job's, so what it keeps does not count.
        """
        cores = self._model.document.machine.cores_first_socket
        before, after = min(before, cores), min(after, cores)
        gains = [
            self._gain_of(now, then, of_messages)
            for now, then in zip(self._predictions(before), self._then(before, after), strict=True)
        ]
        return max(gains, key=lambda one: one.value, default=Interval(value=0.0, low=0.0, high=0.0))

    def _of_cores(self, count: int) -> Sequence[Prediction]:
        """In all placements that the model can answer for; none without cores."""
        if not count:
            return ()
        every = situations(self._model.document.machine, n=count)
        return self._model.predict([one for one in every if self._model.answers(one)])

    def _then(self, before: int, after: int) -> Iterator[Prediction | None]:
        if not after:
            yield from (None for _ in self._predictions(before))
        else:
            yield from self._predictions(after)

    def _gain_of(self, now: Prediction, then: Prediction | None, of_messages: bool) -> Interval:
        busy = min(self.rate / _MEGA / now.comm_together.value, 1.0) if now.comm_together.value else 0.0
        kept = _kept(now, of_messages)
        later = ALL_OF_IT if then is None else _kept(then, of_messages)
        ratio = kept.value / later.value
        half = busy * ratio * math.hypot(kept.half_width / kept.value, later.half_width / later.value)
        value = max(busy * (1 - ratio), 0.0)
        return Interval(value=value, low=max(value - half, 0.0), high=min(value + half, 1.0))


def _kept(prediction: Prediction, of_messages: bool) -> KeptShare:
    """By the side that keeps less."""
    messages = _share(prediction.comm_together, prediction.comm_alone)
    return messages if of_messages else min(messages, _share(prediction.comp_together, prediction.comp_alone))


def _share(together: Interval, alone: Interval) -> KeptShare:
    share = together.value / alone.value
    return KeptShare(share, share * math.hypot(_relative(together), _relative(alone)))


def _relative(interval: Interval) -> float:
    low, high = interval.ends(interval.value)
    return (high - low) / 2 / interval.value
