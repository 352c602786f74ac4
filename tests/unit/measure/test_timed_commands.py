"""Commands in turns: in which order, what is kept, and how a measurement that was stopped goes on."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.measure.timed_commands import JOURNAL, interleaved, last_number, open_times, time_commands
from elbowroom.signals import Stopped
from elbowroom.store.journal import Format


class Line(msgspec.Struct, frozen=True):
    repetition: int
    arm: str
    wall_s: float


class Runs(Format[Line, tuple[int, str]]):
    def key(self, line: Line) -> tuple[int, str]:
        return line.repetition, line.arm

    def name(self, line: Line) -> str:
        return f"{line.arm} {line.repetition}"


RUNS = Runs(Line, header=False)
STOPPED = Stopped("stopped")


def timed(out: Path, turns: list[tuple[int, str]], *, again: bool = False, most: int = 99) -> list[Line]:
    ran: list[Line] = []

    def run(turn: tuple[int, str]) -> Line:
        if len(ran) == most:
            raise KeyboardInterrupt
        ran.append(Line(*turn, wall_s=0.1))
        return ran[-1]

    check = (lambda folder: None) if again else None
    with contextlib.closing(open_times(out, RUNS, lambda folder: None, check)) as journal:
        return time_commands(turns, run, journal, lambda turn: turn, tell=lambda _: None, stopped=STOPPED)


def test_every_arm_runs_once_in_each_repetition_in_an_order_of_the_seed() -> None:
    turns = list(interleaved(("a", "b", "a'"), 20, seed=1))
    assert turns == list(interleaved(("a", "b", "a'"), 20, seed=1))
    for repetition in range(20):
        assert sorted(arm for at, arm in turns if at == repetition) == ["a", "a'", "b"]
    assert {arm for _, arm in turns[::3]} == {"a", "b", "a'"}


def test_mirrored_repetitions_are_in_the_opposite_order_in_pairs() -> None:
    arms = [arm for _, arm in interleaved("abc", 8, seed=3, mirrored=True)]
    for first in range(0, len(arms), 6):
        assert arms[first : first + 3] == arms[first + 3 : first + 6][::-1]


def test_what_was_timed_before_an_interrupt_is_kept_and_not_run_again(tmp_path: Path) -> None:
    turns = list(interleaved("ab", 3, seed=1))
    with pytest.raises(Stopped):
        timed(tmp_path / "t", turns, most=2)
    assert len((tmp_path / "t" / JOURNAL).read_text().splitlines()) == 2
    lines = timed(tmp_path / "t", turns, again=True, most=4)
    assert [(line.repetition, line.arm) for line in lines] == turns


def test_a_folder_with_something_in_it_is_not_measured_into(tmp_path: Path) -> None:
    timed(tmp_path / "t", [(0, "a")])
    with pytest.raises(UsageError, match="already exists"):
        timed(tmp_path / "t", [(0, "a")])


@pytest.mark.parametrize(
    ("pattern", "output", "number"),
    [
        (r"time: (\S+)", "time: 1.5\ntime: 2.5\n", 2.5),
        (r"\d+", "7 runs, 9 s", 9.0),
        (r"time: (\S+)", "none", None),
        (r"time: (\S+)", "time: soon", None),
        (r"(a)?\d", "1", None),
    ],
)
def test_the_last_number_that_an_expression_finds_counts(
    pattern: str, output: str, number: float | None
) -> None:
    assert last_number(pattern, output) == number
