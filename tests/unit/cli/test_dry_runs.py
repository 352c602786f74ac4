"""`--dry-run`: nothing is built or started, and what would be is said."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cli_commands import every_command
from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import native, recorder
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.topologies import own_topology_xml
from elbowroom.profile import rank_file as f
from made_profiles import MS, Row, write_profile

WITHOUT = {
    "doctor": "looks at the machine for a second", "tour": "runs other commands on a virtual machine",
    "show": "reads", "compare": "reads", "report": "reads", "export": "reads", "plans": "reads",
    "explain": "reads", "list": "reads", "machine list": "reads", "machine show": "reads",
    "machine from-run": "reads", "predict-step": "computes", "import": "reads",
    "fit": "computes", "evaluate": "computes", "predict": "computes", "schema": "reads", "help": "reads",
    "completion": "reads", "manual": "reads", "simulate-memory": "simulates", "colocate schedule": "computes",
    "colocate predict": "computes", "broadcast simulate": "simulates", "broadcast draw": "computes",
    "accept history": "reads", "papers": "reads",
    "broadcast tune": "computes", "profile show": "reads", "profile what-if": "computes",
    "trace merge": "reads", "trace stat": "reads", "trace activity": "reads", "trace check": "reads",
    "trace sync": "reads", "trace overlap": "reads",
}  # fmt: skip
"""Commands that neither measure nor run a program of the user, and what they do instead."""


def test_every_command_that_measures_or_runs_a_program_has_a_dry_run() -> None:
    without = {
        name
        for name, command in every_command()
        if not any("--dry-run" in parameter.opts for parameter in command.params)
    }
    assert without == set(WITHOUT)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a profile; nothing is built yet, and building or starting anything fails the test."""

    def refuse(*_words: object, **_options: object) -> None:
        pytest.fail("a dry run builds or starts something")

    try:
        own_topology_xml()
        find_mpi(None)
    except MachineError as error:
        pytest.skip(error.sentence())
    for name in [name for name in os.environ if name.startswith("ELBOWROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ELBOWROOM_CMAKE", f"-DNOTHING_BUILT_SO={os.getpid()}")
    monkeypatch.setattr(native, "build", refuse)
    monkeypatch.setattr(recorder, "run", refuse)
    monkeypatch.setattr("elbowroom.measure.recording_cost.run_program", refuse)
    monkeypatch.setattr("elbowroom.measure.program_times.run_program", refuse)
    monkeypatch.setattr("elbowroom.launch.executables.run", refuse)
    monkeypatch.setattr("elbowroom.launch.executables.run", refuse)
    monkeypatch.setattr("elbowroom.launch.executables.run", refuse)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        (Path(__file__).parents[3] / "docs" / "guide" / "job.toml").read_text(encoding="utf-8")
    )
    return tmp_path


COMMANDS = {
    "profile record -- mpirun -n 2 ls": ("recorder's libraries", "the program, with the profiler"),
    "profile --nic 50MB/s -- mpirun -n 2 ls": ("nic", "the program, with the profiler"),
    "guard -- mpirun -n 2 ls": ("recorder's libraries", "the program, guarded"),
    "accept --hosts a,b,c": ("the probe", "1 job of the probe on 3 nodes"),
    "accept --node": ("the probe", "the probe on this node"),
    "nic measure --ranks 2": ("network-bench", "13 cases, 5 repetitions each"),
    "nic measure --ranks 2 --nic 50MB/s --sizes 4": ("nic", "repetitions each"),
    "trace record -- mpirun -n 2 ls": ("recorder's libraries", "the program, with the recorder"),
    "trace overhead --repeat 5 --adapters omp -- ls": ("trace-reader", "without a recorder"),
    "trace flushes --repeat 5 --adapters omp -- ls": ("trace-reader", "recorded with flushes"),
    "nic run --nic 50MB/s -- mpirun -n 2 ls": ("nic", "behind the NIC"),
    "broadcast bench --ranks 2": ("broadcast-bench", "12 cases, 180 repetitions"),
    "broadcast curves 4.14": ("factorizations-inline", "tiles of 320"),
    "broadcast factorize": ("factorizations-inline", "the kernels of a factorization"),
    "calibrate": ("the probe", "points of the plan model"),
    "calibrate --machine henri": ("", "at most 24 of"),
    "diagnose -- mpirun -n 2 ls": ("recorder's libraries", "the machine's model"),
    "colocate demand p -- mpirun -n 2 ls": ("elbow-load", "beside a load of known memory traffic"),
    "advise henri --job job.toml --verify --machine henri": ("", "the present and the other setup"),
    "run quick": ("the probe", "points"),
    "study tan2012 --quick": ("the probe", "points"),
}  # fmt: skip
"""Commands, part of what would be built first, and part of what would be started."""


@pytest.mark.parametrize("words", COMMANDS)
def test_a_dry_run_names_what_would_be_built_and_started_and_does_neither(
    place: Path, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    before = sorted(place.rglob("*"))
    own, dashes, program = words.partition(" -- ")
    line = [*own.split(), "--dry-run", *([dashes.strip(), *program.split()] if dashes else [])]
    assert cli.run(line) == 0
    out, err = capfd.readouterr()
    assert err == ""
    built, started = COMMANDS[words]
    text = " ".join(out.split())
    assert built in text
    assert ("to build first: " in text) == bool(built)
    assert started in text
    assert sorted(place.rglob("*")) == before


def test_a_dry_run_of_a_diagnosis_counts_the_runs_of_its_verification(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows: list[list[Row]] = [[], []]
    for step in range(20):
        for rank in (0, 1):
            both = ((10 * step + 7) * MS, (10 * step + 10) * MS, 1 << 20, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL | f.BETWEEN), (*both, f.RECEIVE, f.BETWEEN)]
    write_profile(place / "p", rows, (0, 1), end=200 * MS, host=b"henri")
    words = [
        "diagnose",
        "--profile",
        "p",
        "--model",
        "henri",
        "--dry-run",
        "--json",
        "--repeat",
        "5",
        "--verify",
    ]
    code = cli.run([*words, "./app {cores}"])
    found = json.loads(capfd.readouterr().out)
    assert code == 0
    assert [start["times"] for start in found["starts"]] == [10]
    assert found["builds"] == []


def test_a_dry_run_refuses_what_the_command_refuses(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["profile", "--dry-run", "--", "./none"]) == 2
    assert cli.run(["trace", "overhead", "--dry-run", "--repeat", "1", "--", "ls"]) == 2
    assert cli.run(["diagnose", "--dry-run", "--profile", "none", "--model", "henri"]) == 2
    assert cli.run(["broadcast", "bench", "--dry-run", "--ranks", "1"]) == 2
    assert cli.run(["advise", "henri", "--job", "job.toml", "--dry-run"]) == 2
    assert "--verify" in capfd.readouterr().err


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["measured", "dry run"])
def test_a_run_that_no_model_can_be_fitted_to_is_refused_before_anything_is_measured(
    place: Path, capfd: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    """Its budget ended before the first point; the fixture lets nothing be built or measured."""
    shutil.copytree(Path(__file__).parents[2] / "data" / "quick", place / "r")
    journal = place / "r" / "samples.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    assert cli.run(["colocate", "fit", "r", *more]) == 2
    assert "run: no point has bandwidths alone and together" in capfd.readouterr().err
