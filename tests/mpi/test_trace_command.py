"""`elbowroom trace` from a program to its files, nothing made up: real ranks, interposer and reader."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from elbowroom import api, cli
from elbowroom.launch import build
from elbowroom.launch.mpi import find_mpi
from elbowroom.verbs.trace_record import RecordDocument

PROGRAM = """
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, x = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 50; i++) {
    if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (argc > 1 && rank == 1) raise(SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) printf("done\\n");
  return 0;
}
"""

OWN = """
#include "elbowroom/trace.h"
int main(void) {
  elbow_trace_start_from_environment();
  const elbow_trace_type* solve = elbow_trace_type_new("solve", elbow_trace_category("task"), 0, "task", 0);
  const elbow_trace_type* tick = elbow_trace_type_new("tick", elbow_trace_category("noise"), 0, 0, 0);
  for (int i = 0; i < 100; i++) {
    elbow_trace_begin(solve, 0, i, 0);
    elbow_trace_event(tick, 0, 0, 0);
    elbow_trace_end(solve, 0, i, 0);
  }
  elbow_trace_stop(0);
  return 0;
}
"""

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two ranks, 50 messages; with an argument the second is killed after them."""
    mpi, folder = find_mpi(), tmp_path_factory.mktemp("program")
    (folder / "app.c").write_text(PROGRAM)
    wrapper = Path(mpi.compiler).with_name("mpicc")
    subprocess.run([wrapper, "-o", folder / "app", folder / "app.c"], check=True)
    return [mpi.launcher, "-n", "2", "--map-by", ":OVERSUBSCRIBE", str(folder / "app")]


@pytest.fixture(scope="module")
def recorded(program: list[str], tmp_path_factory: pytest.TempPathFactory) -> RecordDocument:
    directory = tmp_path_factory.mktemp("recorded") / "t"
    return api.record_trace(program, directory, mpi="embedded", stdout=subprocess.DEVNULL)


def test_a_recorded_program_says_what_it_kept_and_what_that_took(recorded: RecordDocument) -> None:
    assert recorded.exit_code == 0
    assert recorded.adapters[0] == "mpi"
    assert recorded.check is not None
    assert recorded.stat is not None
    assert (recorded.check.messages, recorded.check.lost, recorded.check.tachyons) == (50, 0, 0)
    counts = {one.name: one.events for one in recorded.stat.types}
    assert counts["MPI_Send"] == counts["MPI_Recv"] == 100  # begun and ended
    assert all(rank.overhead_ns for rank in recorded.stat.ranks)


def test_its_trace_is_merged_into_what_people_open(recorded: RecordDocument, tmp_path: Path) -> None:
    for name in ("t.json", "t.pftrace", "t.parquet", "t.html"):
        assert cli.run(["trace", "merge", str(recorded.directory), "-o", str(tmp_path / name)]) == 0
    assert len((tmp_path / "t.pftrace").read_bytes()) > 1000
    assert "MPI_Send" in (tmp_path / "t.json").read_text()
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert recorded.check is not None
    assert rows.num_rows == recorded.check.kept


def test_clocks_of_its_ranks_are_told(recorded: RecordDocument) -> None:
    found = api.trace_sync(recorded.directory)
    assert [rank.rank for rank in found.ranks] == [0, 1]
    assert all(len(rank.points) >= 2 for rank in found.ranks)


def test_activity_of_a_recorded_program_has_its_messages_and_the_exits_of_its_barrier(
    recorded: RecordDocument, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outputs = ["-o", str(tmp_path / "a.svg"), "--tables", str(tmp_path / "tables"), "--json"]
    assert cli.run(["trace", "activity", str(recorded.directory), *outputs]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["messages"], told["tasks"], told["barriers"]["barriers"]) == (50, 0, 1)
    assert "Durations of messages" in (tmp_path / "a.svg").read_text()
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(tmp_path / "tables" / "communications.parquet").to_pylist()
    assert [(row["from_rank"], row["to_rank"], row["bytes"]) for row in rows] == [(0, 1, 4)] * 50
    assert not any(row["tachyon"] for row in rows)


@pytest.fixture(scope="module")
def compared(program: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program, recorded in the ways that are there to compare with."""
    directory = tmp_path_factory.mktemp("compared") / "t"
    words = ["--without", "MPI_Send", "--clock", "monotonic", "--policy", "flush", "--buffer", "2KiB"]
    assert (
        cli.run(["trace", "record", "-o", str(directory), "--mpi", "embedded", *words, "--", *program]) == 0
    )
    return directory


def test_types_that_are_left_out_have_no_events(compared: Path) -> None:
    counts = {one.name: one.events for one in api.trace_stat(compared).types}
    assert counts.get("MPI_Send", 0) == 0
    assert counts["MPI_Recv"] == 100
    assert api.check_trace(compared).check.messages == 50


def test_rings_that_are_flushed_lose_nothing_and_show_when(compared: Path) -> None:
    checked = api.check_trace(compared)
    assert (checked.check.lost, checked.check.damage) == (0, ())
    counts = {one.name: one.events for one in api.trace_stat(compared).types}
    assert counts["flush"] >= 2  # begun and ended


def test_the_clock_that_ntp_steers_is_compared_once_and_named(compared: Path) -> None:
    clocks = api.trace_sync(compared)
    assert [len(rank.points) for rank in clocks.ranks] == [1, 1]
    assert any("CLOCK_MONOTONIC" in warning for warning in clocks.warnings)


def test_a_killed_ranks_events_are_recovered(
    program: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["trace", "record", "-o", str(tmp_path / "t"), "--mpi", "embedded", "--json", "--"]
    assert cli.run([*words, *program, "kill"]) != 0
    told = json.loads(capfd.readouterr().out)
    assert 1 in told["check"]["killed"]
    assert told["check"]["messages"] == 50


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that records its own events."""
    libraries, folder = build.trace_libraries(find_mpi()), tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(OWN)
    words = ["cc", f"-I{ROOT / 'include'}", str(folder / "own.c"), "-o", str(folder / "own")]
    words += [str(libraries / f"libelbow_{name}.so") for name in ("trace", "clock")]
    subprocess.run([*words, f"-Wl,-rpath,{libraries}"], check=True)
    return str(folder / "own")


def test_each_run_with_flushes_has_one_at_another_time(own: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["trace", "flushes", "--repeat", "5", "--json", "--", own]) in (0, 3)
    runs = json.loads(capfd.readouterr().out)["runs"]
    assert len(runs) == 10
    for run in runs:
        assert len(run["flushes"]) == run["with_flushes"]
    assert {flush["inside"] for run in runs for flush in run["flushes"]} <= {"solve", None}


def test_what_recording_costs_a_program_of_its_own_probes(
    own: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["trace", "overhead", "--repeat", "5", "--json", "--", own]) in (0, 3)
    told = json.loads(capfd.readouterr().out)
    events = {case["set"]: case["events"] for case in told["cases"]}
    assert events == {"none": 0, "off": 0, "task": 200, "noise": 100, "all": 300}
