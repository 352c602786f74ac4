"""A limit of memory bandwidth is used only where it does what was asked (guard/levers/resctrl.py)."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from elbowroom.errors import MachineError
from elbowroom.guard.experiment import AS_IT_IS
from elbowroom.guard.keeper import Keeper, keeping
from elbowroom.guard.lever import GuardedProgram, LeverAccess
from elbowroom.guard.levers.resctrl import SHARES, TOLERANCE, Resctrl
from elbowroom.guard.neighbours import NEIGHBOURS
from fake_resctrl import Behaviour, FakeResctrl, Limiter

CASES = 12
"""Limiters of each behaviour."""
NUMBERS = range(90, 9, -10)


@pytest.fixture
def neighbour() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with keeping("test", tmp_path) as one:
        yield one


def program_of(*neighbours: int) -> GuardedProgram:
    return GuardedProgram(words=("app",), libraries={}, env={NEIGHBOURS: ",".join(map(str, neighbours))})


def access_of(keeper: Keeper, *neighbours: int) -> LeverAccess:
    board = SimpleNamespace(ranks=lambda: ())
    return LeverAccess(program=program_of(*neighbours), board=board, keeper=keeper, processes=())  # type: ignore[arg-type]


def lever_of(fake: FakeResctrl) -> Resctrl:
    return Resctrl(fake.mount, fake.sleep, fake.clock)


def random_limiter(behaviour: Behaviour, rng: random.Random) -> Limiter:
    wanted = rng.uniform(5e9, 40e9)
    return Limiter(
        behaviour=behaviour,
        wanted=wanted,
        peak=wanted * rng.uniform(0.6, 3),
        leak=rng.choice([1.5, 3.4, 10.0]),
        every=rng.randint(2, 20),
        cores=rng.choice([2, 4, 32]),
        seconds=rng.uniform(0.02, 0.9),
    )


def right_number(limiter: Limiter, share: float) -> int | None:
    """The largest one that is never too much; None where none is."""
    if limiter.behaviour == "reverts":
        return None
    most = (1 + TOLERANCE) * share * limiter.wanted
    return next((number for number in NUMBERS if max(limiter.rates(number)) <= most), None)


@pytest.mark.parametrize("behaviour", get_args(Behaviour))
@pytest.mark.parametrize("setting", SHARES)
def test_the_right_number_is_found_or_the_limit_is_called_useless(
    behaviour: Behaviour, setting: str, tmp_path: Path, neighbour: int, keeper: Keeper
) -> None:
    rng = random.Random(f"{behaviour} {setting}")
    for case in range(CASES):
        fake = FakeResctrl(tmp_path / str(case), random_limiter(behaviour, rng), [neighbour])
        lever, access = lever_of(fake), access_of(keeper, neighbour)
        before = fake.schemata.read_text()
        reading = lever.calibrate(setting, access)
        assert fake.schemata.read_text() == before
        number = right_number(fake.limiter, SHARES[setting])
        assert reading.works == (number is not None), (fake.limiter, reading)
        if number is None:
            assert reading.got.startswith("useless: ")
        else:
            lever.act(setting, True, access)
            assert fake.percent == number, fake.limiter
            assert lever.read(access) == setting
            lever.act(setting, False, access)
            assert fake.schemata.read_text() == before


def test_neighbours_that_use_no_bandwidth_make_the_lever_useless(
    tmp_path: Path, neighbour: int, keeper: Keeper
) -> None:
    fake = FakeResctrl(tmp_path / "r", Limiter(behaviour="exact", wanted=1e7, peak=1e10), [neighbour])
    reading = lever_of(fake).calibrate("half", access_of(keeper, neighbour))
    assert not reading.works
    assert "use no memory bandwidth" in reading.got


def test_a_limit_that_other_software_takes_back_while_it_acts_is_an_error(
    tmp_path: Path, neighbour: int, keeper: Keeper
) -> None:
    fake = FakeResctrl(tmp_path / "r", Limiter(behaviour="exact", wanted=1e10, peak=1e10), [neighbour])
    lever, access = lever_of(fake), access_of(keeper, neighbour)
    assert lever.calibrate("half", access).works
    lever.act("half", True, access)
    fake.schemata.write_text("    L3:0=ff\n    MB:0=100\n")
    with pytest.raises(MachineError, match="taken back"):
        lever.act("half", False, access)


def test_megabytes_a_second_are_numbers_too(tmp_path: Path, neighbour: int, keeper: Keeper) -> None:
    class MegabytesFake(FakeResctrl):
        @property
        def percent(self) -> int:
            return min(round(super().percent * 1e6 / self.limiter.peak * 100), 100)

    fake = MegabytesFake(tmp_path / "r", Limiter(behaviour="exact", wanted=1e10, peak=2e10), [neighbour])
    fake.schemata.write_text("    L3:0=ff\n    MB:0=4294967295\n")
    lever, access = lever_of(fake), access_of(keeper, neighbour)
    reading = lever.calibrate("half", access)
    assert reading.works, reading
    assert reading.got.endswith("by MB=5000")
    assert fake.schemata.read_text().endswith("4294967295\n")
    lever.act("half", True, access)
    assert lever.read(access) == "half"
    lever.act("half", False, access)
    assert lever.read(access) == AS_IT_IS


def test_what_is_missing_is_said(tmp_path: Path, neighbour: int) -> None:
    limiter = Limiter(behaviour="exact", wanted=1e10, peak=1e10)
    mount = tmp_path / "r"
    assert "no neighbour is named" in str(Resctrl(mount).missing(program_of()))
    assert "not mounted" in str(Resctrl(mount).missing(program_of(neighbour)))
    fake = FakeResctrl(mount, limiter, [neighbour])
    assert lever_of(fake).missing(program_of(neighbour)) is None
    fake.counter.write_text("Unavailable\n")
    assert "does not count memory bandwidth" in str(lever_of(fake).missing(program_of(neighbour)))
    (fake.group / "tasks").write_text(f"{neighbour}\n{os.getpid()}\n")
    assert f"task {os.getpid()} is not in the group" in str(lever_of(fake).missing(program_of(neighbour)))
    (fake.group / "tasks").write_text("")
    assert "have no control group" in str(lever_of(fake).missing(program_of(neighbour)))
