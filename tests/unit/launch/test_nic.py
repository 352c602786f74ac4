"""How a command is made to run behind an emulated NIC, and what is left of one."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.errors import UsageError
from elbowroom.launch import nic
from elbowroom.launch.nic import NicSettings


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "libelbow_nic.so"
    path.write_text("")
    path.chmod(0o755)
    monkeypatch.setenv("ELBOWROOM_NIC", str(path))
    return path


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(nic, "_MEMORY", folder)
    return folder


def shared(memory: Path, name: str) -> Path:
    path = memory / f"elbow-nic-{os.geteuid()}-{name}"
    path.write_text("")
    return path


def test_ranks_get_the_library_beside_what_is_preloaded_already(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/t.so")
    found = nic.prepare(["true"], NicSettings(bandwidth=5e7, ranks_per_node=2, nodes=(3, 1), name="pair"))
    assert found.env["LD_PRELOAD"] == f"{library}:/t.so"
    told = {name: value for name, value in found.env.items() if name.startswith("ELBOW_NIC")}
    assert told == {
        "ELBOW_NIC_NAME": "pair",
        "ELBOW_NIC_BANDWIDTH": "5e+07",
        "ELBOW_NIC_RANKS_PER_NODE": "2",
        "ELBOW_NIC_NODES": "3,1",
    }


def test_both_mpis_use_tcp_whatever_the_environment_says(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_btl", "self,sm")
    monkeypatch.setenv("UCX_TLS", "posix")
    found = nic.prepare(["true"], NicSettings(bandwidth=5e7)).env
    assert (found["OMPI_MCA_btl"], found["UCX_TLS"]) == ("self,tcp", "tcp,self")
    assert (found["OMPI_MCA_pml"], found["MPIR_CVAR_NOLOCAL"]) == ("ob1", "1")


def test_a_job_without_a_name_has_nodes_of_its_own() -> None:
    first, second = NicSettings(bandwidth=5e7).environment(), NicSettings(bandwidth=5e7).environment()
    assert first["ELBOW_NIC_NAME"] != second["ELBOW_NIC_NAME"]
    assert "ELBOW_NIC_NODES" not in first


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bandwidth", 999.0),
        ("bandwidth", float("nan")),
        ("ranks_per_node", 0),
        ("nodes", (0, 0)),
        ("nodes", (64,)),
        ("name", ""),
        ("name", "a/b"),
        ("name", "n" * 101),
    ],
)
def test_settings_that_cannot_be_emulated_are_refused_by_name(field: str, value: object) -> None:
    settings = {"bandwidth": 5e7, field: value}
    with pytest.raises(UsageError) as refused:
        nic.check(NicSettings(**settings))  # type: ignore[arg-type]
    assert refused.value.field == {"bandwidth": "nic", "nodes": "nic_nodes", "name": "nic_name"}.get(
        field, field
    )


def test_what_nobody_uses_is_removed_and_what_is_in_use_is_not(memory: Path) -> None:
    left, used = shared(memory, "left"), shared(memory, "used")
    with open(used, "rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_SH)
        with nic.emulated(NicSettings(bandwidth=5e7, name="used")):
            assert not left.exists()
        assert used.exists()
    with nic.emulated(NicSettings(bandwidth=5e7, name="used")):
        shared(memory, "used")
    assert not used.exists()


def test_options_of_a_nic_need_its_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["nic", "measure", "--ranks-per-node", "2"]) == 2
    assert (
        "ranks_per_node 2: is only valid with an emulated NIC; give --nic 50MB/s" in capsys.readouterr().err
    )


def test_an_emulated_nic_is_on_this_host_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["nic", "measure", "--nic", "50MB/s", "--hosts", "a,b"]) == 2
    assert "is emulated on this host only" in capsys.readouterr().err
