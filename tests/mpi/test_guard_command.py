"""`elbowroom guard`: the program is its own, and the receipt says what was gained."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from counted import c_wrapper
from elbowroom.guard.node import guard_of_node
from elbowroom.launch.mpi import Mpi
from traced import PATIENCE, mpi_called

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "passive",
}
CAT = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
  char line[64] = "";
  int rank;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && fgets(line, sizeof line, stdin)) printf("read %s", line);
  fflush(stdout);
  if (strcmp(words[1], "wait") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (;;) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return atoi(words[1]);
}
"""


FIXED = r"""
#include <mpi.h>
#include <omp.h>
int main(int count, char** words) {
  static volatile double sum[16];
  MPI_Init(&count, &words);
  for (int step = 0; step < 120; ++step) {
    MPI_Pcontrol(1);
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 300000; ++i) sum[8 * omp_get_thread_num()] += i;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def mpi() -> Mpi:
    return mpi_called("openmpi")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "cat.c").write_text(CAT)
    made = {}
    (folder / "fixed.c").write_text(FIXED)
    mine = [(name, folder / f"{name}.c") for name in ("cat", "fixed")]
    for name, source in (*mine, ("stencil", ROOT / "benchmarks/guard_stencil.c")):
        made[name] = str(folder / name)
        subprocess.run([c_wrapper(mpi), "-O2", "-fopenmp", "-o", made[name], source], check=True)
    return made


def launch(mpi: Mpi, ranks: int, *words: str) -> list[str]:
    return ["--", str(mpi.launcher), "-n", str(ranks), "--bind-to", "none", *words]


def guard(
    folder: Path, *words: str, stdin: str = "", **env: str
) -> tuple[subprocess.CompletedProcess[str], dict]:
    command = [sys.executable, "-m", "elbowroom", "guard", "--receipt", str(folder / "r.json"), *words]
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **ENVIRONMENT, **env},
        check=False,
    )
    path = folder / "r.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


def test_output_input_and_exit_code_are_the_program_s(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    done, receipt = guard(tmp_path, *launch(mpi, 2, programs["cat"], "7"), stdin="hello\n")
    assert done.returncode == 7
    assert done.stdout.startswith("read hello\n")
    assert (receipt["verdict"], receipt["gain"], receipt["placebo"]) == ("cannot say", None, None)
    assert (receipt["levers"], receipt["switches"], receipt["exit_code"]) == ([], 0, 7)
    assert not list(Path("/dev/shm").glob("elbow-guard-*.steps-*"))


def code_after_term(words: list[str]) -> int:
    """The exit code, as a shell has it, of a program that gets SIGTERM once it has begun."""
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"read x\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    return 128 - process.returncode if process.returncode < 0 else process.returncode


def test_a_signal_reaches_the_program(mpi: Mpi, programs: dict[str, str]) -> None:
    words = launch(mpi, 1, programs["cat"], "wait")
    own = [sys.executable, "-m", "elbowroom", "guard"]
    assert code_after_term([*own, *words]) == code_after_term(words[1:])


def test_threads_by_phase_are_found_used_and_counted(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    """Three hundred loops of two threads that sleep at barriers take much longer than those of one."""
    words = launch(mpi, 1, programs["stencil"], "320", "256", "300", "marks")
    done, receipt = guard(tmp_path, "--levers", "threads", *words)
    assert done.returncode == 0, done.stderr
    assert "s a step" in done.stdout
    assert receipt["recognised_by"] == "marks", receipt["reasons"]
    assert receipt["steps"] > 60
    assert receipt["switches"] > 0
    if not receipt["threads"]:
        # Beside much other work loops of two threads are now and then as fast as those of one.
        assert any("threads makes any phase shorter" in reason for reason in receipt["reasons"]), receipt
        pytest.skip("what else runs here hides the gain of fewer threads")
    lever = next(one for one in receipt["levers"] if one["name"] == "threads")
    assert "1 in phase" in lever["asked"]
    rounds = {one["arm"]: one["rounds"] for one in receipt["arms"]}
    assert set(rounds) == {"placebo", "threads=by phase"}
    if not rounds["placebo"]:
        pytest.skip("beside what else runs here the program ended before a round")
    # The placebo has the numbers of the program, also in a step after one by phase.
    assert median(rounds["placebo"]) < median(rounds["threads=by phase"]) / 2
    again, resumed = guard(tmp_path, "--levers", "threads", "--resume", str(tmp_path / "r.json"), *words)
    assert again.returncode == 0
    assert resumed["threads"] == receipt["threads"]
    first, second = (
        next(len(one["rounds"]) for one in each["arms"] if one["arm"] != "placebo")
        for each in (receipt, resumed)
    )
    # Those of before are kept; a decided run adds none.
    assert second >= first
    refused, _ = guard(tmp_path, "--resume", str(tmp_path / "r.json"), "--", "true")
    assert refused.returncode == 2
    assert "is of another program" in refused.stderr


def test_numbers_of_threads_that_the_program_fixes_stay_and_are_said(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    done, receipt = guard(tmp_path, "--levers", "threads", *launch(mpi, 1, programs["fixed"]))
    assert done.returncode == 0, done.stderr
    assert receipt["threads"] == {}
    assert any("the program fixed the number of threads itself" in one for one in receipt["reasons"])


def test_observing_acts_with_nothing(mpi: Mpi, programs: dict[str, str], tmp_path: Path) -> None:
    words = launch(mpi, 2, programs["stencil"], "400", "2048", "1")
    done, receipt = guard(tmp_path, "--observe", *words)
    assert done.returncode == 0
    assert receipt["recognised_by"] == "calls"
    assert receipt["levers"] == []
    assert receipt["gain"] is None
    assert "only observed: no lever acted" in receipt["reasons"]


def test_without_a_lever_the_program_runs_on_and_the_receipt_says_so(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    words = launch(mpi, 1, programs["stencil"], "40", "64", "1", "marks")
    done, receipt = guard(tmp_path, *words)
    assert done.returncode == 0
    assert any("threads: not used, because it may change" in reason for reason in receipt["reasons"])
    assert receipt["chosen"] == "off"


def test_a_guard_in_a_guard_and_a_second_one_on_the_node_run_the_program_untouched(tmp_path: Path) -> None:
    words = ["--", "sh", "-c", "echo out; exit 3"]
    done, receipt = guard(tmp_path, *words, ELBOW_GUARD="/dev/shm/elbow-guard-x")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert any("only the outer one acts" in reason for reason in receipt["reasons"])
    with guard_of_node({}) as node:
        if node.reason is None:
            done, receipt = guard(tmp_path, *words)
            assert (done.returncode, done.stdout) == (3, "out\n")
            assert any("another guard runs on this node" in one for one in receipt["reasons"])


def guarded_ranks(mpi: Mpi, folder: Path, *words: str, before: tuple[str, ...] = ()) -> list[dict]:
    """The receipts of a job of two ranks whose launcher starts a guard for each."""
    own = [sys.executable, "-m", "elbowroom", "guard", "--observe", "--receipt", str(folder / "r.json"), "--"]
    command = [str(mpi.launcher), "-n", "2", "--bind-to", "none", "--mca", "btl", "self,tcp", *before, *own]
    done = subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **ENVIRONMENT},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    receipts = [json.loads(path.read_text()) for path in sorted(folder.glob("r*.json"))]
    assert done.stderr.count("Node ") == len(receipts)
    return receipts


def test_where_a_launcher_starts_a_guard_for_each_rank_one_on_the_node_acts_for_all(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    receipts = guarded_ranks(mpi, tmp_path, programs["stencil"], "40", "64", "1", "marks")
    assert len(receipts) == 1, receipts
    (receipt,) = receipts
    assert (receipt["ranks"], receipt["first_rank"], receipt["recognised_by"]) == (2, 0, "marks")


def test_each_node_of_a_job_has_its_guard_and_its_receipt(
    mpi: Mpi, programs: dict[str, str], tmp_path: Path
) -> None:
    node = 'mount -t tmpfs node /dev/shm && hostname "node$PMIX_RANK" && exec "$0" "$@"'
    before = ("unshare", "--mount", "--uts", "sh", "-c", node)
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a node needs a mount namespace of its own, which only root can make")
    words = (programs["stencil"], "40", "64", "1", "marks")
    second, first = guarded_ranks(mpi, tmp_path, *words, before=before)
    assert [one["host"] for one in (first, second)] == ["node0", "node1"]
    assert [one["first_rank"] for one in (first, second)] == [0, 1]
    assert (first["ranks"], second["ranks"]) == (1, 1)
    assert (tmp_path / "r-rank1.json").exists()
    assert [(one["host"], one["first_rank"]) for one in first["nodes"]] == [("node0", 0), ("node1", 1)]


def test_a_program_without_mpi_runs_untouched(tmp_path: Path) -> None:
    done, receipt = guard(tmp_path, "--", "sh", "-c", "cat; exit 4", stdin="in\n")
    assert (done.returncode, done.stdout) == (4, "in\n")
    assert receipt["verdict"] == "cannot say"
    assert receipt["reasons"]


def test_what_a_user_can_correct_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    for words, sentence in (
        (["--", "./none"], "is not found"),
        (["--levers", "thread", "--", "true"], "no such lever"),
        (["--observe", "--levers", "threads", "--", "true"], "which uses none"),
        (["--resume", str(tmp_path / "none"), "--", "true"], "none"),
        ([], "no command is given"),
    ):
        done, _ = guard(tmp_path, *words)
        assert done.returncode == 2, words
        assert sentence in done.stderr


def test_restore_restores_what_a_killed_guard_left() -> None:
    path = Path("/dev/shm") / f"elbow-guard-test-{os.getpid()}"
    path.write_text("changed")
    journal = Path(f"{path}.changes")
    entry = {"kind": "file", "where": str(path), "before": "before", "started": ""}
    journal.write_text(json.dumps(entry) + "\n")
    try:
        command = [sys.executable, "-m", "elbowroom", "guard", "--restore"]
        assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 0
        assert path.read_text() == "before"
        assert not journal.exists()
    finally:
        path.unlink()
        journal.unlink(missing_ok=True)
