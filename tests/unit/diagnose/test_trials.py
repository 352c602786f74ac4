"""Candidates measured in turns, with programs that a test simulates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from elbowroom.diagnose.candidates import Candidate
from elbowroom.diagnose.trials import TrialOutcome, TrialRun, Trials, try_candidates


def candidate(name: str) -> Candidate:
    return Candidate(command=(name,), cause="placement", what="changes it", typed=name)


class Program:
    """A program whose run takes `run_s`, less the gain of the line, with noise."""

    def __init__(self, gains: dict[str, float], *, noise: float = 0.02, run_s: float = 2.0, seed: int = 1):
        self.gains, self.noise, self.run_s = gains, noise, run_s
        self.rng, self.now, self.runs = np.random.default_rng(seed), 0.0, 0

    def __call__(self, one: Candidate | None, _patience: float | None) -> TrialOutcome:
        seconds = self.run_s * (1 - self.gains.get(one.typed, 0.0) if one else 1.0)
        seconds *= float(np.exp(self.rng.normal(0, self.noise)))
        self.now += seconds
        self.runs += 1
        return TrialOutcome(seconds / 10, seconds, "result 42\ntime 1.5 s")

    def tried(self, budget_s: float = 80.0, **options: object) -> Trials:
        names = [candidate(name) for name in self.gains]
        run: Callable[..., TrialOutcome] = options.pop("run", self)  # type: ignore[assignment]
        return try_candidates(
            names,
            run,
            budget_s=budget_s,
            run_s=self.run_s,
            clock=lambda: self.now,
            **options,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("seed", range(5))
def test_a_gain_is_shown_within_the_time(seed: int) -> None:
    program = Program({"a": 0.0, "b": 0.15, "c": -0.2}, seed=seed)
    trials = program.tried(seed=seed)
    assert trials.best is not None
    assert trials.best.command == "b"
    assert trials.best.gain.low is not None
    assert 0 < trials.best.gain.low < 0.15
    assert trials.placebo is not None
    assert abs(trials.placebo.value) < 0.1
    assert program.now < 90


def test_a_gain_is_seldom_claimed_where_there_is_none() -> None:
    claimed = sum(
        Program({"a": 0.0, "b": 0.0, "c": 0.0}, noise=0.04, seed=seed).tried(seed=seed).best is not None
        for seed in range(60)
    )
    assert claimed <= 6


def test_long_programs_are_tried_with_few_runs_and_what_is_left_is_named() -> None:
    program = Program({name: 0.2 if name == "a" else 0.0 for name in "abcdefgh"}, run_s=20.0, noise=0.01)
    trials = program.tried(290.0)
    assert trials.best is not None
    assert trials.best.command == "a"
    assert len(trials.untried) >= 2
    assert program.now < 330


def test_without_time_nothing_is_tried() -> None:
    assert "more than there is time for" in Program({"a": 0.5}).tried(5.0).off


def test_lines_that_fail_or_print_something_else_are_dropped_and_named() -> None:
    program = Program({"fails": 0.5, "differs": 0.5, "good": 0.2})

    def run(one: Candidate | None, patience: float | None) -> TrialOutcome:
        outcome = program(one, patience)
        if one is not None and one.typed == "fails":
            return outcome._replace(failed="it ends with exit code 1: no")
        if one is not None and one.typed == "differs":
            return outcome._replace(output="result 41\ntime 1.2 s")
        return outcome

    trials = program.tried(run=run)
    assert {one.command for one in trials.dropped} == {"fails", "differs"}
    assert trials.best is not None
    assert trials.best.command == "good"


def test_an_unchanged_line_that_fails_ends_the_trials() -> None:
    program = Program({"a": 0.5})

    def run(one: Candidate | None, patience: float | None) -> TrialOutcome:
        return program(one, patience)._replace(failed="" if one else "it ends with exit code 1: no")

    assert "the unchanged line failed" in program.tried(run=run).off


def test_a_candidate_has_a_time_limit_by_the_unchanged_runs() -> None:
    limits: list[float | None] = []
    program = Program({"a": 0.1, "b": 0.0})

    def run(one: Candidate | None, patience: float | None) -> TrialOutcome:
        if one is not None:
            limits.append(patience)
        return program(one, patience)

    program.tried(run=run)
    assert all(limit is not None and 6 < limit < 15 for limit in limits)


def test_finished_runs_of_a_journal_are_not_run_again(tmp_path: Path) -> None:
    first = Program({"a": 0.2, "b": 0.0})
    stopped_after = 7

    def run(one: Candidate | None, patience: float | None) -> TrialOutcome:
        if first.runs == stopped_after:
            raise KeyboardInterrupt
        return first(one, patience)

    journal = tmp_path / "trials.jsonl"
    with pytest.raises(KeyboardInterrupt):
        first.tried(run=run, journal=journal)
    assert len(journal.read_text().splitlines()) == stopped_after
    ended: list[TrialRun] = []
    second = Program({"a": 0.2, "b": 0.0}, seed=2)
    trials = second.tried(journal=journal, ended=ended.append)
    assert trials.best is not None
    assert trials.runs == second.runs + stopped_after == len(ended) + stopped_after


def test_without_times_of_steps_whole_runs_are_compared() -> None:
    program = Program({"a": 0.2})

    def run(one: Candidate | None, patience: float | None) -> TrialOutcome:
        return program(one, patience)._replace(seconds=None)

    trials = program.tried(run=run)
    assert trials.measured == "run"
    assert trials.seconds == pytest.approx(2.0, rel=0.1)
