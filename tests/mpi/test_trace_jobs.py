"""Traced jobs as programs start and end them: ranks that cannot record, several jobs, all ways to end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from counted import build_counter, c_wrapper, read_counts
from elbowroom import api
from elbowroom.errors import ElbowroomError
from elbowroom.launch import build, trace_reader
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.verbs.trace_record import RecordDocument

HERE = Path(__file__).parent
PATIENCE = 90


@pytest.fixture(scope="module", params=("embedded", "openmpi", "mpich"))
def mpi(request: pytest.FixtureRequest) -> Mpi:
    try:
        return find_mpi(request.param)
    except ElbowroomError as error:
        pytest.skip(error.sentence())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def program(mpi: Mpi, folder: Path) -> Path:
    made = folder / f"jobs-{mpi.kind}-{mpi.version}"
    subprocess.run([c_wrapper(mpi), "-o", made, HERE / "jobs.c"], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def tracer(mpi: Mpi) -> str:
    return str(build.trace_libraries(mpi) / "libelbow_trace_mpi.so")


def launch(mpi: Mpi, *parts: Sequence[str], under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Parts of a job: the number of ranks, then the command."""
    words: list[str] = []
    for part in parts:
        words += [":"] * bool(words) + ["-n", *part]
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return subprocess.run(
        [*under, mpi.launcher, *more, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def traced(tracer: str, directory: Path, *more: str) -> list[str]:
    told = ["env", f"LD_PRELOAD={tracer}", f"ELBOW_TRACE_DIRECTORY={directory}", "ELBOW_TRACE_JOB=7"]
    return [*told, *more]


def read(what: str, directory: Path) -> dict[str, Any]:
    done = subprocess.run([build.trace_reader(), what, directory], capture_output=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(directory: Path) -> dict[str, Any]:
    return read("check", directory)


def test_a_rank_that_cannot_record_does_not_hang_the_job(
    mpi: Mpi, program: Path, tracer: str, tmp_path: Path
) -> None:
    full = traced(tracer, tmp_path / "t", f"ELBOW_TRACE_MEMORY={tmp_path / 'nowhere'}")
    done = launch(
        mpi, ["1", *traced(tracer, tmp_path / "t"), str(program), "5"], ["1", *full, str(program), "5"]
    )
    assert (done.returncode, done.stdout) == (0, "2 ranks, 5 messages\n"), done.stderr
    assert done.stderr.count("the job is not traced: rank 1 cannot record") == 1
    assert trace_reader.jobs(tmp_path / "t") == []


def test_ranks_that_are_not_interposed_or_cannot_write_are_left_out_and_named(
    mpi: Mpi, program: Path, tracer: str, tmp_path: Path
) -> None:
    own = traced(tracer, tmp_path / "t")
    done = launch(
        mpi,
        ["2", *own, str(program), "5"],
        ["1", str(program), "5"],
        ["1", *own, "ELBOW_TRACE_DIRECTORY=/proc/nowhere", str(program), "5"],
    )
    assert (done.returncode, done.stdout) == (0, "4 ranks, 5 messages\n"), done.stderr
    assert done.stderr.count("the trace lacks ranks 2 and 3") == 1
    assert done.stderr.count("this process is not traced: /proc/nowhere") == 1
    found = check(tmp_path / "t")
    assert (found["messages"], found["missing"], found["sync_points"]) == (5, [2, 3], 4)


def test_a_full_dev_shm_does_not_hang_the_job(mpi: Mpi, program: Path, tracer: str, tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("mounts a small /dev/shm: that takes root, and no chroot")
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"', "sh"]
    own = traced(tracer, tmp_path / "t", "ELBOW_TRACE_BYTES=16777216")
    done = launch(mpi, ["3", *own, str(program), "5"], under=mount)
    assert (done.returncode, done.stdout) == (0, "3 ranks, 5 messages\n"), done.stderr
    assert done.stderr.count("the job is not traced: rank") == 1
    assert "--buffer" in done.stderr


def test_two_launches_in_one_directory_keep_their_traces(
    mpi: Mpi, program: Path, tracer: str, tmp_path: Path
) -> None:
    for ranks, messages in (("2", "40"), ("3", "10")):
        done = launch(mpi, [ranks, *traced(tracer, tmp_path / "t"), str(program), messages])
        assert done.returncode == 0, done.stderr
    jobs = trace_reader.settle(tmp_path / "t")
    assert [job.name for job in jobs] == ["job-1", "job-2"]
    assert [(check(job)["messages"], check(job)["ranks"]) for job in jobs] == [(40, 2), (10, 3)]


def test_processes_that_were_spawned_keep_their_trace(
    mpi: Mpi, program: Path, tracer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if launch(mpi, ["2", str(program), "5", "spawn"]).returncode != 0:
        pytest.skip("this MPI does not spawn processes here")
    settings = {"LD_PRELOAD": tracer, "ELBOW_TRACE_DIRECTORY": str(tmp_path / "t"), "ELBOW_TRACE_JOB": "7"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    forwarded = [part for name in settings for part in ("-x", name)] if mpi.kind == "openmpi" else []
    done = launch(mpi, ["2", *forwarded, str(program), "5", "spawn"])
    assert (done.returncode, done.stdout) == (0, "2 ranks, 5 messages\n"), done.stderr
    jobs = trace_reader.jobs(tmp_path / "t")
    assert [check(job)["messages"] for job in jobs] == [5, 5]


def test_a_program_without_a_launcher_that_a_script_starts_twice_keeps_both_traces(
    mpi: Mpi, program: Path, tracer: str, tmp_path: Path
) -> None:
    for _ in range(2):
        command = traced(tracer, tmp_path / "t", "SLURM_PROCID=0", "SLURM_NTASKS=4", str(program), "0")
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
    jobs = trace_reader.settle(tmp_path / "t")
    assert [check(job)["ranks"] for job in jobs] == [1, 1]


@pytest.mark.parametrize("how", ["finalize", "exit", "abort", "crash", "_exit", "exec", "fork"])
def test_a_program_ends_as_it_does_without_a_trace(
    how: str, mpi: Mpi, program: Path, tracer: str, folder: Path, tmp_path: Path
) -> None:
    counter = folder / f"{mpi.kind}-{mpi.version}" / "libcounter.so"
    if not counter.exists():
        counter.parent.mkdir()
        build_counter(mpi, counter.parent)
    for attempt in range(3):  # a launcher on a busy machine may lose what its ranks print last
        try:
            plain = launch(mpi, ["2", str(program), "20", how])
        except subprocess.TimeoutExpired:  # mpirun of Open MPI 4.1 may wait for ever for a rank that aborted
            assert attempt < 2
            continue
        into = tmp_path / str(attempt)
        into.mkdir()
        own = traced(f"{counter}:{tracer}", into / "t", f"PMPI_COUNTER={into}")
        done = launch(mpi, ["2", *own, str(program), "20", how])
        trace_reader.settle(into / "t")
        # MPICH's launcher prints the number of the process that crashed.
        printed = [re.sub(r"PID \d+", "PID", one.stdout) for one in (done, plain)]
        if (done.returncode, printed[0]) == (plain.returncode, printed[1]):
            break
    assert (done.returncode, printed[0]) == (plain.returncode, printed[1]), done.stderr
    found = check(into / "t")
    assert found["messages"] == 20
    if how != "exit":  # the launcher may kill the other rank first
        assert bool(found["killed"]) == (how in ("abort", "crash"))
    if how in ("finalize", "_exit", "exec", "fork"):
        said = subprocess.run([build.trace_reader(), "stat", into / "t"], capture_output=True, check=False)
        types = {one["name"]: one["begins"] for one in json.loads(said.stdout)["types"]}
        counted = read_counts(into)
        assert sum(one.messages for one in counted) == found["messages"]
        calls = sum((one.calls for one in counted), Counter[str]())
        assert {name: types.get(name) for name in calls} == calls


@pytest.fixture
def record(mpi: Mpi, tmp_path: Path) -> Callable[..., RecordDocument]:
    """`elbowroom trace record -- LAUNCHER -n 2 ...` as users type it."""

    def run(*words: str, other: Mpi | None = None) -> RecordDocument:
        by = other or mpi
        more = ["--oversubscribe"] if by.kind == "openmpi" else []
        return api.record_trace([by.launcher, *more, "-n", "2", *words], tmp_path / "t")

    return run


def test_spawned_processes_of_a_recorded_command_keep_their_trace(
    mpi: Mpi, program: Path, record: Callable[..., RecordDocument], capfd: pytest.CaptureFixture[str]
) -> None:
    plain = launch(mpi, ["2", str(program), "5", "spawn"])
    done = record(str(program), "5", "spawn")
    out, err = capfd.readouterr()
    assert (done.exit_code, out) == (plain.returncode, plain.stdout), err
    if plain.returncode == 0:  # Debian's MPICH 4.0 (ch4:ucx) cannot spawn
        assert [(job.check.messages, job.check.ranks) for job in done.jobs] == [(5, 2), (5, 2)]


def test_a_program_that_a_rank_runs_keeps_its_trace(
    mpi: Mpi, program: Path, record: Callable[..., RecordDocument], capfd: pytest.CaptureFixture[str]
) -> None:
    # A child that is an MPI program of one process: it must not believe that it is its parent's rank.
    left = "OMPI_|PMI|PRTE|HYDI"
    child = f"env $(env | grep -v ALLOW | sed -nE 's/^(({left})[A-Za-z0-9_]*)=.*/-u \\1/p') {program} 0"
    plain = launch(mpi, ["2", str(program), "5", "run", child])
    assert plain.returncode == 0, plain.stderr
    done = record(str(program), "5", "run", child)
    out, err = capfd.readouterr()
    assert (done.exit_code, out) == (plain.returncode, plain.stdout), err
    assert [(job.check.messages, job.check.ranks) for job in done.jobs] == [(5, 2), (0, 1)]


def test_a_library_that_the_launchers_line_preloads_is_kept(
    mpi: Mpi, program: Path, folder: Path, record: Callable[..., RecordDocument], tmp_path: Path
) -> None:
    counter = folder / f"{mpi.kind}-{mpi.version}" / "libcounter.so"
    if not counter.exists():
        counter.parent.mkdir()
        build_counter(mpi, counter.parent)
    theirs = {"LD_PRELOAD": str(counter), "PMPI_COUNTER": str(tmp_path)}
    words = [
        word
        for name, value in theirs.items()
        for word in (["-x", f"{name}={value}"] if mpi.kind == "openmpi" else ["-genv", name, value])
    ]
    done = record(*words, str(program), "20")
    assert [job.check.messages for job in done.jobs] == [20]
    assert sum(one.messages for one in read_counts(tmp_path)) == 20


def test_libraries_below_a_folder_with_blank_and_colon_are_preloaded(
    mpi: Mpi,
    program: Path,
    tracer: str,
    record: Callable[..., RecordDocument],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = tmp_path / "a cache: mine"
    shutil.copytree(Path(tracer).parent, odd)
    monkeypatch.setenv("ELBOWROOM_TRACE_LIBRARIES", str(odd))
    done = record(str(program), "5")
    assert (done.exit_code, [job.check.messages for job in done.jobs]) == (0, [5])


def test_a_program_of_another_mpi_than_its_launchers_starts(
    mpi: Mpi, program: Path, record: Callable[..., RecordDocument], capfd: pytest.CaptureFixture[str]
) -> None:
    if mpi.kind != "mpich":
        pytest.skip("the program is MPICH's, the launcher Open MPI's")
    for name in ("embedded", "openmpi"):
        try:
            other = find_mpi(name)
        except ElbowroomError:
            continue
        break
    else:
        pytest.skip("no Open MPI is installed")
    plain = launch(other, ["2", str(program), "5"])
    done = record(str(program), "5", other=other)
    out, err = capfd.readouterr()
    assert (done.exit_code, out) == (plain.returncode, plain.stdout), err
    assert out.count("1 ranks, 5 messages") == 2
