"""The board as Python sees it, written by the library of lib/guard."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.guard.board import SHARED, Board, board_path

ROOT = Path(__file__).parents[3]
OUT, IN = 0, 1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("guard") / "libguard.so"
    sources = [ROOT / "lib/guard" / name for name in ("guard.cpp", "board.cpp")]
    flags = ["-std=c++20", "-shared", "-fPIC", "-O1", f"-I{ROOT / 'include'}", f"-I{ROOT / 'lib'}"]
    subprocess.run(["g++", *flags, '-DELBOWROOM_VERSION="test"', "-o", path, *sources], check=True)
    loaded = ctypes.CDLL(str(path))
    for name in ("make", "join"):
        getattr(loaded, f"elbow_guard_{name}").restype = ctypes.c_void_p
    loaded.elbow_guard_setting.restype = ctypes.c_uint64
    return loaded


@pytest.fixture
def written(library: ctypes.CDLL, tmp_path: Path) -> Callable[..., int]:
    """Calls a function of the library, with the board of this test or a place on it."""
    guard = ctypes.c_void_p(library.elbow_guard_make(str(tmp_path / "board").encode(), 8))
    places = [ctypes.c_void_p(library.elbow_guard_join(guard, rank, 0)) for rank in range(2)]

    def call(name: str, *arguments: int, rank: int | None = None) -> int:
        first = guard if rank is None else places[rank]
        values = [ctypes.c_uint64(one) if one > 1 else one for one in arguments]
        return int(getattr(library, f"elbow_guard_{name}")(first, *values) or 0)

    return call


def test_the_board_shows_each_rank_with_what_it_has_in_flight(
    written: Callable[..., int], tmp_path: Path
) -> None:
    written("begin", OUT, 1 << 40, rank=0)
    written("begin", IN, 24, rank=1)
    written("begin", OUT, 1000, rank=1)
    written("end", OUT, 1000, rank=1)
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    written("step", rank=1)
    with Board(tmp_path / "board") as board:
        first, second = board.ranks()
        assert board.in_flight() == (1 << 40) + 24
    assert (first.rank, first.out, first.in_, first.steps, first.step_begin) == (0, 1 << 40, 0, 0, None)
    assert (second.rank, second.out, second.in_, second.moved_out, second.steps) == (1, 0, 24, 1000, 1)
    assert second.step_begin is not None
    assert 0 <= second.step_begin - before < 60


def test_the_board_shows_for_how_long_each_process_held_tasks_back(
    written: Callable[..., int], tmp_path: Path
) -> None:
    written("held", 3_000_000)
    written("held", 2_000_000)
    with Board(tmp_path / "board") as board:
        assert board.held() == pytest.approx({os.getpid(): 0.005})


def test_settings_reach_the_library(written: Callable[..., int], tmp_path: Path) -> None:
    with Board(tmp_path / "board") as board:
        board.set(31, 2**63 + 5)
        assert board.setting(31) == 2**63 + 5
        assert board.setting(0) == 0
    assert written("setting", 31) == 2**63 + 5


def test_a_lever_that_is_none_is_refused(written: Callable[..., int], tmp_path: Path) -> None:
    with Board(tmp_path / "board") as board, pytest.raises(IndexError, match="numbered from 0 to 31"):
        board.set(32, 1)


@pytest.mark.parametrize(
    "contents", [b"", b"ELBGUARD", b"x" * 9000, b"ELBGUARD" + b"\x01\0\0\0\xff\xff\0\0" + b"\0" * 9000]
)
def test_a_file_that_is_no_board_is_refused_with_its_name(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(contents)
    with pytest.raises(UsageError, match="board") as raised:
        Board(path)
    assert str(path) in raised.value.sentence()


def test_the_board_of_a_guard_is_gone_at_its_end() -> None:
    with board_path() as path:
        assert path.parent == SHARED
        path.write_bytes(b"")
    assert not path.exists()
