"""What libelbow_trace_mpi.so records of programs in C and Fortran, against what they say they did."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from counted import c_wrapper
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from trace_rings import BEGIN, END, Event, Recorded
from traced import MPIS, PMPI, RECEIVE, SEND, End, Ran, ends, interposer, mpi_called, run

HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def program(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("program") / "trace_mpi"
    compiler = Path(mpi.compiler)
    wrapper = compiler.with_name(compiler.name.replace("mpicxx", "mpicc"))
    subprocess.run(
        [wrapper, "-w", "-o", made, HERE / "trace_mpi.c", "-lpthread"], check=True, capture_output=True
    )
    return made


@pytest.fixture(scope="module")
def ran(mpi: Mpi, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The program, traced; it checks its own results."""
    folder = tmp_path_factory.mktemp("ran") / "run"
    found = run(mpi, 3, [str(program), str(folder)], folder, interposer(mpi))
    assert found.code == 0, found.said
    return found


def test_every_call_is_recorded_once_with_its_begin_and_end(ran: Ran) -> None:
    for rank in range(3):
        recorded = ran.recorded(rank)
        did = Counter(line[1] for line in ran.ledger(rank) if line[0] == "call")
        calls = [event for event in recorded.events if event.category in ("mpi", "poll")]
        assert Counter(event.type for event in calls if event.kind == BEGIN) == did
        assert Counter(event.type for event in calls if event.kind == END) == did


def test_every_message_has_two_ends_of_one_number(ran: Ran) -> None:
    sent = [end for rank in range(3) for end in ends(ran.recorded(rank), rank, SEND)]
    received = [end for rank in range(3) for end in ends(ran.recorded(rank), rank, RECEIVE)]
    assert len(set(sent)) == len(sent)
    assert sorted(sent) == sorted(received)


def test_a_receive_has_the_number_of_the_message_that_it_got(ran: Ran) -> None:
    who: dict[End, str] = {}
    for rank in range(3):
        for end, (_, number, peer, tag, size) in _told(ran, rank, "sent", SEND):
            assert (end.destination, end.tag, end.bytes) == (int(peer), int(tag), int(size))
            who[end] = number
    got = 0
    for rank in range(3):
        for end, (_, number, peer, tag, size) in _told(ran, rank, "got", RECEIVE):
            assert (end.source, end.tag, end.bytes) == (int(peer), int(tag), int(size))
            assert who[end] == number
            got += 1
    assert got == len(who) > 100


def _told(ran: Ran, rank: int, word: str, kind: int) -> Iterator[tuple[End, list[str]]]:
    """Ends of messages beside the ledger's lines: of each tag in order, as threads have their own tags."""
    events: dict[int, list[End]] = defaultdict(list)
    lines: dict[int, list[list[str]]] = defaultdict(list)
    for end in ends(ran.recorded(rank), rank, kind):
        events[end.tag].append(end)
    for line in ran.ledger(rank):
        if line[0] == word:
            lines[int(line[3])].append(line)
    assert set(events) == set(lines)
    for tag, found in events.items():
        yield from zip(found, lines[tag], strict=True)


def test_messages_of_different_communicators_are_told_apart(ran: Ran) -> None:
    sent = [end for rank in range(3) for end in ends(ran.recorded(rank), rank, SEND)]
    numbers = {end.communicator for end in sent if end.tag == 50}
    assert len(numbers) == 6
    assert 0 not in numbers


def test_calls_say_whom_they_concern_and_how_many_bytes(ran: Ran) -> None:
    recorded = ran.recorded(1)
    puts = [(event.small, event.first) for event in recorded.of("MPI_Put", BEGIN)]
    assert puts == [(2, 4)]
    roots = [(event.small, event.first) for event in recorded.of("MPI_Bcast", BEGIN)]
    assert roots == [(0, 12)]
    in_place = [event.first for event in recorded.of("MPI_Allgather", BEGIN)]
    assert in_place == [4]
    assert [event.first for event in ran.recorded(2).of("MPI_Gather", BEGIN)] == [4]


def test_the_region_of_interest_and_the_clocks_are_recorded(ran: Ran) -> None:
    for rank in range(3):
        lines = (ran.folder / "trace" / f"rank-{rank:05}.jsonl").read_text().splitlines()
        assert sum(json.loads(line)["record"] == "sync" for line in lines) >= 2
        regions = [event.small for event in ran.recorded(rank).events if event.type == "region of interest"]
        assert regions == [1, 0]


def test_threads_record_beside_each_other(ran: Ran) -> None:
    threads = Counter(event.thread for event in ran.recorded(0).of("MPI_Send", BEGIN))
    if len(ran.recorded(0).threads) < 2:
        pytest.skip("this MPI does not grant MPI_THREAD_MULTIPLE")
    assert ran.recorded(0).threads[0] == "MPI main"
    assert min(threads.values()) >= 50


def test_without_a_directory_nothing_is_recorded(
    mpi: Mpi, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ELBOW_TRACE_DIRECTORY", raising=False)
    monkeypatch.setenv("LD_PRELOAD", str(interposer(mpi)))
    found = run(mpi, 3, [str(program), str(tmp_path / "run")], tmp_path / "run", None)
    assert found.code == 0, found.said
    assert not (tmp_path / "run" / "trace").exists()


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_what_was_recorded_before_a_process_died_is_still_there(how: str, tmp_path: Path) -> None:
    mpi = mpi_called("embedded")
    program = tmp_path / "trace_mpi"
    wrapper = Path(mpi.compiler).with_name("mpicc")
    subprocess.run([wrapper, "-w", "-o", program, HERE / "trace_mpi.c"], check=True, capture_output=True)
    folder = tmp_path / "run"
    found = run(mpi, 3, [str(program), str(folder), how], folder, interposer(mpi))
    assert found.code != 0
    first = json.loads((folder / "trace" / "rank-00001.jsonl").read_text().splitlines()[0])
    memory = Path(first["memory"])
    try:
        said = subprocess.run(
            [build.trace_reader(), "check", folder / "trace"], capture_output=True, text=True, check=False
        )
        check = json.loads(said.stdout)
        assert 1 in check["killed"]
        did = sum(line[0] == "call" for line in Ran(0, "", folder).ledger(1))
        assert check["events"] > 2 * did
    finally:
        for path in memory.parent.glob(re.sub(r"rank-\d+-\d+$", "rank-*", memory.name)):
            if json_of_run(path, folder):
                shutil.rmtree(path)


def json_of_run(path: Path, folder: Path) -> bool:
    """Whether a folder in memory belongs to the trace of this run."""
    return any(str(path) in file.read_text().splitlines()[0] for file in (folder / "trace").glob("*.jsonl"))


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_fortran_is_recorded_and_gets_what_it_would_get(name: str, tmp_path: Path) -> None:
    mpi = mpi_called(name)
    wrapper = shutil.which(f"mpif90.{name}")
    if wrapper is None:
        pytest.skip(f"there is no mpif90.{name} here (gfortran and lib{name}-dev)")
    program = tmp_path / "fortran"
    command = [wrapper, "-J", tmp_path, "-o", program, HERE / "trace_mpi.f90"]
    subprocess.run(command, check=True, capture_output=True)
    found = run(mpi, 2, [str(program)], tmp_path / "run", interposer(mpi))
    assert found.code == 0, found.said
    assert found.said.split().count("right") == 2
    sent = [end for rank in range(2) for end in ends(found.recorded(rank), rank, SEND)]
    received = [end for rank in range(2) for end in ends(found.recorded(rank), rank, RECEIVE)]
    assert len(sent) == 8
    assert sorted(sent) == sorted(received)
    for rank in range(2):
        calls = Counter(event.type for event in found.recorded(rank).events if event.kind == BEGIN)
        expected = _FORTRAN + (_FORTRAN_0 if rank == 0 else _FORTRAN_1)
        assert {name: count for name, count in calls.items() if name.startswith("MPI_")} == expected
        assert [event.first for event in _of(found.recorded(rank), "MPI_Allreduce")] == [12, 4]


def _of(recorded: Recorded, name: str) -> list[Event]:
    return recorded.of(name, BEGIN)


def test_the_build_of_an_interposer_takes_a_recorder_that_is_there(tmp_path: Path) -> None:
    mpi = mpi_called("embedded")
    words = ["cmake", "-S", PMPI, "-B", tmp_path, "-G", "Ninja", f"-DMPI_CXX_COMPILER={mpi.compiler}"]
    words += [f"-DELBOW_TRACE_FOLDER={build.trace_libraries(mpi)}"]
    subprocess.run(words, check=True, capture_output=True)
    planned = subprocess.run(
        ["ninja", "-C", tmp_path, "-n"], check=True, capture_output=True, text=True
    ).stdout
    assert "libelbow_trace_mpi.so" in planned
    assert "libelbow_trace.so" not in planned
    assert "libelbow_clock.so" not in planned


def test_a_large_count_of_fortran_is_recorded_whole(tmp_path: Path) -> None:
    mpi = mpi_called("mpich")
    wrapper, source = c_wrapper(mpi), HERE / "large_f08.c"
    stub = tmp_path / "libstub.so"
    subprocess.run([wrapper, "-w", "-DSTUB", "-shared", "-fPIC", "-o", stub, source], check=True)
    program = [wrapper, "-w", "-o", tmp_path / "large", source, stub, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(program, check=True)
    found = run(mpi, 1, [str(tmp_path / "large")], tmp_path / "run", interposer(mpi))
    assert found.code == 0, found.said
    assert [event.first for event in found.recorded(0).of("MPI_Send_c", BEGIN)] == [8 * ((1 << 32) + 8)]


_FORTRAN = Counter(
    MPI_Init=1, MPI_Comm_rank=3, MPI_Comm_size=1, MPI_Get_processor_name=1, MPI_Send=2, MPI_Recv=1,
    MPI_Irecv=2, MPI_Isend=1, MPI_Waitall=1, MPI_Allreduce=2, MPI_Gather=1, MPI_Comm_dup=1,
    MPI_Comm_set_name=1,
    MPI_Waitany=1, MPI_Comm_free=1, MPI_Barrier=1, MPI_Wait=1, MPI_Finalize=1,
)  # fmt: skip
_FORTRAN_0 = Counter(MPI_Send=1, MPI_Isend=1)
_FORTRAN_1 = Counter(MPI_Recv=1, MPI_Irecv=1, MPI_Iprobe=1)


def test_every_function_of_the_library_is_recorded_or_said_why_not(mpi: Mpi) -> None:
    words = [sys.executable, "-B", str(PMPI / "coverage.py"), "--wrapper", mpi.compiler]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    states = json.loads(done.stdout)
    assert states["MPI_Send"] == "detail"
    assert states["MPI_Comm_rank"] == "call"
    assert states["MPI_Wtime"].startswith("passed: ")


def test_a_function_that_nobody_knows_is_named(mpi: Mpi) -> None:
    words = [sys.executable, "-B", str(PMPI / "coverage.py"), "--wrapper", mpi.compiler]
    words += ["--symbol", "MPI_Quantum_send"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MPI_Quantum_send" in done.stderr
