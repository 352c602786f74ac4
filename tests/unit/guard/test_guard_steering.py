"""How a guard finds and steers the steps of ranks: files of steps as lib/pmpi/guard writes them, by hand."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from elbowroom.errors import MachineError
from elbowroom.guard import step_file
from elbowroom.guard.board import SETTINGS, VERSION
from elbowroom.guard.decision import Decision
from elbowroom.guard.keeper import Keeper
from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess, LeverReading
from elbowroom.guard.rank_steps import MIXED, RankSteps
from elbowroom.guard.steering import RunningLever, Steering
from elbowroom.guard.step_file import CALL, STEP, StepFile

PROGRAM = GuardedProgram(words=("app",), libraries={}, env={})


class Rank:
    """A rank that does what the library does."""

    def __init__(self, board: Path, rank: int) -> None:
        self.path = Path(f"{board}.steps-{1000 + rank}")
        self.data = bytearray(step_file._SIZE)
        struct.pack_into("<8sIiI", self.data, 0, b"ELBSTEPS", 1, rank, 1000 + rank)
        struct.pack_into("<I", self.data, step_file._LEARNS, 1)
        self.path.write_bytes(self.data)
        self.file = StepFile(self.path)
        self.memory = self.file._memory

    def put(self, place: int, form: str, value: int) -> None:
        struct.pack_into(form, self.memory, place, value)

    def call(self, site: int, begin: float, end: float) -> None:
        count = self.file.call_count
        row = np.array((site, 0, int(begin * 1e9), int(end * 1e9)), dtype=CALL)
        at = step_file._HEADER_BYTES + CALL.itemsize * (count % step_file.CALLS)
        self.memory[at : at + CALL.itemsize] = row.tobytes()
        self.put(step_file._CALLS, "<Q", count + 1)

    def arm(self) -> int:
        step = self.file.step_count
        (planned,) = struct.unpack_from("<Q", self.memory, step_file._PLANNED)
        (rest,) = struct.unpack_from("<I", self.memory, step_file._REST)
        return self.memory[step_file._PLAN + step % step_file.PLAN] if step < planned else int(rest)

    def step(self, begin: float, seconds: float) -> int:
        count, arm = self.file.step_count, self.arm()
        row = np.zeros((), dtype=STEP)
        row["step"], row["arm"] = count, arm
        row["begin"], row["end"] = int(begin * 1e9), int((begin + seconds) * 1e9)
        at = step_file._HEADER_BYTES + step_file.CALLS * CALL.itemsize
        at += STEP.itemsize * (count % step_file.STEPS)
        self.memory[at : at + STEP.itemsize] = row.tobytes()
        self.put(step_file._STEPS, "<Q", count + 1)
        return arm

    def end(self) -> None:
        self.put(step_file._PROCESS, "<I", 0)


class Outside(Lever):
    """A lever outside of the ranks that may go away."""

    name = "outside"
    number = 9
    inside = False

    def __init__(self) -> None:
        self.settings_made: list[str] = []
        self.is_gone = False

    def missing(self, program: GuardedProgram) -> str | None:
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        return ("on",)

    def set(self, setting: str, access: LeverAccess) -> None:
        if self.is_gone:
            raise MachineError("has ended", field="process", value=7)
        self.settings_made.append(setting)

    def read(self, access: LeverAccess) -> str:
        return self.settings_made[-1]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    path = tmp_path / "board"
    head = struct.pack("<8sIIIIQ", b"ELBGUARD", VERSION, 4, 0, 0, 1 << 20) + bytes(8 * SETTINGS)
    path.write_bytes(head.ljust(4096 + 64 + 4 * 64, b"\0"))
    return path


def steering_of(
    board: Path,
    levers: Sequence[Lever] = (),
    decide: Callable[[Sequence[RunningLever], int, tuple[int, ...]], Decision | None] | None = None,
    warm_up: int = 2,
) -> Steering:
    made = decide or (lambda *_: Decision({"x=1": {9: 2}}, {9: 1}, seed=1, block_seconds=0))
    return Steering(board, PROGRAM, levers, cast("Keeper", None), made, warm_up=warm_up)


def run(steering: Steering, ranks: Sequence[Rank], count: int, seconds: Callable[[int], float]) -> list[int]:
    """Steps in which all ranks have the same time by their arm; the guard looks after each second one."""
    now, arms = 1e6, []  # later than the clock of the guard
    for number in range(count):
        taken = [rank.step(now, seconds(rank.arm())) for rank in ranks]
        assert len(set(taken)) == 1
        arms.append(taken[0])
        now += seconds(taken[0])
        if number % 2:
            steering.look()
    return arms


def test_steps_that_are_marked_are_steered_until_the_better_arm_is_kept(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    for rank in ranks:
        rank.put(step_file._RECOGNISED, "<I", 1)
    steering = steering_of(board)
    steering.look()
    arms = run(steering, ranks, 160, lambda arm: 0.02 if arm == 2 else 0.04)
    assert steering.recognised_by == "marks"
    assert steering.decision is not None
    assert steering.decision.verdict == "pays"
    assert arms[:4] == [0] * 4
    assert arms[-40:].count(2) > 28
    assert steering.switches > 10
    (setting,) = struct.unpack_from("<Q", ranks[0].memory, step_file._SETTINGS + 8 * (2 * SETTINGS + 9))
    assert setting == 2


def test_steps_without_marks_are_found_by_the_site_before_the_longest_computation(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    steering = steering_of(board)
    now = 0.0
    for _ in range(30):
        for site, gap in ((5, 0.001), (6, 0.001), (5, 0.02)):
            for rank in ranks:
                rank.call(site, now, now + 0.0005)
            now += gap
        steering.look()
    for rank in ranks:
        words = [struct.unpack_from("<I", rank.memory, place)[0] for place in (52, 56, 60)]
        assert words == [2, 5, 2]


def test_a_program_whose_calls_do_not_repeat_is_left_alone_with_a_sentence(board: Path) -> None:
    rank = Rank(board, 0)
    rng = np.random.default_rng(0)
    steering = steering_of(board)
    for number in range(step_file.CALLS * 4):
        rank.call(int(rng.integers(1000)), number * 1e-3, number * 1e-3 + 1e-4)
        if number % 4096 == 4095:
            steering.look()
    steering.look()
    assert any("no steps can be found" in note for note in steering.notes)


def test_ranks_that_start_later_leave_the_program_as_it_is(board: Path) -> None:
    ranks = [Rank(board, 0)]
    ranks[0].put(step_file._RECOGNISED, "<I", 1)
    steering = steering_of(board)
    run(steering, ranks, 30, lambda arm: 0.02 if arm == 2 else 0.04)
    ranks.append(Rank(board, 1))
    steering.look()
    assert steering.notes == ["ranks started after the others: the program runs on as it is"]
    ranks[0].step(9.0, 0.01)
    assert ranks[0].arm() == 0


def test_ranks_that_end_before_the_others_leave_the_program_as_it_is(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    for rank in ranks:
        rank.put(step_file._RECOGNISED, "<I", 1)
    steering = steering_of(board)
    run(steering, ranks, 20, lambda arm: 0.02 if arm == 2 else 0.04)
    ranks[1].end()
    steering.look()
    monkeypatch.setattr("elbowroom.guard.steering.time.monotonic", lambda: 1e9)
    steering.look()
    assert steering.notes == ["ranks ended before the others: the program runs on as it is"]


def test_a_lever_that_disappears_in_mid_run_is_not_used_any_more(board: Path) -> None:
    rank = Rank(board, 0)
    rank.put(step_file._RECOGNISED, "<I", 1)
    lever = Outside()
    steering = steering_of(
        board, [lever], lambda *_: Decision({"outside=on": {}}, {}, seed=1, block_seconds=0.1)
    )
    run(steering, [rank], 40, lambda arm: 0.04)
    assert {"on", "off"} <= set(lever.settings_made)
    lever.is_gone = True
    run(steering, [rank], 30, lambda arm: 0.04)
    assert steering.decision is not None
    assert any("outside: is gone" in note for note in steering.decision.notes)
    assert steering.decision.chosen == "off"
    assert not steering.notes


def test_a_lever_that_cannot_be_tried_is_not_used_and_the_reason_is_said(board: Path) -> None:
    class Broken(Outside):
        def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
            raise MachineError("cannot be written", field="setting", value="x")

    rank = Rank(board, 0)
    rank.put(step_file._RECOGNISED, "<I", 1)
    steering = steering_of(board, [Broken()], lambda running, *_: None)
    run(steering, [rank], 10, lambda arm: 0.04)
    assert steering.running == []
    assert any("outside: not used" in note for note in steering.notes)


def test_a_step_is_complete_when_all_ranks_have_completed_it(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    joined = RankSteps({rank.path: rank.file for rank in ranks}, True)
    ranks[0].step(1.0, 0.1)
    assert joined.new() is None
    ranks[0].step(1.1, 0.1)
    ranks[1].step(1.0, 0.3)
    steps = joined.new()
    assert steps is not None
    assert (steps.numbers.tolist(), steps.begins.tolist()) == ([0], [1.0])
    assert steps.seconds == pytest.approx([0.3])


def test_the_step_of_a_rank_that_is_ahead_is_that_of_the_last_one_and_the_last_one_leads(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    for rank in ranks:
        rank.put(step_file._RECOGNISED, "<I", 1)
    steering = steering_of(board)
    steering.look()
    now, before, begin = 1e6, 0.04, 1e6 - 0.02
    for number in range(60):
        seconds = 0.02 if ranks[1].arm() == 2 else 0.04
        ranks[0].step(begin, now + seconds / 2 - begin)  # from the middle of a step to that of the next
        begin = now + seconds / 2
        ranks[1].step(now, seconds)
        now, before = now + seconds, seconds
        if number % 2:
            steering.look()
    assert [struct.unpack_from("<I", rank.memory, step_file._LEADS)[0] for rank in ranks] == [0, 1]
    assert steering.decision is not None
    assert steering.decision.experiment is not None
    logs = steering.decision.experiment.logs["x=1"]
    assert len(logs) > 5
    assert logs == pytest.approx([np.log(2)] * len(logs))
    assert before == 0.02


def test_a_setting_that_paid_in_an_earlier_run_acts_from_the_second_step_on(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    for rank in ranks:
        rank.put(step_file._RECOGNISED, "<I", 1)
    earlier = {"x=1": [0.2] * 9}
    steering = steering_of(
        board, (), lambda *_: Decision({"x=1": {9: 2}}, {9: 1}, earlier=earlier, until_round=12), warm_up=0
    )
    steering.look()
    arms = run(steering, ranks, 12, lambda arm: 0.02 if arm == 2 else 0.04)
    assert arms == [0] + 11 * [2]


def test_steps_by_calls_are_the_same_where_they_begin_at_nearly_the_same_time(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    joined = RankSteps({rank.path: rank.file for rank in ranks}, False)
    ranks[1].step(0.001, 0.1)
    for number in range(3):
        for rank in ranks:
            rank.step(0.1 * (number + 1), 0.1)
    steps = joined.new()
    assert steps is not None
    assert steps.numbers.tolist() == [0, 1, 2]
    first, second = (rows["begin"].tolist() for rows in steps.rows)
    assert first == second


def test_steps_that_a_rank_overwrote_are_left_out_and_those_behind_are_joined(board: Path) -> None:
    ranks = [Rank(board, rank) for rank in (0, 1)]
    joined = RankSteps({rank.path: rank.file for rank in ranks}, True)
    ranks[0].step(0.0, 0.1)
    for number in range(step_file.STEPS + 10):
        ranks[1].step(0.1 * number, 0.1)
    assert joined.new() is None
    for number in range(1, step_file.STEPS + 10):
        ranks[0].put(step_file._REST, "<I", number % 2)
        ranks[0].step(0.1 * number, 0.1)
    steps = joined.new()
    assert steps is not None
    assert steps.numbers[0] > 0
    assert steps.numbers[-1] == step_file.STEPS + 9
    assert set(steps.arms[1::2].tolist()) ^ set(steps.arms[::2].tolist()) == {0, MIXED}


def test_a_file_that_is_none_of_steps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(os.urandom(100))
    with pytest.raises(Exception, match="is not a file of steps"):
        StepFile(tmp_path / "x")
