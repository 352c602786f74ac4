"""Profiled and traced programs with unusual errors, requests, tags, children and libraries: their output and
exit code stay the same, and their calls are recorded. tests/mpi/unchanged.cpp prints what it called.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from counted import c_wrapper
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.profile.profile import read_profile
from elbowroom.profile.rank_file import OPEN, POSTED_RECEIVE, RankFile, read_rank
from trace_rings import BEGIN, read_rings
from traced import MPIS, PATIENCE, RECEIVE, SEND, ends, mpi_called

HERE = Path(__file__).parent
Tool = Literal["profile", "trace"]
TOOLS: tuple[Tool, ...] = ("profile", "trace")


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("unchanged") / "unchanged"
    words = [mpi.compiler, "-w", "-O1", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-o", made]
    subprocess.run([*words, HERE / "unchanged.cpp"], check=True, capture_output=True)
    return str(made)


def launch(mpi: Mpi, *parts: list[str]) -> subprocess.CompletedProcess[str]:
    """Parts of a job: the number of ranks, then the command."""
    words: list[str] = []
    for part in parts:
        words += [":"] * bool(words) + ["-n", *part]
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    command = [mpi.launcher, *more, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def with_tool(mpi: Mpi, tool: Tool, into: Path) -> list[str]:
    """What comes before a command to record it into a folder."""
    into.mkdir(exist_ok=True)
    library = build.trace_libraries(mpi) / f"libelbow_{tool}_mpi.so"
    settings = [f"ELBOW_{tool.upper()}_DIRECTORY={into}"]
    if tool == "trace":
        settings += ["ELBOW_TRACE_JOB=7", "ELBOW_TRACE_CATEGORIES=mpi,message,clock"]
    return ["env", f"LD_PRELOAD={library}", *settings]


@pytest.fixture
def recorded(mpi: Mpi, program: str, tmp_path: Path) -> Callable[..., tuple[str, Path]]:
    """Runs a mode of the program with a tool: what it printed, and the folder."""

    def run(tool: Tool, *mode: str) -> tuple[str, Path]:
        into = tmp_path / tool
        done = launch(mpi, ["2", *with_tool(mpi, tool, into), program, *mode])
        assert done.returncode == 0, done.stderr
        assert "elbowroom:" not in done.stderr
        return done.stdout, into

    return run


def printed(said: str, rank: int) -> Counter[str]:
    """The calls that a rank says it made, but for those that ask, which a trace has no room for."""
    lines = re.findall(rf"^{rank} (\d+) (MPI_(?!Test)\w+)$", said, re.MULTILINE)
    return Counter({name: int(count) for count, name in lines})


def calls_in(tool: Tool, into: Path, rank: int) -> Counter[str]:
    if tool == "profile":
        found = read_rank(into / f"rank-{rank:06}.profile")
        return Counter({kind.name: kind.count for kind in found.call_kinds})
    begun = [event.type for event in read_rings(into, rank).events if event.kind == BEGIN]
    return Counter(begun)


def check_calls(tool: Tool, said: str, into: Path) -> None:
    for rank in range(2):
        called, found = printed(said, rank), calls_in(tool, into, rank)
        assert called
        found["MPI_Barrier"] -= 1  # before the end
        assert {name: found[name] for name in called} == called


def messages_in(into: Path) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """Of a trace: the ends of messages that were sent, and of those that were received."""
    recorded = [read_rings(into, rank) for rank in range(2)]
    sent, came = (
        Counter(tuple(end) for rank, one in enumerate(recorded) for end in ends(one, rank, kind))
        for kind in (SEND, RECEIVE)
    )
    return sent, came


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("mode", ["throw", "jump"])
def test_calls_are_recorded_after_an_error_handler_left_one(
    mode: str, tool: Tool, recorded: Callable[..., tuple[str, Path]]
) -> None:
    said, into = recorded(tool, mode)
    check_calls(tool, said, into)


def test_a_message_whose_neighbour_failed_is_received(recorded: Callable[..., tuple[str, Path]]) -> None:
    said, into = recorded("trace", "truncate")
    check_calls("trace", said, into)
    sent, came = messages_in(into)
    too_long = 8  # the tag of messages that their receives have no room for
    whole = Counter({end: count for end, count in sent.items() if end[3] != too_long})
    assert sorted(end[4] for end in whole if end[3] == 9) == [1, 1, 2, 2, 3, 3]
    assert came == whole


@pytest.mark.parametrize("tool", TOOLS)
def test_every_way_to_complete_requests_tells_each_message_once(
    tool: Tool, recorded: Callable[..., tuple[str, Path]]
) -> None:
    said, into = recorded(tool, "ways")
    check_calls(tool, said, into)
    if tool == "trace":
        sent, came = messages_in(into)
        assert sum(sent.values()) == 2 * 8 * 64
        assert sent == came
        return
    for rank in range(2):
        records = read_rank(into / f"rank-{rank:06}.profile").records
        came = records[records["kind"] == POSTED_RECEIVE]
        assert (came["peer"] == 1 - rank).all()
        assert (len(came), int(came["bytes"].sum())) == (8 * 64, 8 * 64 * 4)


@pytest.mark.parametrize("tool", TOOLS)
def test_programs_without_mpi_that_a_rank_starts_load_none(
    tool: Tool, recorded: Callable[..., tuple[str, Path]]
) -> None:
    said, into = recorded(tool, "child")
    assert re.findall(r"^\d child (\d+)$", said, re.MULTILINE) == ["0", "0"]
    check_calls(tool, said, into)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tag_for_each_message_takes_little_memory(
    tool: Tool, recorded: Callable[..., tuple[str, Path]]
) -> None:
    said, _ = recorded(tool, "tags", "200000")
    grown = [int(kb) for kb in re.findall(r"^\d grown (\d+)$", said, re.MULTILINE)]
    assert len(grown) == 2
    assert max(grown) < 24 << 10  # the recorder's own buffers, and some bytes a tag; 184 B a tag were 36 MB


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_fortran_in_a_library_that_only_a_plug_in_sees_is_recorded(
    name: str, tool: Tool, tmp_path: Path
) -> None:
    mpi = mpi_called(name)
    wrapper = shutil.which(f"mpif90.{name}")
    if wrapper is None:
        pytest.skip(f"there is no mpif90.{name} here (gfortran and lib{name}-dev)")
    plugin, host = tmp_path / "plugin.so", tmp_path / "host"
    words = [wrapper, "-fPIC", "-shared", "-fallow-argument-mismatch", "-J", tmp_path, "-o", plugin]
    subprocess.run([*words, HERE / "plugin.f90"], check=True, capture_output=True)
    (tmp_path / "host.c").write_text(
        "#include <dlfcn.h>\nint main(int count, char** words) {\n"
        "  void* plugin = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);\n"
        '  if (!plugin) return 9;\n  ((void (*)(void))dlsym(plugin, "run_"))();\n  return 0;\n}\n'
    )
    subprocess.run(["cc", "-w", "-o", host, tmp_path / "host.c", "-ldl"], check=True)
    plain = launch(mpi, ["2", str(host), str(plugin)])
    into = tmp_path / tool
    done = launch(mpi, ["2", *with_tool(mpi, tool, into), str(host), str(plugin)])
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    assert plain.returncode == 0
    expected = {"MPI_Irecv": 5, "MPI_Send": 5, "MPI_Wait": 5, "MPI_Allreduce": 5, "MPI_Barrier": 1}
    for rank in range(2):
        found = calls_in(tool, into, rank)
        assert {call: found[call] for call in expected} == expected
    if tool == "profile":
        for rank in range(2):
            records = read_rank(into / f"rank-{rank:06}.profile").records
            came = records[records["kind"] == POSTED_RECEIVE]
            assert came["peer"].tolist() == [1 - rank] * 5


@pytest.fixture(scope="module")
def fortran_program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> str:
    wrapper = shutil.which(f"mpif90.{mpi.kind}")
    if mpi.embedded or wrapper is None:
        pytest.skip(f"there are no Fortran bindings of {mpi.name} here (mpif90.{mpi.kind})")
    made = tmp_path_factory.mktemp("fortran") / "fortran_calls"
    source = HERE / "fortran_calls.c"
    subprocess.run(
        [c_wrapper(mpi), "-w", "-O1", "-c", "-o", f"{made}.o", source], check=True, capture_output=True
    )
    subprocess.run([wrapper, "-o", made, f"{made}.o"], check=True, capture_output=True)
    return str(made)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("mode", ["ways", "jump"])
def test_requests_and_errors_of_fortran_are_told_as_those_of_c(
    mode: str, tool: Tool, mpi: Mpi, fortran_program: str, tmp_path: Path
) -> None:
    into = tmp_path / tool
    done = launch(mpi, ["2", *with_tool(mpi, tool, into), fortran_program, mode])
    assert done.returncode == 0, done.stderr
    assert "elbowroom:" not in done.stderr
    check_calls(tool, done.stdout, into)
    messages = 40 * (9 + 3 if mode == "ways" else 2)  # fortran_calls.c
    if tool == "trace":
        sent, came = messages_in(into)
        assert sum(sent.values()) == 2 * messages
        assert sent == came
        return
    for rank in range(2):
        records = read_rank(into / f"rank-{rank:06}.profile").records
        came = records[records["kind"] == POSTED_RECEIVE]
        assert (len(came), int(came["bytes"].sum())) == (messages, 4 * messages)
        assert not (came["flags"] & OPEN).any()


def profiles_in(into: Path) -> list[RankFile]:
    return [read_rank(path) for path in sorted(into.glob("rank-*.profile"))]


LOCAL = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"]


@pytest.mark.parametrize("known", [True, False])
def test_ranks_without_the_profiler_do_not_hang_the_others(
    known: bool, mpi: Mpi, program: str, tmp_path: Path
) -> None:
    own = with_tool(mpi, "profile", tmp_path / "p")
    hidden = [] if known else [word for name in LOCAL for word in ("-u", name)]
    done = launch(
        mpi,
        ["1", own[0], *hidden, *own[1:], program, "exchange"],
        ["1", program, "exchange"],
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("elbowroom: the profile lacks rank 1:") == 1
    (rank,) = profiles_in(tmp_path / "p")
    assert printed(done.stdout, 0) == Counter({name: calls_in("profile", tmp_path / "p", 0)[name]
                                               for name in printed(done.stdout, 0)})  # fmt: skip
    # Where the launcher does not say that all ranks are on this host, the other may be on another one.
    assert rank.nodes_of.tolist() == ([0, 0] if known else [0, 1])
    profile = read_profile(tmp_path / "p")
    assert any("rank 1 of 2 ranks left no file" in note for note in profile.notes)
    assert np.array_equal(profile.nodes_of, rank.nodes_of)


def test_a_second_job_of_a_command_leaves_the_profile_of_the_first_alone(
    mpi: Mpi, program: str, tmp_path: Path
) -> None:
    own = with_tool(mpi, "profile", tmp_path / "p")
    assert launch(mpi, ["1", *own, program, "plain"]).returncode == 0
    before = [rank.pid for rank in profiles_in(tmp_path / "p")]
    done = launch(mpi, ["2", *own, program, "exchange"])
    assert done.returncode == 0
    assert done.stderr.count("elbowroom:") == 1
    assert "the folder has the profile of another job" in done.stderr
    assert [rank.pid for rank in profiles_in(tmp_path / "p")] == before
