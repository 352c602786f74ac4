"""What libelbow_profile_mpi.so records of programs in C and Fortran, against what an independent counter says
and what the programs say they did; how processes end and what their profiles are then.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from counted import build_counter, c_wrapper, read_counts
from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.profile.rank_file import (
    BARRIER,
    BETWEEN,
    CALL,
    COLLECTIVE,
    MARK,
    OPEN,
    POSTED_RECEIVE,
    POSTED_SEND,
    RECEIVE,
    SEND,
    SENDRECV,
    SPAN,
    RankFile,
    read_rank,
)
from traced import MPIS, Ran, mpi_called, run

HERE = Path(__file__).parent
RANKS = 4
PATTERNS = ["cg", "ft", "lu", "mg", "is", "ep", "lulesh", "rma", "persistent", "inter"]

ENDS = """
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, x = 0, y = 0;
  const char* mode = argc > 1 ? argv[1] : "";
  MPI_Request open;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Pcontrol(3);
  for (int i = 0; i < 50; i++) {
    if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Sendrecv(&x, 1, MPI_INT, 1 - rank, 4, &y, 1, MPI_INT, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (strcmp(mode, "kill") == 0 && rank == 1) raise(9);
  if (strcmp(mode, "exit") == 0) { MPI_Barrier(MPI_COMM_WORLD); _exit(7); }
  if (strcmp(mode, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      MPI_Comm_rank(MPI_COMM_WORLD, &x);
      _exit(x == rank ? 5 : 6);
    }
    int status;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) != 5) abort();
  }
  if (strcmp(mode, "exec") == 0 && rank == 0 && system(argv[2]) != 0) abort();
  if (strcmp(mode, "open") == 0) MPI_Isend(&x, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &open);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(mode, "open") == 0) MPI_Recv(&y, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) printf("sum %d\\n", x + y);
  MPI_Finalize();
  return strcmp(mode, "code") == 0 ? 9 : 0;
}
"""


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    """Holds the programs and the counter for this MPI."""
    made = tmp_path_factory.mktemp("profiles")
    (made / "ends.c").write_text("#include <signal.h>\n" + ENDS)
    for source in (HERE / "patterns.c", HERE / "jobs.c", made / "ends.c"):
        words = [c_wrapper(mpi), "-w", "-O1", "-o", made / source.stem, source, "-lpthread"]
        subprocess.run(words, check=True)
    build_counter(mpi, made)
    return made


def library(mpi: Mpi) -> Path:
    return build.trace_libraries(mpi) / "libelbow_profile_mpi.so"


def profiled(mpi: Mpi, ranks: int, words: list[str], where: Path, *settings: str, before: str = "") -> Ran:
    """A program with the profiler and, in front of it, what is preloaded `before`."""
    profile = where.with_name(f"{where.name}-profile")
    profile.mkdir()
    preload = f"{before}:{library(mpi)}" if before else str(library(mpi))
    told = [f"LD_PRELOAD={preload}", f"ELBOW_PROFILE_DIRECTORY={profile}", *settings]
    ran = run(mpi, ranks, ["env", *told, *words], where, None)
    return Ran(ran.code, ran.said, profile)


def ranks_in(folder: Path) -> list[RankFile]:
    return [read_rank(path) for path in sorted(folder.glob("rank-*.profile"))]


def calls_of(rank: RankFile) -> Counter[str]:
    return Counter({kind.name: kind.count for kind in rank.call_kinds if kind.count})


def posted(rank: RankFile) -> tuple[int, int]:
    """Messages and bytes that a process sent to others and itself, by its records."""
    records = rank.records
    sends = records[np.isin(records["kind"], (SEND, SENDRECV, POSTED_SEND)) & (records["peer"] >= 0)]
    return len(sends), int(sends["bytes"].sum())


def received(rank: RankFile) -> tuple[int, int]:
    records = rank.records
    came = records[np.isin(records["kind"], (RECEIVE, POSTED_RECEIVE)) & (records["peer"] >= 0)]
    return len(came), int(came["bytes"].sum())


def counted(mpi: Mpi, folder: Path, name: str, patterns: list[str]) -> tuple[Ran, Ran, Path]:
    """The program alone, and profiled behind the counter."""
    words = [str(folder / "patterns"), *patterns]
    alone = run(mpi, RANKS, words, folder / f"{name}-alone", None)
    counts = folder / f"{name}-counts"
    counts.mkdir()
    found = profiled(
        mpi, RANKS, words, folder / name, f"PMPI_COUNTER={counts}", before=str(folder / "libcounter.so")
    )
    return alone, found, counts


def check_counts(found: Ran, counts: Path) -> None:
    ranks = ranks_in(found.folder)
    assert [rank.rank for rank in ranks] == list(range(RANKS)), found.said
    for rank, count in zip(ranks, read_counts(counts), strict=True):
        assert {name: calls_of(rank)[name] for name in count.calls} == count.calls
        assert posted(rank) == (count.messages, count.bytes)
        windows = rank.windows
        assert int(windows["messages"].sum()) == count.messages
        assert int(windows["calls"].sum()) == rank.calls
        assert int(windows["mpi_ns"].sum()) == rank.mpi_ns
    sent, came = (np.sum([which(rank) for rank in ranks], axis=0) for which in (posted, received))
    assert tuple(sent) == tuple(came)


@pytest.fixture(scope="module")
def patterns(mpi: Mpi, folder: Path) -> tuple[Ran, Ran, Path]:
    return counted(mpi, folder, "all", PATTERNS)


def checksums(ran: Ran) -> list[str]:
    return re.findall(r"^[a-z]+ -?\d+$", ran.said, re.MULTILINE)


def test_a_profiled_program_prints_and_exits_as_it_does_alone(patterns: tuple[Ran, Ran, Path]) -> None:
    alone, found, _ = patterns
    assert (alone.code, checksums(alone)) == (found.code, checksums(found)), found.said
    assert len(checksums(found)) == len(PATTERNS)


def test_calls_messages_and_bytes_are_those_that_were_counted(patterns: tuple[Ran, Ran, Path]) -> None:
    _, found, counts = patterns
    check_counts(found, counts)


def test_records_of_calls_lie_in_the_time_of_the_profile(patterns: tuple[Ran, Ran, Path]) -> None:
    for rank in ranks_in(patterns[1].folder):
        assert rank.end_ns is not None
        records = rank.records
        assert (records["end"] >= records["begin"]).all()
        assert (records["begin"] >= rank.start_ns).all()
        assert (records["end"] <= rank.end_ns + 1_000_000).all()
        assert ((records["flags"] & CALL > 0) | (records["kind"] == MARK) | (records["flags"] & SPAN > 0)
                | (records["kind"] == RECEIVE)).all()  # fmt: skip


def test_threads_that_share_handles_are_counted_right(mpi: Mpi, folder: Path) -> None:
    alone, found, counts = counted(mpi, folder, "several", ["threads"])
    if alone.code != 0:
        pytest.skip(f"{mpi.name}: threads do not work there, also alone: {alone.said[-300:]}")
    assert (found.code, checksums(found)) == (alone.code, checksums(alone)), found.said
    check_counts(found, counts)


def test_one_host_is_one_node(patterns: tuple[Ran, Ran, Path]) -> None:
    for rank in ranks_in(patterns[1].folder):
        assert (rank.node, rank.nodes, rank.local_rank, rank.local_size) == (0, 1, rank.rank, RANKS)
        assert not (rank.records["flags"] & BETWEEN).any()


def test_emulated_nodes_divide_messages_into_inside_and_between(mpi: Mpi, folder: Path) -> None:
    words = [str(folder / "patterns"), "cg"]
    found = profiled(mpi, RANKS, words, folder / "nodes", "ELBOW_NIC_RANKS_PER_NODE=2")
    for rank in ranks_in(found.folder):
        assert list(rank.nodes_of) == [0, 0, 1, 1]
        records = rank.records
        sends = records[(records["kind"] == SEND) & (records["peer"] >= 0)]
        between = rank.nodes_of[sends["peer"]] != rank.node
        assert ((sends["flags"] & BETWEEN) > 0).tolist() == between.tolist()
        assert 0 < between.sum() < len(between)
        collectives = records[records["kind"] == COLLECTIVE]
        assert len(collectives) > 0
        assert ((collectives["flags"] & BETWEEN) > 0).all()
        inside, outside = (int(rank.windows[name].sum()) for name in ("sent_inside", "sent_between"))
        assert inside == int(sends["bytes"][~between].sum())
        assert outside == int(sends["bytes"][between].sum()) + int(collectives["bytes"].sum())


def ended(mpi: Mpi, folder: Path, mode: str, *more: str) -> Ran:
    return profiled(mpi, 2, [str(folder / "ends"), mode, *more], folder / f"ends-{mode}")


def test_marks_halves_and_sizes_of_communicators_are_records(mpi: Mpi, folder: Path) -> None:
    ranks = ranks_in(ended(mpi, folder, "plain").folder)
    for rank in ranks:
        records = rank.records
        assert records["bytes"][records["kind"] == MARK].tolist() == [3]
        exchanged = records[records["kind"] == SENDRECV]
        assert (exchanged["peer"].tolist(), exchanged["bytes"].tolist()) == ([1 - rank.rank], [4])
        assert records["peer"][records["kind"] == BARRIER].tolist() == [-3]
    came = ranks[1].records[ranks[1].records["kind"] == RECEIVE]
    assert came["peer"].tolist() == [0] * 51
    assert came["bytes"].tolist() == [4] * 51


def test_an_operation_that_never_completes_is_told_as_open(mpi: Mpi, folder: Path) -> None:
    found = ended(mpi, folder, "open")
    assert found.code == 0, found.said
    for rank in ranks_in(found.folder):
        pending = rank.records[rank.records["kind"] == POSTED_SEND]
        assert ((pending["flags"] & (SPAN | OPEN)) == SPAN | OPEN).tolist() == [True]
        assert pending["bytes"].tolist() == [4]


def test_a_process_that_is_killed_keeps_its_records(mpi: Mpi, folder: Path) -> None:
    found = ended(mpi, folder, "kill")
    assert found.code != 0
    ranks = ranks_in(found.folder)
    assert [rank.end_ns for rank in ranks] == [None, None]
    assert calls_of(ranks[1])["MPI_Recv"] == 50
    assert np.count_nonzero(ranks[1].records["kind"] == RECEIVE) == 51


def test_a_process_that_leaves_without_finalizing_keeps_its_records_and_exit_code(
    mpi: Mpi, folder: Path
) -> None:
    alone = run(mpi, 2, [str(folder / "ends"), "exit"], folder / "exit-alone", None)
    found = ended(mpi, folder, "exit")
    assert found.code == alone.code
    assert [rank.end_ns for rank in ranks_in(found.folder)] == [None, None]


def test_a_forked_child_writes_nothing(mpi: Mpi, folder: Path) -> None:
    found = ended(mpi, folder, "fork")
    assert found.code == 0, found.said
    for rank in ranks_in(found.folder):
        assert calls_of(rank)["MPI_Comm_rank"] == 1


def test_a_program_that_a_rank_starts_leaves_the_profile_alone(mpi: Mpi, folder: Path) -> None:
    # A program of another rank's, or an MPI program that no launcher started.
    inner = f"env -i PATH=/usr/bin:/bin LD_PRELOAD={library(mpi)} ELBOW_PROFILE_DIRECTORY={{}} {{}}"
    target = folder / "ends-exec-profile"
    found = ended(mpi, folder, "exec", inner.format(target, folder / "jobs") + " 0 > /dev/null 2>&1 || true")
    assert found.code == 0, found.said
    assert [calls_of(rank)["MPI_Sendrecv"] for rank in ranks_in(found.folder)] == [1, 1]


def test_spawned_processes_leave_the_profile_of_their_parents_alone(mpi: Mpi, folder: Path) -> None:
    found = profiled(mpi, 2, [str(folder / "jobs"), "5", "spawn"], folder / "spawn")
    if found.code != 0:
        pytest.skip(f"{mpi.name} cannot spawn here: {found.said[-200:]}")
    ranks = ranks_in(found.folder)
    assert [(rank.rank, calls_of(rank)["MPI_Comm_spawn"]) for rank in ranks] == [(0, 1), (1, 1)]


def test_the_exit_code_is_the_programs(mpi: Mpi, folder: Path) -> None:
    alone = run(mpi, 2, [str(folder / "ends"), "code"], folder / "code-alone", None)
    found = ended(mpi, folder, "code")
    assert found.code == alone.code == 9
    assert "sum 0" in found.said


def test_a_folder_that_cannot_be_written_leaves_the_program_unprofiled(mpi: Mpi, folder: Path) -> None:
    told = [f"LD_PRELOAD={library(mpi)}", f"ELBOW_PROFILE_DIRECTORY={folder}/missing"]
    found = run(mpi, 2, ["env", *told, str(folder / "ends"), "plain"], folder / "unwritable", None)
    assert found.code == 0
    assert "sum 0" in found.said
    assert found.said.count("elbowroom:") == 1
    assert "the program is not profiled: " in found.said
    assert "the file cannot be made (No such file or directory)" in found.said


@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_fortran_is_profiled(name: str, tmp_path: Path) -> None:
    mpi = mpi_called(name)
    wrapper = shutil.which(f"mpif90.{name}")
    if wrapper is None:
        pytest.skip(f"there is no mpif90.{name} here (gfortran and lib{name}-dev)")
    program = tmp_path / "fortran"
    command = [wrapper, "-J", tmp_path, "-o", program, HERE / "trace_mpi.f90"]
    subprocess.run(command, check=True, capture_output=True)
    found = profiled(mpi, 2, [str(program)], tmp_path / "run")
    assert found.code == 0, found.said
    assert found.said.split().count("right") == 2
    ranks = ranks_in(found.folder)
    assert sum(posted(rank)[0] for rank in ranks) == 8
    assert [calls_of(rank)["MPI_Allreduce"] for rank in ranks] == [2, 2]
    for rank in ranks:
        sums = rank.records[rank.records["kind"] == COLLECTIVE]["bytes"].tolist()
        assert 12 in sums


def words_of(mpi: Mpi, *program: str) -> list[str]:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return [mpi.launcher, *more, "-n", "2", *program]


def test_the_command_writes_a_profile_and_keeps_the_exit_code(
    mpi: Mpi, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = folder / "command"
    assert cli.run(["profile", "-o", str(where), "--", *words_of(mpi, str(folder / "ends"), "code")]) == 9
    assert capfd.readouterr().out.split() == ["sum", "0"]
    manifest = json.loads((where / "profile.json").read_text())
    assert manifest["exit_code"] == 9
    assert manifest["command"][-2:] == [str(folder / "ends"), "code"]
    assert manifest["mpi"] == mpi.name
    assert [rank.rank for rank in ranks_in(where)] == [0, 1]


def test_the_command_labels_a_killed_program_as_partial(mpi: Mpi, folder: Path) -> None:
    words = words_of(mpi, str(folder / "ends"), "kill")
    found = api.record_profile(words, folder / "killed", stdout=subprocess.DEVNULL).document
    assert found.exit_code != 0
    assert found.partial == (0, 1)
    assert any("never called MPI_Finalize" in note for note in found.notes)


def test_what_cannot_be_profiled_is_refused_before_it_runs(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="starts no MPI launcher"):
        api.record_profile(["true"], tmp_path / "p")
    other = "mpich" if mpi.kind == "openmpi" else "openmpi"
    mpi_called(other)
    with pytest.raises(UsageError, match="is linked with"):
        api.record_profile(words_of(mpi, str(folder / "ends")), tmp_path / "p", mpi=other)
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", tmp_path / "static", source], check=True)
    with pytest.raises(UsageError, match="is linked statically"):
        api.record_profile(words_of(mpi, str(tmp_path / "static")), tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_program_without_mpi_behind_a_launcher_is_said_to_leave_nothing(mpi: Mpi, tmp_path: Path) -> None:
    found = api.record_profile(words_of(mpi, "true"), tmp_path / "p").document
    assert (found.exit_code, found.ranks) == (0, 0)
    assert "No process left a profile" in found.notes[0]
