"""Diagnosed programs, against what they count themselves; their output and exit codes stay their own."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest

from counted import c_wrapper
from elbowroom import api, cli
from elbowroom.advise.job import decode
from elbowroom.launch.mpi import Mpi
from traced import mpi_called

HERE = Path(__file__).parent
BYTES, STEPS = 40_000, 30


@pytest.fixture(scope="module")
def mpi() -> Mpi:
    return mpi_called("embedded")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    """Holds the program, and a model that bears this host's name."""
    made = tmp_path_factory.mktemp("diagnose")
    words = [c_wrapper(mpi), "-O1", "-o", made / "stepped", HERE / "stepped.c"]
    subprocess.run(words, check=True)
    document = api.load_model("henri").document
    here = msgspec.structs.replace(document.machine, name=socket.gethostname(), virtual=False)
    api.Model(msgspec.structs.replace(document, machine=here)).save(made / "M.json")
    return made


def diagnosed(mpi: Mpi, folder: Path, mode: str, where: Path, *options: str, ranks: int = 2) -> int:
    """The exit code."""
    program = [mpi.launcher, "--oversubscribe", "-n", str(ranks), str(folder / "stepped")]
    words = [*program, str(STEPS), str(BYTES), mode]
    own = ["-o", str(where / "p"), "--job-out", str(where / "job.toml")]
    model = ["--model", str(folder / "M.json")]
    return cli.run(["diagnose", "--no-try", *own, *model, *options, "--", *words])


@pytest.mark.parametrize(("mode", "ranks"), [("plain", 2), ("marks", 2), ("plain", 4)])
def test_bytes_are_those_that_the_program_counts_and_times_are_near(
    mpi: Mpi, folder: Path, tmp_path: Path, mode: str, ranks: int, capfd: pytest.CaptureFixture[str]
) -> None:
    code = diagnosed(mpi, folder, mode, tmp_path, ranks=ranks)
    said = capfd.readouterr()
    assert code == 0, said.err
    printed = re.fullmatch(r"bytes (\d+) computes (\S+)\n", said.out)
    assert printed is not None
    job = decode((tmp_path / "job.toml").read_text(), "job.toml")
    assert job.step.comm_bytes == float(printed[1]) == ranks * BYTES
    assert job.step.t_comp is not None
    # Each step computes for 4 ms at least; on a busy machine its mean is far above what most steps take.
    assert 0.0039 <= job.step.t_comp.seconds <= 1.5 * float(printed[2])
    assert job.now.cores == ranks
    assert "By the model: " in said.err
    steps, way = (STEPS - 1, "marks") if mode == "marks" else (STEPS - 2, "a pattern of calls")
    counted = re.search(rf"^(\d+) steps by {way}", said.err, re.MULTILINE)
    assert counted is not None
    # Others take the cores: the first and last steps of a pattern may have computations of other lengths.
    assert steps - 6 * (mode != "marks") <= int(counted[1]) <= steps


def test_messages_between_emulated_nodes_are_those_of_one_node(
    mpi: Mpi, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELBOW_NIC_RANKS_PER_NODE", "2")
    code = diagnosed(mpi, folder, "plain", tmp_path, ranks=4)
    assert code == 0
    job = decode((tmp_path / "job.toml").read_text(), "job.toml")
    assert (job.step.comm_bytes, job.now.cores) == (2 * BYTES, 2)


def test_json_has_the_exit_code_of_the_program_and_the_advice(
    mpi: Mpi, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = diagnosed(mpi, folder, "fail", tmp_path, "--json")
    said = capfd.readouterr()
    assert code == 7
    document = json.loads(said.out)
    assert document["exit_code"] == 7
    assert document["notes"][0].startswith("The program ended with exit code 7")
    assert document["job"]["step"]["comm_bytes"] == 2 * BYTES


def test_a_killed_program_gives_a_partial_result_and_its_own_exit_code(
    mpi: Mpi, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = diagnosed(mpi, folder, "kill", tmp_path)
    said = capfd.readouterr()
    assert code not in (0, 2)
    assert "The profile is partial: ranks 0, 1 never called MPI_Finalize" in " ".join(said.err.split())
    assert decode((tmp_path / "job.toml").read_text(), "job.toml").step.comm_bytes == 2 * BYTES


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [("barriers", "steps that send no data"), ("uneven", "No steps were recognised: no sequence of calls")],
)
def test_a_program_without_steps_or_messages_has_an_account(
    mpi: Mpi, folder: Path, tmp_path: Path, mode: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = diagnosed(mpi, folder, mode, tmp_path)
    said = capfd.readouterr()
    assert code == 0
    assert said.out.startswith("bytes ")
    assert sentence in " ".join(said.err.split())


def test_a_program_of_one_rank_has_an_account_and_no_fault_of_communication(
    mpi: Mpi, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = diagnosed(mpi, folder, "barriers", tmp_path, "--json", ranks=1)
    document = json.loads(capfd.readouterr().out)
    assert code == 0
    assert [cause["cause"] for cause in document["causes"]] == ["computation"]
    assert sum(document["account"].values()) == pytest.approx(1.0, abs=1e-3)


def test_the_folder_has_the_document_and_the_page(
    mpi: Mpi, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert diagnosed(mpi, folder, "plain", tmp_path, "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert json.loads((tmp_path / "p" / "diagnosis.json").read_text()) == document
    assert 'id="answer"' in (tmp_path / "p" / "diagnosis.html").read_text()
    assert document["version"] == 2
    assert document["steps"]["iterations_per_step"] == 1


def test_a_program_without_mpi_is_refused(
    mpi: Mpi, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["diagnose", "-o", str(tmp_path / "p"), "--", mpi.launcher, "-n", "2", "true"]
    assert cli.run(words) == 2
    assert "never called MPI_Init" in capfd.readouterr().err
