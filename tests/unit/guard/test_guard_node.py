"""One guard acts on a node; those of the other ranks of its launcher use its board."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elbowroom.guard import node
from elbowroom.guard.node import NODE_LOCK, guard_of_node, rank_of

RANK = {"PMIX_RANK": "1"}
BOARD = Path("/dev/shm/elbow-guard-0-0")


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(node, "SHARED", tmp_path)
    monkeypatch.setattr(node, "PATIENCE", 0.05)
    return tmp_path / NODE_LOCK


def test_the_first_guard_on_a_node_acts_and_offers_its_board_to_the_ranks_of_its_launcher() -> None:
    with guard_of_node(RANK) as first:
        first.offer(BOARD)
        assert (first.reason, first.board) == (None, None)
        with guard_of_node(RANK) as second:
            assert (second.reason, second.board) == (None, BOARD)


@pytest.mark.parametrize("offered", [None, BOARD])
def test_a_guard_that_no_launcher_started_as_a_rank_uses_no_other_guard_s_board(offered: Path | None) -> None:
    with guard_of_node({}) as first:
        first.offer(offered)
        with guard_of_node({}) as second:
            assert "another guard runs on this node" in str(second.reason)


def test_the_board_of_another_launcher_is_not_used(lock: Path) -> None:
    with guard_of_node(RANK):
        lock.write_text(f"{os.getppid() + 1} {BOARD}\n")
        with guard_of_node(RANK) as second:
            assert "another guard runs on this node" in str(second.reason)


@pytest.mark.parametrize("says", [True, False])
def test_where_the_first_guard_has_no_board_the_others_say_so(says: bool) -> None:
    with guard_of_node(RANK) as first:
        if says:
            first.offer(None)
        with guard_of_node(RANK) as second:
            assert "another guard runs on this node" in str(second.reason)


def test_what_an_earlier_guard_offered_is_forgotten() -> None:
    with guard_of_node(RANK) as first:
        first.offer(BOARD)
    with guard_of_node(RANK), guard_of_node(RANK) as second:
        assert second.board is None


def test_a_launcher_says_the_rank_by_its_variable() -> None:
    assert rank_of({"OMPI_COMM_WORLD_RANK": "3"}) == 3
    assert rank_of({"PMIX_RANK": "", "PMI_RANK": "0"}) == 0
    assert rank_of({"SLURM_JOB_ID": "7"}) is None
