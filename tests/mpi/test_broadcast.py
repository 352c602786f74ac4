"""Broadcasts over several MPIs, byte by byte: every tree and root, late receives, versions, wrong input, the
thread. And `elbowroom broadcast bench`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import benchmark_modules
import elbowroom
from broadcast_library import ROOT, built_tree, compiled_for, library_folder, ranks_of, run
from elbowroom import cli
from elbowroom.broadcast.measured import BenchCase, BroadcastEntry
from elbowroom.errors import UsageError
from elbowroom.launch.executables import JobLaunch, measure_broadcasts
from elbowroom.launch.mpi import Mpi
from elbowroom.verbs.broadcast_bench import cores
from traced import mpi_called

PARTS = ("trees", "tags", "versions", "wrong", "mismatch", "absent", "again", "confined", "order")
SETTINGS = [("embedded", 2), ("embedded", 8), ("openmpi", 4), ("mpich", 2), ("mpich", 4)]


class Started(NamedTuple):
    """The program for an MPI; parts of it run on so many ranks, all together and once."""

    mpi: Mpi
    ranks: int
    program: Path

    def said(self, *parts: str) -> str:
        return _said(self, parts)


@cache
def _said(started: Started, parts: tuple[str, ...]) -> str:
    return run(*ranks_of(started.mpi, started.ranks), started.program, *parts, seconds=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broadcasts")


@pytest.fixture(scope="module")
def library(folder: Path) -> Path:
    return library_folder(built_tree(folder))


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda setting: f"{setting[0]}-{setting[1]}")
def started(request: pytest.FixtureRequest, folder: Path, library: Path) -> Started:
    name, ranks = request.param
    mpi, program = mpi_called(name), folder / name
    if not program.exists():
        flags = (f"-I{ROOT / 'include'}", f"-L{library}", "-lelbow_broadcast", f"-Wl,-rpath,{library}")
        compiled_for(mpi, Path(__file__).with_name("broadcasts.c"), program, *flags)
    return Started(mpi, ranks, program)


@pytest.mark.parametrize("part", PARTS)
def test_all_checks_of_a_part_hold_on_all_ranks(started: Started, part: str) -> None:
    found = re.search(rf"^{part}: (\d+) of (\d+) checks failed$", started.said(*PARTS), re.MULTILINE)
    assert found is not None
    assert (int(found[1]), int(found[2]) > 0) == (0, True)


def test_a_program_that_has_threads_may_leave_progress_to_the_library(started: Started) -> None:
    said = started.said("thread")
    if "allows threads up to" in said:
        pytest.skip(said.strip())
    assert re.search(r"^thread: 0 of \d+ checks failed$", said, re.MULTILINE)


def test_the_command_prints_a_list_with_mpi_beside_each_tree(capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "--ranks",
        "4",
        "--sizes",
        "4B,100kB",
        "--trees",
        "flat,two",
        "--segment",
        "30kB",
        "--repeat",
        "5",
    ]
    assert cli.run(["broadcast", "bench", *words, "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert [(entry["size"], entry["tree"], entry["ranks"]) for entry in printed] == [
        (4, "flat", 4), (4, "two", 4), (100000, "flat", 4), (100000, "two", 4)
    ]  # fmt: skip
    for entry in printed:
        msgspec.convert(entry, BroadcastEntry)
        assert set(elbowroom.schema("broadcast-bench")["required"]) <= set(entry)
        for time in (entry["time"], *entry["beside"].values()):
            assert 0 < time["low"] <= time["median"] <= time["high"]


def test_the_table_says_that_ranks_shared_cores_and_a_figure_is_drawn(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--ranks", "8", "--sizes", "4B", "--recipients", "1,7", "--trees", "binomial", "--repeat", "2"]
    assert cli.run(["broadcast", "bench", *words, "-o", str(tmp_path / "figure.svg")]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "n/a" in said  # two repetitions have no interval
    assert ("Ranks shared cores" in said) == (len(cores()) < 8)
    assert "<svg" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_measured_broadcasts_become_areas(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--ranks", "4", "--sizes", "100kB", "--trees", "flat,binary", "--rising", "--repeat", "5"]
    assert cli.run(["broadcast", "bench", *words, "--json"]) == 0
    file = tmp_path / "bench.json"
    file.write_text(capfd.readouterr().out, encoding="utf-8")
    measured = benchmark_modules.load("broadcast_areas").load_areas(file)
    assert measured.priorities == (1, 2, 3)
    for areas in measured.broadcasts:
        assert not areas.simulated
        waits = zip(areas.received_us, areas.released_us[1:], strict=True)
        assert all(0 < received <= released for received, released in waits)


def test_each_rank_receives_before_it_releases_and_priorities_are_served_first() -> None:
    case = BenchCase(size=300_000, recipients=3, tree="chain", repeat=5, priorities="rising")
    (times,) = measure_broadcasts([case], JobLaunch(4), beside=False).cases
    assert len(times.received) == 5
    for received, released in zip(times.received, times.released, strict=True):
        assert all(early <= late for early, late in zip(received, released[1:], strict=True))
        # Rank 3 has the highest priority: it is the chain's first, whose data pass on to rank 2.
        assert received[2] == min(received)


def test_more_recipients_than_ranks_are_refused() -> None:
    with pytest.raises(UsageError, match="recipients 4"):
        measure_broadcasts([BenchCase(size=4, recipients=4)], JobLaunch(4))
