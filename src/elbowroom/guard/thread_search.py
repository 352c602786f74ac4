"""Which number of threads suits each phase of a step: trials that cost little where they lose.

In a step under trial each phase has one of the numbers that are left for it, and steps as the program is run
between trials. A number that made its phase much slower is not tried again, so a phase that needs all cores
costs one slow step. The choice is loose: the experiment judges it (experiment.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

BASE_STEPS = 3
"""Steps as the program is before the first trial."""
TRIALS = 4
"""Of each number in each phase."""
MUCH_SLOWER = 1.15
"""A number whose first trial took this much longer is not tried again."""
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
        self._base: dict[int, list[float]] = defaultdict(list)
        self._tried: dict[tuple[int, int], list[float]] = defaultdict(list)
        self._planned: dict[tuple[int, int], int] = defaultdict(int)
        self._dropped: set[tuple[int, int]] = set()
        self._steps: list[float] = []
        self._got: dict[int, int] = {}

    @property
    def phases(self) -> tuple[int, ...]:
        """The phases that matter."""
        if len(self._steps) < BASE_STEPS:
            return ()
        step = median(self._steps)
        return tuple(
            phase for phase, seconds in sorted(self._base.items()) if median(seconds) >= LEAST_SHARE * step
        )

    @property
    def is_done(self) -> bool:
        """Whether no trial is left, planned or outstanding."""
        return len(self._steps) >= BASE_STEPS and all(
            len(self._tried[place]) >= TRIALS for place in self._left()
        )

    @property
    def best(self) -> dict[int, int]:
        """The chosen number of each phase; not of those that are best as they are."""
        chosen: dict[int, int] = {}
        for phase in self.phases:
            own = median(self._base[phase])
            times = {
                count: median(self._tried[phase, count])
                for count in self.counts
                if self._tried[phase, count] and (phase, count) not in self._dropped
            }
            count = min(times, key=lambda one: times[one], default=0)
            if count and times[count] < WORTH * own:
                chosen[phase] = count
        return chosen

    @property
    def got(self) -> dict[int, int]:
        """The numbers that were seen where they were not those that were set: phase by phase."""
        return dict(self._got)

    def next_trial(self) -> dict[int, int] | None:
        """The numbers of the next trial, by phase; None while the outcome of others is awaited."""
        table: dict[int, int] = {}
        left = self._left()
        for phase in {phase: None for phase, _ in left}:
            counts = [count for other, count in left if other == phase]
            # The first trial of a number may be very slow: its outcome comes before the second one.
            if any(self._planned[phase, count] and not self._tried[phase, count] for count in counts):
                continue
            count = min(counts, key=lambda one: self._planned[phase, one])
            if self._planned[phase, count] < TRIALS:
                table[phase] = count
        for phase, count in table.items():
            self._planned[phase, count] += 1
        return table or None

    def forget_plans(self) -> None:
        """Trials that were planned and did not run may be planned again."""
        for place in list(self._planned):
            self._planned[place] = len(self._tried[place])

    def add(self, step: StepObservation) -> None:
        """A step as the program is, or under a trial."""
        tried = {phase: count for phase, count in step.threads.items() if count}
        if not tried:
            self._steps.append(step.seconds)
        for phase, seconds in step.phases.items():
            if phase in tried:
                self._add_trial(phase, tried[phase], seconds, step.got.get(phase, 0))
            elif not tried and seconds > 0:
                self._base[phase].append(seconds)

    def _add_trial(self, phase: int, count: int, seconds: float, got: int) -> None:
        place = phase, count
        self._tried[place].append(seconds)
        if got and got != count:
            self._got[phase] = got
            self._dropped.add(place)
        if self._base[phase] and median(self._tried[place]) > MUCH_SLOWER * median(self._base[phase]):
            self._dropped.add(place)

    def _left(self) -> list[tuple[int, int]]:
        return [
            (phase, count)
            for phase in self.phases
            for count in self.counts
            if (phase, count) not in self._dropped
        ]
