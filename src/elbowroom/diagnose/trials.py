"""Launch lines measured in turns with the unchanged one, and what each gains.

Two stages share the time. *Screening*: in each round every line runs once and the unchanged line twice (the
second is the placebo), in random order; lines that fail, hang, print something else or are clearly slower are
dropped. *Confirmation*: the best line is measured against the unchanged one in rounds of four runs, two of
each, by an exact test within rounds (stats/within_rounds.py). The test uses new runs of one line, so that the
number of candidates adds no errors; its error of 5 % is divided among the looks at the data. So the chance
that any gain is claimed where there is none is at most 5 %, for any noise.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.diagnose.candidates import Candidate
from elbowroom.diagnose.program_output import differing_line, digest
from elbowroom.quantities import short_time
from elbowroom.signals import ends_as_interrupt
from elbowroom.stats.interval import WithInterval
from elbowroom.stats.signed_ranks import rank_interval
from elbowroom.stats.within_rounds import chance_below, fewest_rounds, shift, shift_interval
from elbowroom.store.journal import Format, Lines

Floats = NDArray[np.float64]

ERROR = 0.05
"""The chance that a gain is claimed where there is none."""
LOOKS = 3, 5, 9, 18
"""Rounds of the confirmation after which it may end; the last one is also where the budget ends."""
LEAST_GAIN = 0.01
"""The best line of the screening is not confirmed if it seems to gain less."""
SMALL_GAIN = 0.05
"""A line whose interval excludes gains of this size does not gain."""
SCREENING_SHARE = 0.4
"""Share of the time after which the screening ends, once it has two rounds."""
CONFIRMED = 2
"""Runs of either side in a round of the confirmation."""
PLACEBO_CONFIDENCE = 0.9
SLOWER = 0.3
"""A line that takes so much longer in both of two rounds is dropped."""
BEHIND = 3.0
"""Standard errors by which a line is behind the best one to be dropped."""
ROUNDS_SCREENED, SCREENED = 3, 6
"""Rounds after which the screening may end if the best line is clear, and most rounds of it."""
MOST_CANDIDATES = 6
PATIENCE = 3.0, 5.0
"""A candidate may take so many times as long as the slowest unchanged run, and so many seconds more."""

Stage = Literal["screening", "confirmation"]
Measured = Literal["step", "run", "number"]
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

    `decided`: `gains` if the interval is above 0; `no gain` if a gain of SMALL_GAIN is excluded, or it is
    behind others; `rounds`: that were compared.
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
    measured: Measured = "run"
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


class TrialRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a line, as the journal keeps it.

    `arm`: the line as it is typed, or UNCHANGED; `copy`: 1 for the second run of a line in a round (of the
    unchanged line: the placebo); `seconds`: of a step, or the program's own number (None: it has none);
    `failed`: why the run does not count, empty if it does; `output`: a digest of what it printed
    (program_output.py).
    """

    stage: Stage
    round: int
    arm: str
    copy: int
    seconds: float | None
    wall_s: float
    failed: str = ""
    output: tuple[str, ...] = ()


class TrialTurn(NamedTuple):
    """Which run: stage, round, arm and copy, as in TrialRun."""

    stage: Stage
    round: int
    arm: str
    copy: int


class TrialOutcome(NamedTuple):
    """How a run went: the seconds of a step or the program's own number (None: it has none), its wall time,
    what it printed, and why it failed (empty: it did not).
    """

    seconds: float | None
    wall_s: float
    output: str = ""
    failed: str = ""


class Runner(Protocol):
    """Runs a line once."""

    def __call__(self, candidate: Candidate | None, patience: float | None) -> TrialOutcome:
        """How the candidate ran (None: the unchanged line), with a time limit in s."""


Key = tuple[str, int, str, int]


class _Runs(Format[TrialRun, Key]):
    """The lines of a journal of trials."""

    def key(self, line: TrialRun) -> Key:
        """Stage, round, arm and copy."""
        return line.stage, line.round, line.arm, line.copy

    def name(self, line: TrialRun) -> str:
        """Which run."""
        return f"run {line.round} of {line.arm}"


RUNS = _Runs(TrialRun, header=False)
JOURNAL = "trials.jsonl"
UNCHANGED = "unchanged"


class UnchangedFailed(Exception):
    """The unchanged line failed in a trial, and why."""


def try_candidates(
    candidates: Sequence[Candidate],
    run: Runner,
    *,
    budget_s: float,
    run_s: float,
    journal: Path | None = None,
    seed: int = 1,
    clock: Callable[[], float] = time.monotonic,
    ended: Callable[[TrialRun], object] = lambda _: None,
    measured: Measured = "step",
) -> Trials:
    """What the candidates gain, measured in about `budget_s` seconds; most important candidates first.

    `run_s`: wall time of a run of the unchanged line. `journal`: a file that keeps finished runs; those that
    it has already are not run again. `ended` gets each run. Signals that end this process raise
    KeyboardInterrupt; then the journal has all finished runs. `measured`: what the seconds of a run are.
    """
    with contextlib.ExitStack() as stack:
        lines = None
        if journal is not None:
            lines = stack.enter_context(contextlib.closing(Lines(journal, RUNS, create=True)))
        stack.enter_context(ends_as_interrupt())
        turns = _Turns(run, lines, seed, clock, budget_s, run_s, ended)
        try:
            return _tried(candidates, turns, measured)
        except UnchangedFailed as failure:
            return Trials(off=f"the unchanged line failed when it was run again ({failure})")


def _tried(candidates: Sequence[Candidate], turns: _Turns, measured: Measured) -> Trials:
    least = 2 * CONFIRMED * fewest_rounds(ERROR, CONFIRMED, CONFIRMED)
    room = turns.room()
    if not candidates:
        return Trials(off="no launch line or setting is known that may gain")
    if room < least:
        needed = short_time(least * turns.run_s)
        return Trials(off=f"{least} runs are needed, which take {needed}: more than there is time for")
    chosen, untried = _chosen(candidates, room, least)
    alone = len(chosen) == 1
    gains = {chosen[0].typed: 1.0} if alone else _screen(chosen, turns, least)
    best, confirmed = None, None
    for one in sorted(turns.alive(chosen), key=lambda one: -gains.get(one.typed, 0.0)):
        if gains.get(one.typed, 0.0) > LEAST_GAIN:
            best, confirmed = one, _confirm(one, turns)
            if confirmed is not None:
                break
    left = [one for one in chosen if one.typed not in turns.dropped]
    return _result(left, best, confirmed, untried, turns, measured)


def _chosen(
    candidates: Sequence[Candidate], room: int, least: int
) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
    """As many candidates as can be screened once and confirmed in so many runs, and the others."""
    most = max(1, min(MOST_CANDIDATES, room - least - 2))
    return candidates[:most], candidates[most:]


def _screen(chosen: Sequence[Candidate], turns: _Turns, least: int) -> dict[str, float]:
    """The gain that each candidate seems to have, of those that are not dropped or settled."""
    gains: dict[str, float] = {}
    for rounds in range(1, SCREENED + 1):
        alive = turns.alive(chosen)
        if not alive or (rounds > 1 and turns.room() < len(alive) + 2 + least):
            break
        turns.round("screening", rounds - 1, alive)
        turns.check_outputs(alive)
        alive = turns.alive(alive)
        table = turns.table("screening", [(one.typed, 0) for one in alive])
        if table is None or not alive:
            continue
        shifts = _shifts(table)
        gains = {one.typed: 1 - math.exp(shift) for one, shift in zip(alive, shifts, strict=True)}
        if rounds == 1:
            continue
        slower = (table[:, 2:] - table[:, :2].max(axis=1, keepdims=True)).min(axis=0) > math.log1p(SLOWER)
        error = _standard_error(table)
        if rounds >= ROUNDS_SCREENED:
            slower |= (shifts - shifts.min() > BEHIND * error) & (shifts > 0)
        turns.settled |= {one.typed for one, slow in zip(alive, slower, strict=True) if slow}
        clear = rounds >= ROUNDS_SCREENED and (shifts.min() < -BEHIND * error or shifts.min() > -error)
        if clear or len(turns.alive(alive)) <= 1 or turns.share_used() > SCREENING_SHARE:
            break
    return gains


def _shifts(table: Floats) -> Floats:
    """Of each candidate against the unchanged line: from the faster half of the rounds, since what disturbs a
    run makes it slower.
    """
    centred = table - np.median(table, axis=1, keepdims=True)
    half = (len(table) + 1) // 2
    own = np.sort(centred[:, 2:], axis=0)[:half].mean(axis=0)
    shifts: Floats = own - np.sort(centred[:, :2], axis=0)[:half].mean()
    return shifts


def _standard_error(table: Floats) -> float:
    """Of the difference of two arms, in logarithms: from what rounds and arms do not explain."""
    rest = table - np.median(table, axis=1, keepdims=True)
    rest = rest - np.median(rest, axis=0, keepdims=True)
    spread = float(np.quantile(np.abs(rest), 0.683)) * math.sqrt(len(table) / max(len(table) - 1, 1))
    return max(spread, 1e-3) * math.sqrt(2 / len(table))


class _Confirmed(NamedTuple):
    """What the confirmation says of the best candidate."""

    gain: Gain
    decided: Decision
    rounds: int


def _confirm(best: Candidate, turns: _Turns) -> _Confirmed | None:
    """Measures the candidate in rounds of four until it is decided or the time is over; None if it fails."""
    planned = min(LOOKS[-1], max(fewest_rounds(ERROR, CONFIRMED, CONFIRMED), turns.room() // (2 * CONFIRMED)))
    looks = [*(look for look in LOOKS if look < planned - 1), planned]
    error = ERROR / len(looks)
    assert fewest_rounds(error, CONFIRMED, CONFIRMED) <= looks[0]
    rounds, begin = 0, turns.rounds("confirmation")
    while True:
        turns.round("confirmation", begin + rounds, [best] * CONFIRMED)
        turns.check_outputs([best])
        if best.typed in turns.dropped:
            return None
        rounds += 1
        is_over = rounds >= planned or (rounds >= looks[0] and turns.room() < 2 * CONFIRMED)
        if rounds in looks or is_over:
            judged = _judged(best, turns, rounds, error)
            if is_over or judged.decided != "not decided":
                return judged


def _judged(best: Candidate, turns: _Turns, rounds: int, error: float) -> _Confirmed:
    table = turns.table("confirmation", [(best.typed, copy) for copy in range(CONFIRMED)])
    assert table is not None
    own, others = table[:, 2:], table[:, :2]
    gain = _gain(own, others, error)
    if chance_below(own, others) <= error and gain.value > 0:
        return _Confirmed(gain, "gains", rounds)
    most = gain.high if gain.high is not None else math.inf
    return _Confirmed(gain, "no gain" if most < SMALL_GAIN else "not decided", rounds)


def _gain(own: Floats, others: Floats, error: float) -> Gain:
    """The gain by logarithms of times, (rounds, runs)."""
    ends = shift_interval(own, others, error)
    value = 1 - math.exp(shift(own, others))
    if ends is None:
        return Gain(value=value)
    return Gain(value=value, low=1 - math.exp(ends[1]), high=1 - math.exp(ends[0]))


def _result(
    left: Sequence[Candidate],
    best: Candidate | None,
    confirmed: _Confirmed | None,
    untried: Sequence[Candidate],
    turns: _Turns,
    measured: Measured,
) -> Trials:
    """All that was measured, best first."""
    tried = []
    for one in left:
        if one is best and confirmed is not None:
            gain, decided, rounds = confirmed
        else:
            table = turns.table("screening", [(one.typed, 0)])
            if table is None:
                continue
            gain, rounds = _gain(table[:, 2:], table[:, :2], ERROR), len(table)
            decided = _of_screening(one, gain, confirmed, turns)
        tried.append(
            Tried(
                command=one.typed,
                cause=one.cause,
                what=one.what,
                gain=gain,
                decided=decided,
                rounds=rounds,
                changes_results=one.changes_results,
            )
        )
    tried.sort(key=lambda one: (one.decided != "gains", -one.gain.value))
    return Trials(
        tried=tuple(tried),
        dropped=tuple(Dropped(command=name, reason=why) for name, why in turns.dropped.items()),
        untried=tuple(one.typed for one in untried),
        placebo=turns.placebo(),
        measured=measured if turns.by_step() else "run",
        seconds=turns.usual(),
        runs=len(turns.runs),
        took_s=turns.took(),
        notes=turns.notes(),
    )


def _of_screening(one: Candidate, gain: Gain, confirmed: _Confirmed | None, turns: _Turns) -> Decision:
    """What a candidate of the screening alone is: behind the best, without a gain, or open."""
    if one.typed in turns.settled or (gain.high is not None and gain.high < SMALL_GAIN):
        return "no gain"
    if confirmed is not None and confirmed.decided == "gains":
        return "no gain" if gain.value <= 0 else "not decided"
    return "no gain" if gain.value <= LEAST_GAIN else "not decided"


class _Turns:
    """Runs arms in turns, keeps what they took, and knows how much time is left."""

    def __init__(
        self,
        run: Runner,
        journal: Lines[TrialRun, Key] | None,
        seed: int,
        clock: Callable[[], float],
        budget_s: float,
        run_s: float,
        ended: Callable[[TrialRun], object],
    ) -> None:
        self._run, self._journal, self._seed, self._clock = run, journal, seed, clock
        self._budget, self._first, self._ended = budget_s, run_s, ended
        self._begin = clock()
        self.runs: list[TrialRun] = []
        self.dropped: dict[str, str] = {}
        self.settled: set[str] = set()
        known = journal.read() if journal is not None else []
        self._known: Mapping[Key, TrialRun] = {RUNS.key(line): line for line in known}
        self._new = 0

    @property
    def run_s(self) -> float:
        """What a run takes: the mean of those so far, with what lies between them."""
        if self._new < 3:
            return self._first
        return self.took() / self._new

    def alive(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those that are neither dropped nor settled."""
        return [one for one in candidates if one.typed not in self.dropped and one.typed not in self.settled]

    def rounds(self, stage: Stage) -> int:
        """How many rounds of a stage were run."""
        return 1 + max((line.round for line in self.runs if line.stage == stage), default=-1)

    def took(self) -> float:
        """Seconds since the begin."""
        return self._clock() - self._begin

    def room(self) -> int:
        """How many runs fit into the time that is left."""
        return int((self._budget - self.took()) / max(self.run_s, 1e-6))

    def share_used(self) -> float:
        """The share of the budget that is used."""
        return self.took() / max(self._budget, 1e-6)

    def round(self, stage: Stage, number: int, candidates: Sequence[Candidate]) -> None:
        """Runs the unchanged line twice and each candidate as often as it is named, in random order."""
        arms: list[tuple[Candidate | None, str, int]] = [(None, UNCHANGED, 0), (None, UNCHANGED, 1)]
        for at, one in enumerate(candidates):
            arms.append((one, one.typed, list(candidates[:at]).count(one)))
        random.Random(f"{self._seed} {stage} {number}").shuffle(arms)
        for candidate, name, copy in arms:
            if name in self.dropped:
                continue
            known = self._known.get((stage, number, name, copy))
            line = known or self._measured(TrialTurn(stage, number, name, copy), candidate)
            self.runs.append(line)
            if line.failed and candidate is None:
                raise UnchangedFailed(line.failed)
            if line.failed:
                self.dropped[name] = line.failed

    def _measured(self, turn: TrialTurn, candidate: Candidate | None) -> TrialRun:
        outcome = self._run(candidate, self._patience() if candidate is not None else None)
        line = TrialRun(
            stage=turn.stage,
            round=turn.round,
            arm=turn.arm,
            copy=turn.copy,
            seconds=outcome.seconds,
            wall_s=outcome.wall_s,
            failed=outcome.failed,
            output=digest(outcome.output),
        )
        if self._journal is not None:
            self._journal.append(line)
        self._new += 1
        self._ended(line)
        return line

    def _patience(self) -> float:
        """The time limit of a candidate, by the unchanged runs."""
        slowest = max([self._first, *(line.wall_s for line in self._unchanged())])
        return max(PATIENCE[0] * slowest, slowest + PATIENCE[1])

    def _unchanged(self) -> list[TrialRun]:
        return [line for line in self.runs if line.arm == UNCHANGED]

    def check_outputs(self, candidates: Sequence[Candidate]) -> None:
        """Drops candidates that printed something that the unchanged line does not print."""
        unchanged = [line.output for line in self._unchanged()]
        for one in candidates:
            for line in self.runs:
                if line.arm == one.typed and not line.failed and one.typed not in self.dropped:
                    why = differing_line(line.output, unchanged)
                    if why:
                        self.dropped[one.typed] = why

    def by_step(self) -> bool:
        """Whether every run that counts has seconds of its own, so that these are compared."""
        counted = [line for line in self.runs if line.arm not in self.dropped]
        return all(line.seconds is not None for line in counted)

    def table(self, stage: Stage, arms: Sequence[tuple[str, int]]) -> Floats | None:
        """Logarithms of times, (rounds, 2 + arms): the unchanged line twice, and these arms and copies, in
        rounds that have all of them; None if there is no such round.
        """
        own = self.by_step()
        values: dict[int, dict[tuple[str, int], float]] = {}
        for line in self.runs:
            seconds = line.seconds if own else line.wall_s
            if line.stage == stage and not line.failed and seconds is not None:
                values.setdefault(line.round, {})[line.arm, line.copy] = math.log(max(seconds, 1e-9))
        wanted = [(UNCHANGED, 0), (UNCHANGED, 1), *arms]
        rows = [[of_round[arm] for arm in wanted] for of_round in values.values() if {*wanted} <= {*of_round}]
        return np.array(rows) if rows else None

    def placebo(self) -> Gain | None:
        """What the unchanged line gains over itself: nothing but noise. Of one pair a round, a 90 % interval
        from the ranks of five rounds or more.
        """
        tables = [self.table(stage, ()) for stage in ("screening", "confirmation")]
        rows = [row for table in tables if table is not None for row in table]
        if not rows:
            return None
        differences = np.array(rows)[:, 1] - np.array(rows)[:, 0]
        ends = rank_interval(differences, PLACEBO_CONFIDENCE)
        value = 1 - math.exp(float(np.median(differences)))
        if ends is None:
            return Gain(value=value)
        return Gain(value=value, low=1 - math.exp(ends[1]), high=1 - math.exp(ends[0]))

    def usual(self) -> float | None:
        """The median of the unchanged line."""
        own = self.by_step()
        times = [line.seconds if own else line.wall_s for line in self._unchanged()]
        return float(np.median([one for one in times if one is not None])) if times else None

    def notes(self) -> tuple[str, ...]:
        """What to know of the trials."""
        some = any(line.seconds is not None for line in self.runs)
        if some and not self.by_step():
            return ("Some runs show no steps, or other ones: whole runs are compared.",)
        return ()
