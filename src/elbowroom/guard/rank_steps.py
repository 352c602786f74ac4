"""The steps of all ranks on this node, joined: a step is complete when all ranks have completed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.guard.step_file import OTHERS, StepFile
from elbowroom.guard.thread_search import StepObservation

MIXED = -1
"""The arm of a step that had different ones in its ranks."""


class JoinedSteps(NamedTuple):
    """Steps in their order, each of shape (steps,): their `numbers` in the first rank, when the first rank of
    all began them, how long they took, s, and their arm or MIXED. `rows`: those of each rank.

    A step takes from the moment at which the last rank begins it to that at which the last rank ends it, so
    the durations of all steps add up to the time of the job. A mean over ranks would have parts of the step
    before, where one rank is ahead of another.
    """

    numbers: npt.NDArray[np.int64]
    begins: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    arms: npt.NDArray[np.int64]
    rows: tuple[npt.NDArray[np.void], ...]

    def observation(self, place: int, has_phases: bool) -> StepObservation:
        """The step at a place: means of its times, the least number of threads that was seen; phases where
        they are of interest.
        """
        if not has_phases:
            return StepObservation(float(self.seconds[place]), {}, {}, {})
        rows = [rows[place] for rows in self.rows]
        phases = np.mean([row["seconds"] for row in rows], axis=0)
        threads = rows[0]["threads"]
        got = np.min([row["got"] for row in rows], axis=0)
        there = [int(phase) for phase in np.flatnonzero(phases) if phase != OTHERS]
        return StepObservation(
            seconds=float(self.seconds[place]),
            phases={phase: float(phases[phase]) for phase in there},
            threads={phase: int(threads[phase]) for phase in there if threads[phase]},
            got={phase: int(got[phase]) for phase in there if got[phase]},
        )

    def last_rank(self) -> int:
        """The place in `rows` of the rank that mostly begins last."""
        begins = np.stack([rows["begin"] for rows in self.rows]).astype(np.int64)
        return int(np.argmax(np.median(begins - begins[0], axis=1)))

    def got_threads(self) -> dict[int, int]:
        """By phase, where a number of threads was set: the least one that the latest such step had."""
        wanted = self.rows[0]["threads"]
        latest = {int(phase): np.flatnonzero(wanted[:, phase])[-1] for phase in np.flatnonzero(wanted.any(0))}
        return {phase: min(int(rows["got"][at, phase]) for rows in self.rows) for phase, at in latest.items()}


class RankSteps:
    """Joins the steps of `files`, the first rank's first. `by_marks`: marks number steps alike in all ranks;
    steps by calls are the same that begin at nearly the same time.
    """

    def __init__(self, files: Mapping[Path, StepFile], by_marks: bool) -> None:
        """What was complete before does not count."""
        self._files = files
        self.offsets = dict.fromkeys(files, 0)
        self._waiting = {path: file.new_steps()[:0] for path, file in files.items()}
        self._unknown = [] if by_marks else list(files)[1:]

    def new(self) -> JoinedSteps | None:
        """The steps that all ranks have completed since the last call; None where there is none."""
        for path, file in self._files.items():
            if len(rows := file.new_steps()):
                self._waiting[path] = np.concatenate([self._waiting[path], rows])
        if not all(map(len, self._waiting.values())):
            return None
        for path in self._unknown:
            self._find_offset(path)
        self._unknown = []
        return self._joined()

    def _find_offset(self, path: Path) -> None:
        first = next(iter(self._waiting.values()))[0]
        rows = self._waiting[path]
        apart = np.abs(rows["begin"].astype(np.int64) - int(first["begin"]))
        self.offsets[path] = int(rows["step"][np.argmin(apart)]) - int(first["step"])

    def _joined(self) -> JoinedSteps | None:
        numbers = [rows["step"].astype(np.int64) - self.offsets[path] for path, rows in self._waiting.items()]
        common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), numbers)
        if not len(common):
            return None
        rows = []
        for (path, waiting), own in zip(self._waiting.items(), numbers, strict=True):
            rows.append(waiting[np.isin(own, common, assume_unique=True)])
            self._waiting[path] = waiting[own > common[-1]]
        return _of_rows(common, rows)


def _of_rows(numbers: npt.NDArray[np.int64], rows: Sequence[npt.NDArray[np.void]]) -> JoinedSteps:
    arms, begins, ends = (np.stack([one[name] for one in rows]) for name in ("arm", "begin", "end"))
    arms = arms.astype(np.int64)
    return JoinedSteps(
        numbers=numbers,
        begins=begins.min(axis=0).astype(float) / 1e9,
        seconds=(ends.max(axis=0) - begins.max(axis=0)).astype(float) / 1e9,
        arms=np.where((arms == arms[0]).all(axis=0), arms[0], MIXED),
        rows=tuple(rows),
    )
