"""One receipt for a job whose nodes each have a guard (guard/job.py)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from elbowroom.guard import job
from elbowroom.guard.job import write_receipt
from elbowroom.guard.receipt import RECEIPT, Receipt

RECEIPT_OF_RANK_0 = Receipt(
    command=("app",),
    verdict="off",
    gain=None,
    placebo=None,
    levers=(),
    switches=0,
    chosen="off",
    decided_at=None,
    steps=9,
    step_seconds=0.1,
    recognised_by="marks",
    ranks=2,
    first_rank=0,
    host="a",
    exit_code=0,
)
OTHER = msgspec.structs.replace(RECEIPT_OF_RANK_0, host="b", first_rank=2, verdict="pays")
RANK_0 = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "job1", "OMPI_COMM_WORLD_SIZE": "4"}
RANK_2 = {**RANK_0, "PMIX_RANK": "2"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PATIENCE", 0.2)


def test_the_receipt_of_the_node_of_rank_0_names_each_node(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_receipt(path, OTHER, RANK_2)
    written = write_receipt(path, RECEIPT_OF_RANK_0, RANK_0)
    assert [(node.host, node.first_rank, node.verdict) for node in written.nodes] == [
        ("a", 0, "off"),
        ("b", 2, "pays"),
    ]
    assert RECEIPT.read(path) == written
    assert RECEIPT.read(tmp_path / "r-rank2.json").nodes == ()
    assert not written.reasons


@pytest.mark.parametrize(
    "other", [{"PMIX_NAMESPACE": "job0"}, {"PMIX_NAMESPACE": ""}, {"PMIX_RANK": "2", "x": ""}]
)
def test_what_another_job_left_is_not_joined(tmp_path: Path, other: dict[str, str]) -> None:
    path = tmp_path / "r.json"
    earlier = OTHER if "x" not in other else msgspec.structs.replace(OTHER, command=("another",))
    write_receipt(path, earlier, {**RANK_2, **other})
    written = write_receipt(path, RECEIPT_OF_RANK_0, RANK_0)
    assert [node.host for node in written.nodes] == ["a"]
    assert f"the nodes of 2 of 4 ranks have no receipt in {tmp_path}" in written.reasons[0]


def test_a_launcher_that_does_not_name_its_jobs_has_a_receipt_for_each_node(tmp_path: Path) -> None:
    written = write_receipt(tmp_path / "r.json", RECEIPT_OF_RANK_0, {"PMI_RANK": "0", "PMI_SIZE": "4"})
    assert "does not name its jobs" in written.reasons[0]


def test_a_guard_that_no_launcher_started_has_no_other_nodes(tmp_path: Path) -> None:
    written = write_receipt(tmp_path / "r.json", RECEIPT_OF_RANK_0, {})
    assert (written.nodes, written.reasons) == ((), ())
