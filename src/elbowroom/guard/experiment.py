"""The online experiment of a guard: blocks of steps under each setting in turns, and when that says enough.

A round has one block of steps under each arm that is left, in random order, so that what changes slowly is
on all of them. Each round gives one value for an arm: ln(duration of a step as it is / under the arm). The
gain is their pseudo-median with the interval of signed ranks (stats/signed_ranks.py), which holds for any
symmetric noise and needs no variance.

Someone who looks after each round sees an effect sooner or later where there is none. So the experiment looks
only after LOOKS rounds, and the k-th look may err with a chance of ERROR / (k (k + 1)): all looks together
err with ERROR at most, however long the program runs. Arms share it (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

Verdict = Literal["pays", "off", "cannot say"]

ERROR = 0.05
"""The chance that any look of an experiment claims what is not there."""
FIRST_LOOK = 8
"""Rounds before the first look: signed ranks of fewer cannot reach its error for two arms."""
GROWTH = 1.4
"""From a look to the next one. Each look costs confidence, so there are few: 11 within 300 rounds."""
NOTHING = 0.005
"""A gain below this is not worth a lever: an arm that cannot gain more is given up."""
AS_IT_IS = "off"
"""The arm without acting."""


def looks(rounds: int) -> tuple[int, ...]:
    """The numbers of rounds, up to `rounds`, after which an experiment looks."""
    result: list[int] = []
    at = FIRST_LOOK
    while at <= rounds:
        result.append(at)
        at = max(at + 1, math.ceil(at * GROWTH))
    return tuple(result)


def confidence_of_look(number: int, arms: int = 1, error: float = ERROR) -> float:
    """The confidence of the interval at the look `number` (from 1) for one of `arms`."""
    return 1 - error / (number * (number + 1) * arms)


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an arm gained: the share of the duration of a step that it saves, with an interval that holds over
    all looks; None before the first one. `rounds`: on which it is based.
    """

    arm: str
    gain: Interval | None
    rounds: int

    @property
    def pays(self) -> bool:
        """Whether the whole interval is a gain."""
        return self.gain is not None and self.gain.low > 0

    @property
    def is_useless(self) -> bool:
        """Whether the whole interval is below what is worth acting for."""
        return self.gain is not None and self.gain.high < NOTHING


class OnlineExperiment:
    """Which of `arms` makes steps shorter. Not for several threads.

    `next_arm` says under which arm the next block of steps runs, `add` takes how long its steps were, and
    `results` what is known after the last look. An arm that turned out useless gets no more blocks; once an
    arm pays and no other may be better, `is_decided`.
    """

    def __init__(self, arms: Sequence[str], *, seed: int = 0, error: float = ERROR) -> None:
        """Arms besides AS_IT_IS, each once; at least one. ValueError otherwise."""
        if not arms or len({AS_IT_IS, *arms}) != len(arms) + 1:
            raise ValueError(f"arms {list(arms)}: at least one, each once, and none is called {AS_IT_IS}")
        self.arms = tuple(arms)
        self._left = list(arms)
        self._error = error
        self._generator = np.random.default_rng(seed)
        self._logs: dict[str, list[float]] = {arm: [] for arm in arms}
        self._round: dict[str, float] = {}
        self._pending: list[str] = []
        self._results = {arm: ArmResult(arm=arm, gain=None, rounds=0) for arm in arms}

    @property
    def results(self) -> tuple[ArmResult, ...]:
        """Of each arm, as of its last look."""
        return tuple(self._results[arm] for arm in self.arms)

    @property
    def best(self) -> ArmResult | None:
        """The arm that pays most; None where none does."""
        paying = [one for one in self.results if one.pays and one.gain is not None]
        return max(paying, key=lambda one: one.gain.value if one.gain else 0.0, default=None)

    @property
    def is_decided(self) -> bool:
        """Whether more rounds would change nothing: no arm is left that may be better than the best one."""
        best = self.best
        least = 0.0 if best is None or best.gain is None else best.gain.low
        others = [self._results[arm].gain for arm in self._left if best is None or arm != best.arm]
        return all(gain is not None and gain.high <= max(least, NOTHING) for gain in others)

    @property
    def verdict(self) -> Verdict:
        """What the experiment says so far."""
        if self.best is not None:
            return "pays"
        return "off" if all(one.is_useless for one in self.results) else "cannot say"

    def next_arm(self) -> str:
        """The arm of the next block; AS_IT_IS once every other one is given up."""
        if not self._pending:
            self._pending = [str(arm) for arm in self._generator.permutation([AS_IT_IS, *self._left])]
        return self._pending[-1]

    def add(self, seconds: float) -> None:
        """The duration of a step of the block under `next_arm`, in seconds: its mean. ValueError unless it is
        above 0.
        """
        if not (seconds > 0 and math.isfinite(seconds)):
            raise ValueError(f"seconds {seconds}: the duration of a step must be above 0")
        self._round[self.next_arm()] = seconds
        self._pending.pop()
        if not self._pending:
            self._close_round()

    def abandon_round(self) -> None:
        """Forgets the blocks of this round: the program has changed its phase, or was interrupted."""
        self._round.clear()
        self._pending.clear()

    def _close_round(self) -> None:
        base = self._round.pop(AS_IT_IS)
        for arm, seconds in self._round.items():
            self._logs[arm].append(math.log(base / seconds))
        self._round.clear()
        for arm in tuple(self._left):
            self._look(arm)

    def _look(self, arm: str) -> None:
        rounds = len(self._logs[arm])
        if rounds not in (done := looks(rounds)):
            return
        values = np.array(self._logs[arm])
        ends = rank_interval(values, confidence_of_look(len(done), len(self.arms), self._error))
        if ends is None:
            return
        low, middle, high = (-math.expm1(-log) for log in (ends[0], pseudo_median(values), ends[1]))
        gain = Interval(value=middle, low=low, high=high)
        self._results[arm] = ArmResult(arm=arm, gain=gain, rounds=rounds)
        if self._results[arm].is_useless:
            self._left.remove(arm)
