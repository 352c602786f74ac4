"""Runs of a program for its trials: in a copy of its folder where it writes files, timed by step, by a number
that it prints or by the wall time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from elbowroom.diagnose.candidates import Candidate
from elbowroom.diagnose.program_folder import copied
from elbowroom.diagnose.trials import TrialOutcome
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import profiler
from elbowroom.launch.mpi import launch_environment
from elbowroom.launch.processes import Finished, run
from elbowroom.profile.analysis import analyse
from elbowroom.profile.profile import read_profile
from elbowroom.profile.steps import find_steps

_TRIAL_RECORDS = 1 << 18
"""Records of each process: enough for the steps, and quick to read."""
_LAST_WORDS = 120


class TrialProgram(NamedTuple):
    """What is run: the words of the unchanged line, what it reads, and how it is measured.

    `exit_code`: of the first run; `steps`: how many its profile has (0: wall times are compared); `number`:
    finds the seconds in what it prints; `folder`: its working directory; `copy`: whether each run has a copy
    of it, `without` these folders; `mpi`: as --mpi names it.
    """

    words: Sequence[str]
    mpi: str | None = None
    exit_code: int = 0
    given: bytes = b""
    steps: int = 0
    number: Callable[[str], float | None] | None = None
    folder: Path = Path()
    copy: bool = False
    without: Collection[Path] = ()

    def __call__(self, candidate: Candidate | None, patience: float | None) -> TrialOutcome:
        """One run; a Runner of trials.py."""
        words = list(self.words if candidate is None else candidate.command)
        variables = {} if candidate is None else dict(candidate.environment)
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(copied(self.folder, self.without)) if self.copy else self.folder
            profile = None
            if self.steps and self.number is None:
                profile = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="elbowroom-trial-")))
            try:
                finished = self._finished(words, variables, folder, profile, patience)
            except (MachineError, UsageError) as error:
                return TrialOutcome(None, patience or 0.0, failed=error.message)
            if finished.code != self.exit_code:
                last = finished.last_line[-_LAST_WORDS:]
                failed = f"it ends with exit code {finished.code}: {last}"
                return TrialOutcome(None, finished.wall_s, finished.stdout, failed)
            seconds = None
            if self.number is not None:
                seconds = self.number(finished.stdout)
            elif profile is not None:
                seconds = step_seconds(profile, self.steps)
            return TrialOutcome(seconds, finished.wall_s, finished.stdout)

    def _finished(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        folder: Path,
        profile: Path | None,
        patience: float | None,
    ) -> Finished:
        env = {**launch_environment(), **os.environ, **variables}
        if profile is not None:
            settings = profiler.ProfilerSettings(directory=str(profile), records=_TRIAL_RECORDS)
            recorded = profiler.prepare(words, settings, self.mpi)
            words, env = recorded.command, {**recorded.env, **variables}
        return run(
            words,
            field="command",
            patience=patience,
            given=self.given,
            env=env,
            leaves_nothing=True,
            folder=folder,
            doing="trying changed launch lines",
        )


def step_seconds(folder: Path, count: int) -> float | None:
    """The mean step of a profile in s, without its extreme tenths; None if it has no steps, or not nearly as
    many as `count`, so that they are other ones.
    """
    with contextlib.suppress(ElbowroomError, OSError):
        steps = find_steps(analyse(read_profile(folder)), of_all_ranks=False).steps
        if steps is not None and abs(steps.count - count) <= max(1, count // 20):
            return steps.duration.trimmed
    return None
