"""Programs with one-sided, partitioned and neighbourhood communication, with other jobs, and with an MPI that
they open: they print and end as alone, and the counts are those that they made themselves.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from counted import c_wrapper
from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.trace_reader import Checked
from elbowroom.profile.profile import Profile, read_profile
from traced import MPIS, Ran, mpi_called, run

HERE = Path(__file__).parent
LINE = re.compile(r"^rank (\d+) (sent|MPI_\w+) (\d+)(?: (\d+))?$", re.MULTILINE)


class Counted(NamedTuple):
    """What a rank says that it did: calls and bytes by function, and bytes that it sent."""

    calls: dict[str, tuple[int, int]]
    sent: int


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    """Holds the programs for this MPI."""
    made = tmp_path_factory.mktemp("trials")
    words = [c_wrapper(mpi), "-w", "-O1", "-o", made / "trials", HERE / "trials.c"]
    if subprocess.run([*words, "-DHAVE_LARGE_COUNTS"], capture_output=True).returncode:
        subprocess.run(words, check=True)
    subprocess.run(["cc", "-w", "-o", made / "opened", HERE / "trials_opened.c", "-ldl"], check=True)
    return made


def libmpi(program: Path) -> str:
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    match = re.search(r"libmpi(?:ch)?\.so\S* => (\S+)", linked)
    assert match is not None
    return match[1]


def profiled(mpi: Mpi, words: list[str], where: Path) -> Ran:
    profile = where.with_name(f"{where.name}-profile")
    profile.mkdir()
    told = [f"LD_PRELOAD={build.trace_libraries(mpi) / 'libelbow_profile_mpi.so'}"]
    ran = run(mpi, 2, ["env", *told, f"ELBOW_PROFILE_DIRECTORY={profile}", *words], where, None)
    return Ran(ran.code, ran.said, profile)


def counted(said: str) -> list[Counted]:
    calls: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    sent = {}
    for rank, name, first, second in LINE.findall(said):
        if name == "sent":
            sent[int(rank)] = int(first)
        else:
            calls[int(rank)][name] = int(first), int(second)
    return [Counted(calls[rank], sent[rank]) for rank in sorted(sent)]


def check_profile(alone: Ran, found: Ran) -> Profile:
    """The same output and exit code, and a profile with the program's own counts."""
    lines = [sorted(LINE.findall(ran.said)) for ran in (alone, found)]
    assert (found.code, lines[1]) == (alone.code, lines[0]), found.said
    profile = read_profile(found.folder)
    own = counted(alone.said)
    assert len(profile.ranks) == len(own) == 2
    for rank, expected in zip(profile.ranks, own, strict=True):
        totals = {kind.name: (kind.count, kind.bytes) for kind in rank.call_kinds}
        assert {name: totals[name] for name in expected.calls} == expected.calls
        assert int(rank.windows["sent_inside"].sum()) == expected.sent
        assert int(rank.windows["sent_between"].sum()) == 0
    return profile


def check_trace(mpi: Mpi, words: list[str], alone: Ran, where: Path) -> Checked:
    """The same output and exit code, and a trace in which each message has both ends."""
    traced = run(mpi, 2, words, where, build.trace_libraries(mpi) / "libelbow_trace_mpi.so")
    assert traced.code == alone.code, traced.said
    assert sorted(LINE.findall(traced.said)) == sorted(LINE.findall(alone.said))
    return api.check_trace(where / "trace")


def test_calls_of_all_kinds_are_counted_with_their_bytes(mpi: Mpi, folder: Path) -> None:
    words = [str(folder / "trials"), "calls"]
    alone = run(mpi, 2, words, folder / "calls", None)
    assert alone.code == 3, alone.said
    profile = check_profile(alone, profiled(mpi, words, folder / "calls-profiled"))
    assert not any("no data" in note for note in profile.notes)
    node = api.show_profile(profile.folder).summary.nodes[0]
    assert node.bytes_inside > 0
    assert node.bytes_between == 0


def test_both_ends_of_all_messages_are_in_a_trace(mpi: Mpi, folder: Path) -> None:
    words = [str(folder / "trials"), "calls"]
    alone = run(mpi, 2, words, folder / "ends", None)
    check = check_trace(mpi, words, alone, folder / "ends-traced").check
    assert (check.unmatched, check.mismatched, check.doubts) == (0, 0, ())
    assert check.messages > 0


def test_messages_to_spawned_processes_are_counted_and_named(mpi: Mpi, folder: Path) -> None:
    words = [str(folder / "trials"), "spawn"]
    alone = run(mpi, 2, words, folder / "spawn", None)
    if alone.code != 3:
        pytest.skip(f"this MPI cannot start processes here: {alone.said[-200:]}")
    profile = check_profile(alone, profiled(mpi, words, folder / "spawn-profiled"))
    assert any("1200 B went to processes of other jobs" in note for note in profile.notes)
    assert api.show_profile(profile.folder).summary.nodes[0].bytes_inside >= 1200


def test_a_program_that_opens_its_mpi_is_recorded_as_one_that_is_linked_with_it(
    mpi: Mpi, folder: Path
) -> None:
    words = [str(folder / "opened"), libmpi(folder / "trials")]
    alone = run(mpi, 2, words, folder / "opened-alone", None)
    assert alone.code == 3, alone.said
    check_profile(alone, profiled(mpi, words, folder / "opened-profiled"))
    check = check_trace(mpi, words, alone, folder / "opened-traced").check
    assert (check.messages, check.unmatched) == (6, 0)


def test_a_program_that_looks_mpi_up_past_the_profiler_runs_as_alone(mpi: Mpi, folder: Path) -> None:
    words = [str(folder / "opened"), libmpi(folder / "trials"), "own"]
    found = profiled(mpi, words, folder / "own")
    if found.code == 8:
        pytest.skip("this C library's dlsym has another version")
    assert (found.code, [one.sent for one in counted(found.said)]) == (3, [1200, 1200]), found.said
    with pytest.raises(UsageError, match="holds no profile"):
        read_profile(found.folder)


def test_a_copy_of_the_programs_mpi_that_it_opens_is_the_one_that_is_recorded(mpi: Mpi, folder: Path) -> None:
    copy = folder / "libmpi-copy.so"
    shutil.copyfile(libmpi(folder / "trials"), copy)
    words = [str(folder / "opened"), str(copy)]
    alone = run(mpi, 2, words, folder / "copied", None)
    if alone.code == 7:
        pytest.skip("the copy does not find the libraries that lie beside the original")
    check_profile(alone, profiled(mpi, words, folder / "copied-profiled"))
    check = check_trace(mpi, words, alone, folder / "copied-traced").check
    assert (check.messages, check.unmatched) == (6, 0)


def test_a_program_that_opens_its_mpi_spawns_others_as_alone(mpi: Mpi, folder: Path) -> None:
    if mpi.kind != "openmpi":
        pytest.skip("spawns without PMIx")
    words = [str(folder / "opened"), libmpi(folder / "trials"), "spawn"]
    alone = run(mpi, 2, words, folder / "spawning", None)
    if alone.code != 3:
        pytest.skip(f"this MPI cannot start processes here: {alone.said[-200:]}")
    check_trace(mpi, words, alone, folder / "spawning-traced")


@pytest.mark.parametrize("mode", ["sessions", "session-init", "init-session"])
def test_programs_with_sessions_are_recorded_with_or_without_mpi_init(
    mpi: Mpi, folder: Path, mode: str
) -> None:
    words = [str(folder / "trials"), mode]
    alone = run(mpi, 2, words, folder / mode, None)
    if alone.code == 4:
        pytest.skip("this MPI has no sessions")
    assert alone.code == (0 if mode == "sessions" else 3), alone.said
    check_profile(alone, profiled(mpi, words, folder / f"{mode}-profiled"))
    checked = check_trace(mpi, words, alone, folder / f"{mode}-traced")
    messages = sum(one.calls["MPI_Sendrecv"][0] for one in counted(alone.said))
    assert (checked.check.messages, checked.check.unmatched, checked.check.mismatched) == (messages, 0, 0)


def test_ranks_on_one_core_are_named(mpi: Mpi, folder: Path) -> None:
    core = min(os.sched_getaffinity(0))
    words = ["taskset", "-c", str(core), str(folder / "trials"), "calls"]
    notes = read_profile(profiled(mpi, words, folder / "core").folder).notes
    assert any(re.fullmatch(rf"\d+ threads of 2 ranks share core {core}", note) for note in notes), notes
