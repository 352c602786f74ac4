"""Measuring applications beside each other; here they are short shell scripts."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from elbowroom.errors import MachineError, UsageError
from elbowroom.measure import colocation
from elbowroom.measure.colocation import measure_colocation
from elbowroom.measure.timed_commands import JOURNAL
from elbowroom.schedule.applications import Application, Applications, turns
from elbowroom.schedule.measured import SharedTime
from elbowroom.signals import Stopped


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colocation, "LONGEST_OFFSET", 0.0)


def apps(**commands: str) -> Applications:
    return Applications(
        apps={name: Application(command=f"sh -c '{command}'") for name, command in commands.items()},
        cores=2,
        number=r"seconds (\S+)",
    )


def measured(
    applications: Applications, out: Path, repetitions: int = 1, again: bool = False
) -> list[SharedTime]:
    return measure_colocation(
        applications, out, repetitions=repetitions, seed=1, patience=20, tell=lambda _: None, again=again
    )


def test_all_turns_are_measured_and_kept(tmp_path: Path) -> None:
    lines = measured(apps(a="echo seconds 1", b="echo seconds 2"), tmp_path / "m", repetitions=2)
    assert len(lines) == 2 * 7
    assert len((tmp_path / "m" / JOURNAL).read_text().splitlines()) == len(lines)
    for line in lines:
        assert set(line.first) == {1.0 if line.application == "a" else 2.0}
        assert (line.second == ()) == (line.companion is None)


def test_the_shorter_one_runs_again_until_the_longer_one_has_ended(tmp_path: Path) -> None:
    commands = apps(a=f"echo x >>{tmp_path}/a; echo seconds 1", b="sleep 0.5; echo seconds 2")
    pair = next(
        line for line in measured(commands, tmp_path / "m") if line.companion not in (None, line.application)
    )
    runs = {pair.application: pair.first, pair.companion: pair.second}
    assert len(runs["a"]) > 1
    assert runs["b"] == (2.0,)


def test_the_share_of_a_run_beside_the_other_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colocation, "LONGEST_OFFSET", 0.4)
    applications = apps(a="sleep 0.8; echo seconds 0.8", b="sleep 0.8; echo seconds 0.8")
    pair = next(turn for turn in turns(applications, 1, 1) if turn.second not in (None, turn.first))
    line = colocation._measured(applications, pair, 1, 20.0)
    # The first one runs without the second one until that starts; then both do, and start again.
    assert 0.4 < line.first_beside[0] < 1
    assert line.first_beside[0] < line.second_beside[0] <= 1
    assert len(line.first) == len(line.first_beside)


def test_a_measurement_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    applications, original = apps(a="echo seconds 1"), colocation._measured
    calls = []

    def interrupted(*arguments: object) -> SharedTime:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(arguments)
        return original(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(colocation, "_measured", interrupted)
        with pytest.raises(Stopped, match="what was timed is kept"):
            measured(applications, tmp_path / "m", repetitions=2)
    lines = measured(applications, tmp_path / "m", repetitions=2, again=True)
    assert len({(line.repetition, line.mode, line.companion) for line in lines}) == len(lines) == 6
    assert len((tmp_path / "m" / JOURNAL).read_text().splitlines()) == 6


def test_other_applications_do_not_go_on_with_a_folder(tmp_path: Path) -> None:
    measured(apps(a="echo seconds 1"), tmp_path / "m")
    with pytest.raises(UsageError, match="was started for other applications"):
        measured(apps(a="echo seconds 2"), tmp_path / "m", again=True)


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    measured(apps(a="echo seconds 1"), tmp_path / "m")
    with pytest.raises(UsageError, match="exists"):
        measured(apps(a="echo seconds 1"), tmp_path / "m")


def test_a_job_that_fails_ends_the_measurement_and_its_companion(tmp_path: Path) -> None:
    applications = apps(a=f"mkdir {tmp_path}/first || exit 7; echo $$ >{tmp_path}/number; sleep 60")
    pair = next(turn for turn in turns(applications, 1, 1) if turn.second)
    with pytest.raises(MachineError, match="exit code 7"):
        colocation._measured(applications, pair, 1, 20.0)
    companion = Path("/proc") / (tmp_path / "number").read_text().strip()
    for _ in range(100):
        if not companion.exists():
            break
        time.sleep(0.02)
    assert not companion.exists()
