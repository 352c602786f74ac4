"""Launch lines measured in turns with the unchanged one, and what each gains.

Two stages share the time. *Screening*: in each round every line runs once, in random order, and the unchanged
line twice (the second is the placebo); lines that fail, hang, print something else or are clearly slower are
dropped. *Confirmation*: the best line is measured against the unchanged line and its placebo in rounds of
three, on new runs, by an exact test within rounds (stats/within_rounds.py). One line is tested, so that the
number of candidates adds no errors; the error of 5 % is divided among the looks at the data. So the chance
that any gain is claimed where there is none is at most 5 %, for any noise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.diagnose.candidates import Candidate
from elbowroom.stats.interval import WithInterval
from elbowroom.store.journal import Format

Floats = NDArray[np.float64]

ERROR = 0.05
"""The chance that a gain is claimed where there is none."""
LOOKS = 4, 7, 13, 25
"""Rounds of the confirmation after which it may end; the last one is also where the budget ends."""
LEAST_GAIN = 0.01
"""The best line of the screening is not confirmed if it seems to gain less."""
WANTED_GAIN = 0.1
"""Gains of this size are what trials look for: a line whose interval excludes them does not gain."""
SLOWER = 0.3
"""A line that takes so much longer in both of two rounds is dropped."""
BEHIND = 3.0
"""Standard errors by which a line is behind the best one to be dropped."""
SCREENED = 4
"""Most rounds of the screening."""
MOST_CANDIDATES = 6
PATIENCE = 3.0, 5.0
"""A candidate may take so many times as long as the slowest unchanged run, and so many seconds more."""

Decision = Literal["gains", "no gain", "not decided"]


class Gain(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """The share of the time that a line saves. The interval is one for repeated looks at the data: over all
    looks it holds the true gain in at least 90 %; both ends are None if it has too few runs.
    """

    value: float
    low: float | None = None
    high: float | None = None


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was measured: `command` as it is typed, the cause that it treats, and what it gains.

    `decided`: `gains` if the interval is above 0; `no gain` if a gain of WANTED_GAIN is excluded, or others
    gain more; `rounds`: that were compared.
    """

    command: str
    cause: str
    what: str
    gain: Gain
    decided: Decision
    rounds: int
    changes_results: bool = False


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not measured to the end: `command` as it is typed, and why."""

    command: str
    reason: str


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried: best gain first. `placebo`: what the unchanged line gains over itself; `untried`: lines
    for which there was no time; `seconds`: of a run (or step) of the unchanged line, its median; `off`: why
    nothing was tried, else empty; `notes`: sentences.
    """

    tried: tuple[Tried, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    untried: tuple[str, ...] = ()
    placebo: Gain | None = None
    measured: Literal["step", "run", "number"] = "run"
    seconds: float | None = None
    runs: int = 0
    took_s: float = 0.0
    off: str = ""
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Tried | None:
        """The line that gains; None if none does."""
        return next((one for one in self.tried if one.decided == "gains"), None)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Lines of which the runs do not say whether they gain."""
        return (*(one.command for one in self.tried if one.decided == "not decided"), *self.untried)

    def sentence(self) -> str:
        """The result for people."""
        if self.off:
            return f"Nothing was tried: {self.off}."
        best = self.best
        if best is None:
            return "Nothing tried gains." if not self.undecided else "No gain was found in this time."
        low, high = best.gain.bounds or (math.nan, math.nan)
        return f"Gains {best.gain.value:.0%} ({low:.0%} to {high:.0%}): {best.command}"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a line, as the journal keeps it: `stage` and `round`, `arm` (the line as it is typed, with
    `placebo` for the second unchanged one), the seconds of a step or the run or the program's own number
    (None if there is none), the wall time, and why it failed (empty: it did not). `output`: a digest of what
    was printed, see `Output`.
    """

    stage: Literal["screening", "confirmation"]
    round: int
    arm: str
    seconds: float | None
    wall_s: float
    failed: str = ""
    output: tuple[str, ...] = ()


class Runner(Protocol):
    """Runs a line once."""

    def __call__(self, candidate: Candidate | None, patience: float | None) -> Outcome:
        """The outcome of the candidate, None: of the unchanged line, with a time limit (s)."""


class Outcome(NamedTuple):
    """How a run went: the seconds that count, its wall time, its output, and why it failed."""

    seconds: float | None
    wall_s: float
    output: str = ""
    failed: str = ""


class _Runs(Format[Run, tuple[str, int, str]]):
    """The lines of a journal of trials."""

    def key(self, line: Run) -> tuple[str, int, str]:
        """Stage, round and arm."""
        return line.stage, line.round, line.arm

    def name(self, line: Run) -> str:
        """Which run."""
        return f"run {line.round} of {line.arm}"


RUNS = _Runs(Run, header=False)
JOURNAL = "trials.jsonl"

UNCHANGED, PLACEBO = "unchanged", "placebo"


def try_candidates(
    candidates: Sequence[Candidate],
    run: Runner,
    *,
    budget_s: float,
    run_s: float,
    journal: Path | None = None,
    seed: int = 1,
    clock: Callable[[], float] = time.monotonic,
    tell: Callable[[str], object] | None = None,
) -> Trials:
    """What the candidates gain, measured in about `budget_s` seconds; `run_s`: of a run of the unchanged
    line; `journal`: a file that keeps finished runs, and those that it has are not run again.
    """
    raise NotImplementedError
