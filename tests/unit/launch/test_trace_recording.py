"""How a command line is made to record: launchers, environments, what is preloaded; what processes leave."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import trace_stand_ins
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import recorder, trace_reader
from elbowroom.launch.launch_line import debugger_of
from elbowroom.launch.recorder import RecordedCommand, RecorderSettings, forwarded, launcher_of, prepare

SETTINGS = RecorderSettings(directory="/traces/t", job=7, categories=("mpi", "task"), policy="drain", core=3)
VARIABLES = {"LD_PRELOAD": "/l/x.so", "ELBOW_TRACE_JOB": "7"}


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "libelbow_trace_mpi.so").write_text("")
    (folder / "libelbow_trace_omp.so").write_text("")
    monkeypatch.setenv("ELBOWROOM_TRACE_LIBRARIES", str(folder))
    return folder


@pytest.fixture
def openmpi(tmp_path: Path) -> Path:
    """An installation of Open MPI, and its launcher."""
    folder = tmp_path / "mpi" / "bin"
    folder.mkdir(parents=True)
    trace_stand_ins.script(folder / "mpicxx", "print('mpicxx: Open MPI 5.0.1')")
    return trace_stand_ins.script(folder / "mpirun", "print('mpirun (Open MPI) 5.0.1')")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["mpirun", "-n", "2", "./app"], 0),
        (["timeout", "60", "/opt/mpi/bin/mpiexec.hydra", "./app"], 2),
        (["srun", "./app"], 0),
        (["mpirun.openmpi", "./app"], 0),
        (["./app", "mpirunner"], None),
        (["./app", "mpirun"], None),
        (["timeout", "60", "./app", "mpirun"], None),
        (["env", "-u", "X", "A=b", "mpirun", "./app"], 4),
        (["taskset", "-c", "0,1", "numactl", "-N", "0", "mpirun", "./app"], 6),
        (["nice", "-n", "5", "time", "mpiexec", "./app"], 4),
    ],
    ids=lambda value: str(value),
)
def test_the_launcher_is_found_behind_other_programs(words: list[str], place: int | None) -> None:
    assert launcher_of(words) == place


def test_open_mpi_is_told_for_each_program_of_a_job() -> None:
    words = ["mpirun", "-n", "1", "a", ":", "-n", "2", "b"]
    told = ("-x", "LD_PRELOAD=/l/x.so", "-x", "ELBOW_TRACE_JOB=7")
    assert forwarded(words, 0, "openmpi", VARIABLES) == (
        *("mpirun", *told, "-n", "1", "a", ":", *told, "-n", "2", "b"),
    )


def test_mpich_is_told_once_for_all() -> None:
    found = forwarded(["mpiexec", "-n", "1", "a", ":", "b"], 0, "mpich", VARIABLES)
    assert found[1:7] == ("-genv", "LD_PRELOAD", "/l/x.so", "-genv", "ELBOW_TRACE_JOB", "7")
    assert found.count("-genv") == 2


def test_what_the_launcher_preloads_itself_is_preloaded_beside_ours() -> None:
    words = ["mpirun", "-x", "LD_PRELOAD=/t.so", "-n", "1", "a", ":", "-n", "1", "b"]
    found = forwarded(words, 0, "openmpi", VARIABLES)
    assert [word for word in found if word.startswith("LD_PRELOAD")] == [
        "LD_PRELOAD=/l/x.so:/t.so", "LD_PRELOAD=/l/x.so",
    ]  # fmt: skip
    found = forwarded(["mpiexec", "-genv", "LD_PRELOAD", "/t.so", "a"], 0, "mpich", VARIABLES)
    assert found[-4:] == ("-genv", "LD_PRELOAD", "/l/x.so:/t.so", "a")
    found = forwarded(["mpirun", "env", "-u", "A", "LD_PRELOAD=/t.so", "a"], 0, "openmpi", VARIABLES)
    assert "LD_PRELOAD=/l/x.so" in found
    assert found[-2:] == ("LD_PRELOAD=/l/x.so:/t.so", "a")
    assert forwarded(["mpirun", "a", "LD_PRELOAD=/t.so"], 0, "openmpi", VARIABLES)[-1] == "LD_PRELOAD=/t.so"


def test_the_launcher_decides_how_it_is_told_whatever_mpi_the_program_has(
    libraries: Path, openmpi: Path, tmp_path: Path
) -> None:
    other = tmp_path / "mpich" / "bin"
    other.mkdir(parents=True)
    trace_stand_ins.script(other / "mpicxx", "print('mpicxx for MPICH version 4.0.2')")
    trace_stand_ins.script(other / "mpirun", "print('HYDRA build details: Version: 4.0.2')")
    found = prepare([str(openmpi), "app"], SETTINGS, mpi=str(other.parent))
    assert found.mpi is not None
    assert found.mpi.kind == "mpich"
    assert "-genv" not in found.command
    assert "-x" in found.command


def test_libraries_below_a_path_with_a_blank_are_preloaded_by_a_plain_one(
    libraries: Path, openmpi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = libraries.rename(libraries.with_name("my: libraries"))
    monkeypatch.setenv("ELBOWROOM_TRACE_LIBRARIES", str(odd))
    found = prepare([str(openmpi), "app"], SETTINGS, env={"PATH": os.environ["PATH"]})
    (preload,) = (word for word in found.command if word.startswith("LD_PRELOAD="))
    path = preload.partition("=")[2]
    assert not set(" :") & set(path)
    assert Path(path).samefile(odd / "libelbow_trace_mpi.so")


def test_settings_are_told_by_the_environment() -> None:
    assert SETTINGS.environment() == {
        "ELBOW_TRACE_DIRECTORY": "/traces/t",
        "ELBOW_TRACE_BYTES": str(4 << 20),
        "ELBOW_TRACE_TEXT_BYTES": str(256 << 10),
        "ELBOW_TRACE_POLICY": "drain",
        "ELBOW_TRACE_JOB": "7",
        "ELBOW_TRACE_SYNC_SECONDS": "10",
        "ELBOW_TRACE_CATEGORIES": "mpi,task",
        "ELBOW_TRACE_CORE": "3",
    }


def test_ranks_are_preloaded_and_their_launcher_is_not(libraries: Path, openmpi: Path) -> None:
    found = prepare([str(openmpi), "-n", "2", "app"], SETTINGS, env={"PATH": os.environ["PATH"]})
    assert found.adapters == ("mpi",)
    assert found.mpi is not None
    assert found.mpi.name == "Open MPI 5.0.1"
    assert f"LD_PRELOAD={libraries / 'libelbow_trace_mpi.so'}" in found.command
    assert "LD_PRELOAD" not in found.env
    assert found.env["ELBOW_TRACE_JOB"] == "7"


def test_what_the_user_preloads_stays(libraries: Path, openmpi: Path) -> None:
    env = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/theirs.so"}
    found = prepare([str(openmpi), "app"], SETTINGS, adapters=("mpi",), env=env)
    assert f"LD_PRELOAD={libraries / 'libelbow_trace_mpi.so'}:/theirs.so" in found.command


def test_a_program_without_a_launcher_has_it_in_its_environment(libraries: Path, tmp_path: Path) -> None:
    app = trace_stand_ins.program(tmp_path)
    found = prepare([str(app)], SETTINGS, adapters=("omp",))
    assert found.command == (str(app),)
    assert found.env["LD_PRELOAD"] == str(libraries / "libelbow_trace_omp.so")


def test_a_program_that_fits_no_adapter_is_told_so(tmp_path: Path) -> None:
    found = prepare([str(trace_stand_ins.program(tmp_path))], SETTINGS, env={})
    assert found.adapters == ()
    assert "LD_PRELOAD" not in found.env
    assert "Nothing is preloaded" in found.notes[0]


def test_without_settings_nothing_is_told(openmpi: Path) -> None:
    words = (str(openmpi), "-n", "2", "app")
    found = prepare(words, None, env={})
    assert found.command == words
    assert not [name for name in found.env if name.startswith("ELBOW_")]


def test_numbers_of_threads_reach_the_ranks(openmpi: Path) -> None:
    found = prepare([str(openmpi), "app"], None, variables={"OMP_NUM_THREADS": "2"}, env={})
    assert found.command[1:] == ("-x", "OMP_NUM_THREADS=2", "app")


def test_an_adapter_that_is_not_there_is_refused(libraries: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="libstarpu-dev"):
        prepare([str(trace_stand_ins.program(tmp_path))], SETTINGS, adapters=("starpu",))


def test_a_launcher_without_a_compiler_is_refused(libraries: Path, openmpi: Path) -> None:
    openmpi.with_name("mpicxx").unlink()
    with pytest.raises(UsageError, match="no mpicxx"):
        prepare([str(openmpi), "app"], SETTINGS)


def test_the_exit_code_of_a_signal_is_a_shells() -> None:
    code = f"import os; os.kill(os.getpid(), {signal.SIGKILL.value})"
    command = (sys.executable, "-c", code)
    assert recorder.run(RecordedCommand(command, dict(os.environ), (), None, ())) == 128 + 9


def test_what_processes_said_at_their_end_is_read(tmp_path: Path) -> None:
    app = trace_stand_ins.program(tmp_path)
    env = {**os.environ, "ELBOW_TRACE_DIRECTORY": str(tmp_path), "STAND_IN_LOST": "5"}
    assert recorder.run(RecordedCommand((str(app),), env, (), None, ()), stdout=-3) == 0
    (tmp_path / "rank-00001.jsonl").write_text('{"record": "trace"}\nnot JSON\n')
    (end,) = trace_reader.ends(tmp_path)
    assert (end.recorded, end.lost, end.advised_bytes) == (405, 5, 4096)
    assert end.by_category == {"task": 300, "mpi": 100}
    assert sum(end.by_type.values()) == 400


@pytest.mark.parametrize(
    ("documents", "error", "sentence"),
    [
        ({"refusal": [1, "rank-00000.jsonl 'x': is no trace; record again"]}, MachineError, "is no trace"),
        ({"refusal": [2, "--bins: is not a number\nRun with --help"]}, UsageError, "is not a number$"),
        ({"signal": 9}, MachineError, "signal 9"),
        ({"check": {"schema": 3}}, MachineError, "cannot be read"),
    ],
    ids=["failed", "usage", "died", "nonsense"],
)
def test_a_reader_that_fails_is_an_error_with_its_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    documents: dict[str, object],
    error: type[Exception],
    sentence: str,
) -> None:
    from elbowroom import api

    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path, **documents)))
    with pytest.raises(error, match=sentence):
        api.check_trace(trace_stand_ins.recorded(tmp_path / "t"))


@pytest.mark.parametrize("words", [["./app"], ["mpirun", "-n", "2", "./app"], ["timeout", "9", "./app"]])
def test_a_core_that_this_host_does_not_have_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="core 1000000: does not exist"):
        recorder.check_core(words, 1000000)


@pytest.mark.parametrize("option", ["--host", "-H", "--hostfile", "-f"])
def test_a_core_of_other_hosts_is_not_checked_here(option: str) -> None:
    recorder.check_core(["mpirun", option, "a", "./app"], 1000000)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["gdb", "--args", "mpirun", "./app"], "gdb"),
        (["mpirun", "-n", "2", "/usr/bin/valgrind", "./app"], "valgrind"),
        (["mpirun", "-n", "2", "./app"], None),
    ],
)
def test_a_debugger_is_found_around_the_launcher_and_the_ranks(
    words: list[str], name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda word: word)
    assert debugger_of(words) == name
