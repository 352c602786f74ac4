"""Which number of threads suits each phase of a step: trials that cost little where they lose.

In a step under trial each phase has one of the numbers that are left for it, and steps as the program is run
between trials. Each trial is compared with the latest of those, so that what changes slowly is on both. A
number that makes its phase much slower is not tried again once that is longer than other work interrupts a
rank, so a long phase that needs all cores costs one slow step. Trials of a number go on until they agree, or
there are MOST of them. The choice is loose: the experiment judges it (experiment.py).
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from elbowroom.stats.signed_ranks import pseudo_median

BASE_STEPS = 3
"""Steps as the program is before the first trial, and those that a trial is compared with."""
FEWEST, MOST = 4, 9
"""Trials of each number in each phase."""
MUCH_SLOWER = 1.15
"""A number whose trials all took this much longer is not tried again, ..."""
INTERRUPTION = 0.1
"""... where they took more than this together, s, or there are FEWEST of them."""
LEAST_SHARE = 0.02
"""Phases with less of a step are left as they are."""
WORTH = 0.98
"""A number that does not make its phase at least so much shorter is not chosen."""


class StepObservation(NamedTuple):
    """A step: how long it took, the time outside of MPI by phase, and the numbers of threads that were set
    (0: none) and seen (0: not known) by phase.
    """

    seconds: float
    phases: Mapping[int, float]
    threads: Mapping[int, int]
    got: Mapping[int, int]


class ThreadSearch:
    """The search among `counts` for each phase of a program whose parallel regions have `own` threads."""

    def __init__(self, counts: Sequence[int], own: int) -> None:
        """Counts from the nearest to `own` on, which itself is no trial."""
        self.own = own
        self.counts = tuple(sorted({*counts} - {own}, key=lambda count: (abs(count - own), count)))
        self._base: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=BASE_STEPS))
        self._shares: dict[int, float] = {}
        self._ratios: dict[tuple[int, int], list[float]] = defaultdict(list)
        self._spent: dict[tuple[int, int], float] = defaultdict(float)
        self._planned: dict[tuple[int, int], int] = defaultdict(int)
        self._dropped: set[tuple[int, int]] = set()
        self._base_steps = 0
        self._got: dict[int, int] = {}

    @property
    def phases(self) -> tuple[int, ...]:
        """The phases that matter."""
        if self._base_steps < BASE_STEPS:
            return ()
        return tuple(phase for phase, share in sorted(self._shares.items()) if share >= LEAST_SHARE)

    @property
    def is_done(self) -> bool:
        """Whether no trial is left, planned or outstanding."""
        return self._base_steps >= BASE_STEPS and all(self._is_known(place) for place in self._left())

    @property
    def best(self) -> dict[int, int]:
        """The chosen number of each phase; not of those that are best as they are."""
        chosen: dict[int, int] = {}
        for phase in self.phases:
            ratios = {
                count: pseudo_median(np.array(self._ratios[phase, count]))
                for count in self.counts
                if self._ratios[phase, count] and (phase, count) not in self._dropped
            }
            count = min(ratios, key=lambda one: ratios[one], default=0)
            if count and ratios[count] < math.log(WORTH):
                chosen[phase] = count
        return chosen

    @property
    def is_clear(self) -> bool:
        """Whether no trial of a number that is not chosen was shorter."""
        best = self.best
        return all(
            best.get(phase) == count or self._shorter((phase, count)) == 0 for phase, count in self._left()
        )

    @property
    def got(self) -> dict[int, int]:
        """The numbers that were seen where they were not those that were set: phase by phase."""
        return dict(self._got)

    def next_trial(self) -> dict[int, int] | None:
        """The numbers of the next trial, by phase; None while the outcome of others is awaited."""
        table: dict[int, int] = {}
        left = [place for place in self._left() if not self._is_known(place)]
        for phase in {phase: None for phase, _ in left}:
            counts = [count for other, count in left if other == phase]
            # The first trial of a number may be very slow: its outcome comes before the second one.
            if any(self._planned[phase, count] and not self._ratios[phase, count] for count in counts):
                continue
            count = min(counts, key=lambda one: self._planned[phase, one])
            if self._planned[phase, count] < max(FEWEST, len(self._ratios[phase, count]) + 1):
                table[phase] = count
        for phase, count in table.items():
            self._planned[phase, count] += 1
        return table or None

    def forget_plans(self) -> None:
        """Trials that were planned and did not run may be planned again."""
        for place in list(self._planned):
            self._planned[place] = len(self._ratios[place])

    def add(self, step: StepObservation) -> None:
        """A step as the program is, or under a trial."""
        tried = {phase: count for phase, count in step.threads.items() if count}
        self._base_steps += not tried
        for phase, seconds in step.phases.items():
            if phase in tried:
                self._add_trial(phase, tried[phase], seconds, step.got.get(phase, 0))
            elif not tried and seconds > 0:
                self._base[phase].append(seconds)
                self._shares[phase] = median(self._base[phase]) / step.seconds

    def _add_trial(self, phase: int, count: int, seconds: float, got: int) -> None:
        place = phase, count
        if got and got != count:
            self._got[phase] = got
            self._dropped.add(place)
        if not self._base[phase] or seconds <= 0:
            return
        ratios = self._ratios[place]
        ratios.append(math.log(seconds / median(self._base[phase])))
        self._spent[place] += seconds
        enough = self._spent[place] > INTERRUPTION or len(ratios) >= FEWEST
        if enough and min(ratios) > math.log(MUCH_SLOWER):
            self._dropped.add(place)

    def _is_known(self, place: tuple[int, int]) -> bool:
        """Whether its trials agree, or are enough."""
        trials = len(self._ratios[place])
        return trials >= MOST or (trials >= FEWEST and self._shorter(place) in (0, trials))

    def _shorter(self, place: tuple[int, int]) -> int:
        return sum(ratio < math.log(WORTH) for ratio in self._ratios[place])

    def _left(self) -> list[tuple[int, int]]:
        return [
            (phase, count)
            for phase in self.phases
            for count in self.counts
            if (phase, count) not in self._dropped
        ]
