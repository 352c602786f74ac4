"""The online experiment of a guard: blocks of steps under each setting in turns, and when that says enough.

A round has one block of steps under each arm that is left, in random order, so that what changes slowly is
on all of them. Each round gives one value for an arm: ln(duration of a step as it is / under the arm). The
gain is their pseudo-median with the interval of signed ranks (stats/signed_ranks.py), which holds for any
symmetric noise and needs no variance.

Someone who looks after each round sees an effect sooner or later where there is none. So the experiment looks
only after `looks`, and the k-th look may err with a chance of ERROR / (k (k + 1)): all looks together err
with ERROR at most, however long the program runs, and half of it is for the first look, at which large
effects are seen. That holds for each end of the interval by itself. The low end says that a setting pays:
acting arms share the error (Bonferroni). The high end says that an arm is useless: the verdict `off` needs it
of all arms, and is wrong only where that of the best one is (an intersection-union test), so they need not
share.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

Verdict = Literal["pays", "off", "cannot say"]

ERROR = 0.05
"""The chance that any look of an experiment claims what is not there."""
GROWTH = 1.4
"""From a look to the next one. Each look costs confidence, so there are few: 11 within 200 rounds."""
NOTHING = 0.01
"""A gain below this is not worth a lever: an arm that cannot gain more is given up."""
AS_IT_IS = "off"
"""The arm without acting."""
PLACEBO = "placebo"
"""The arm under which levers do all that they do when they act, and write what they read."""
HARM = 0.01
"""A loss above this, in the rounds before the first look, ends an arm."""
HARM_ROUNDS = 4
"""From so many rounds on: all of four, or all but one of more. An arm that is given up by mistake costs a
gain, never time.
"""


def first_look(arms: int = 1, error: float = ERROR) -> int:
    """Rounds before the first look: all signs alike of fewer are not rarer than its error."""
    return math.ceil(-math.log2(error_of_look(1, arms, error)))


def looks(rounds: int, arms: int = 1, error: float = ERROR) -> tuple[int, ...]:
    """The numbers of rounds, up to `rounds`, after which an experiment with so many acting arms looks."""
    result: list[int] = []
    at = first_look(arms, error)
    while at <= rounds:
        result.append(at)
        at = max(at + 1, math.ceil(at * GROWTH))
    return tuple(result)


def error_of_look(number: int, arms: int = 1, error: float = ERROR) -> float:
    """The chance that an end of the interval errs at the look `number` (from 1) for one of `arms`."""
    return error / (number * (number + 1) * arms)


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

    `order` says in which order the blocks of a round run, `add_round` takes how long their steps were, and
    `results` what is known after the last look. An arm that turned out useless or harmful gets no more
    blocks; once an arm pays and no other may be better, `is_decided`. The arm PLACEBO shows what the guard
    itself costs, and decides nothing, but where it "pays", no other arm does.
    """

    def __init__(
        self,
        arms: Sequence[str],
        *,
        seed: int = 0,
        error: float = ERROR,
        earlier: Mapping[str, Sequence[float]] | None = None,
        reference: str = AS_IT_IS,
        placebo: str = PLACEBO,
        levers: int = 1,
    ) -> None:
        """Arms besides `reference`, with which they are compared, at least one, each once; ValueError
        otherwise. `placebo`: the name of the arm that is one. `levers`: so many experiments share the error
        of a claim that a setting pays. `earlier`: the values of rounds in earlier runs of the program, by arm
        (`logs`).
        """
        if not arms or len({reference, *arms}) != len(arms) + 1:
            raise ValueError(f"arms {list(arms)}: at least one, each once, and none is called {reference}")
        self.arms = tuple(arms)
        self.reference, self._placebo = reference, placebo
        self._left = list(arms)
        self._harmful: set[str] = set()
        self._error = error
        self._generator = random.Random(seed)
        self._logs: dict[str, list[float]] = {arm: [] for arm in arms}
        self._results = {arm: ArmResult(arm=arm, gain=None, rounds=0) for arm in arms}
        self._sharing = max(len(self._acting()), 1) * levers
        self._first_look = first_look(self._sharing, error)
        for arm, logs in (earlier or {}).items():
            if arm in self._logs:
                self._resume(arm, logs)

    @property
    def results(self) -> tuple[ArmResult, ...]:
        """Of each arm, as of its last look."""
        return tuple(self._results[arm] for arm in self.arms)

    @property
    def logs(self) -> dict[str, tuple[float, ...]]:
        """The values of all rounds by arm: ln(duration of a step under the reference / under the arm)."""
        return {arm: tuple(logs) for arm, logs in self._logs.items()}

    @property
    def placebo(self) -> Interval | None:
        """What the placebo gained; negative: what the guard itself costs."""
        return self._results[self._placebo].gain if self._placebo in self._results else None

    @property
    def best(self) -> ArmResult | None:
        """The arm that pays most; None where none does, or the placebo does, too."""
        if self._placebo in self._results and self._results[self._placebo].pays:
            return None
        paying = [one for one in self._acting() if one.pays and one.arm in self._left]
        return max(paying, key=lambda one: one.gain.value if one.gain else 0.0, default=None)

    @property
    def rounds(self) -> int:
        """Those of the arm that had most."""
        return max(len(logs) for logs in self._logs.values())

    @property
    def left(self) -> tuple[str, ...]:
        """The acting arms that are not given up."""
        return tuple(arm for arm in self._left if arm != self._placebo)

    @property
    def is_decided(self) -> bool:
        """Whether more rounds would change nothing: no arm is left that may be better than the best one."""
        best = self.best
        least = 0.0 if best is None or best.gain is None else best.gain.low
        others = [self._results[arm].gain for arm in self.left if best is None or arm != best.arm]
        return all(gain is not None and gain.high <= max(least, NOTHING) for gain in others)

    @property
    def verdict(self) -> Verdict:
        """What the experiment says so far."""
        if self.best is not None:
            return "pays"
        acting = self._acting()
        useless = all(one.is_useless or one.arm in self._harmful for one in acting)
        return "off" if acting and useless else "cannot say"

    def order(self) -> tuple[str, ...]:
        """The arms of a new round; the reference alone once every acting one is given up."""
        left = self._left if self.left or not self._acting() else []
        return tuple(self._generator.sample([self.reference, *left], 1 + len(left)))

    def add_round(self, seconds: Mapping[str, float]) -> None:
        """The duration of a step of each block of a round, in seconds: its mean. Arms that are missing, or
        were given up meanwhile, get no value. ValueError unless durations are above 0.
        """
        for arm, one in seconds.items():
            if not (one > 0 and math.isfinite(one)):
                raise ValueError(f"seconds {one} of arm {arm}: the duration of a step must be above 0")
        for arm in tuple(self._left):
            if arm in seconds and self.reference in seconds:
                self._logs[arm].append(math.log(seconds[self.reference] / seconds[arm]))
                self._look(arm)

    def give_up(self, arm: str) -> None:
        """No more blocks for an arm: its lever is gone."""
        if arm in self._left:
            self._left.remove(arm)

    def _acting(self) -> list[ArmResult]:
        return [result for result in self.results if result.arm != self._placebo]

    def _resume(self, arm: str, logs: Sequence[float]) -> None:
        """What was known after the last look: an arm that is given up has no rounds after that look."""
        done = looks(len(logs), self._sharing, self._error)
        last = done[-1] if done else len(logs)
        self._logs[arm] = list(logs[:last])
        self._look(arm)
        self._logs[arm] = list(logs)

    def _look(self, arm: str) -> None:
        rounds = len(self._logs[arm])
        if HARM_ROUNDS <= rounds < self._first_look:
            worst = sorted(self._logs[arm])[-1 if rounds == HARM_ROUNDS else -2]
            if arm != self._placebo and worst < -HARM:
                values = np.array(self._logs[arm])
                gains = (-math.expm1(-float(log)) for log in (values.min(), np.median(values), values.max()))
                low, middle, high = gains
                gain = Interval(value=middle, low=low, high=high)
                self._results[arm] = ArmResult(arm=arm, gain=gain, rounds=rounds)
                self._harmful.add(arm)
                self.give_up(arm)
            return
        if rounds not in (done := looks(rounds, self._sharing, self._error)):
            return
        values = np.array(self._logs[arm])
        ends = []
        for sharing in (self._sharing if arm != self._placebo else 1, 1):
            error = error_of_look(len(done), sharing, self._error)
            ends.append(rank_interval(values, 1 - 2 * error) or (-math.inf, math.inf))
        low, middle, high = (-math.expm1(-log) for log in (ends[0][0], pseudo_median(values), ends[1][1]))
        self._results[arm] = ArmResult(
            arm=arm, gain=Interval(value=middle, low=low, high=high), rounds=rounds
        )
        if self._results[arm].is_useless and arm != self._placebo:
            self.give_up(arm)
