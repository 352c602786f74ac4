"""A profile folder: ranks on one time, and a sentence for everything that is missing or does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import read_profile
from made_profiles import MS, START_WALL_NS, write_profile, write_rank

SEND = (1 * MS, 2 * MS, 4096, 1, "MPI_Send", f.SEND, f.CALL | f.BETWEEN)
RECEIVE = (1 * MS, 3 * MS, 4096, 0, "MPI_Recv", f.RECEIVE, f.CALL | f.BETWEEN)


def test_records_of_all_ranks_are_on_one_time(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    profile = read_profile(tmp_path)
    assert profile.events.rank.tolist() == [0, 1]
    assert profile.events.end.tolist() == [2 * MS, 3 * MS]
    assert profile.names == ("node0", "node1")
    assert profile.duration == 1000 * MS
    assert [profile.events.names[call] for call in profile.events.call] == ["MPI_Send", "MPI_Recv"]


def test_hosts_with_other_monotonic_clocks_are_aligned_by_their_wall_clocks(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    # The second host booted 7 ms later: the same wall time is an earlier monotonic one.
    write_rank(
        tmp_path / "rank-000001.profile",
        [RECEIVE],
        rank=1,
        nodes_of=(0, 1),
        start_wall_ns=START_WALL_NS + 7 * MS,
    )
    assert read_profile(tmp_path).events.end.tolist() == [2 * MS, 10 * MS]


def test_the_size_of_a_communicator_is_read_from_the_peer(tmp_path: Path) -> None:
    rows = [(MS, 2 * MS, 8, -3, "MPI_Allreduce", f.COLLECTIVE, f.CALL)]
    events = read_profile(write_profile(tmp_path, [rows, []], (0, 0))).events
    assert (events.members.tolist(), events.peer.tolist()) == ([2], [-1])


def test_a_missing_rank_makes_the_profile_partial(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    (tmp_path / "rank-000001.profile").unlink()
    assert "partial: rank 1 of 2 ranks left no file" in read_profile(tmp_path).notes


def test_a_rank_without_finalize_makes_the_profile_partial(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1), end=None)
    profile = read_profile(tmp_path)
    assert any("ranks 0, 1 never called MPI_Finalize" in note for note in profile.notes)
    assert profile.duration == 3 * MS


def test_lost_records_are_a_note(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND] * 5, [RECEIVE]], (0, 1), capacity=2)
    assert any("3 records were lost" in note for note in read_profile(tmp_path).notes)


def test_a_program_that_sends_nothing_is_a_note(tmp_path: Path) -> None:
    profile = read_profile(write_profile(tmp_path, [[], []], (0, 1)))
    assert "the program sent no data by MPI" in profile.notes
    assert len(profile.events.begin) == 0


def test_ranks_of_different_sizes_are_two_jobs(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    write_rank(tmp_path / "rank-000001.profile", [RECEIVE], rank=1, nodes_of=(0, 1, 2))
    with pytest.raises(UsageError, match="ranks of two jobs: ranks 0 and 1 have different sizes"):
        read_profile(tmp_path)


def test_ranks_that_disagree_on_their_node_are_two_jobs(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 0))
    write_rank(tmp_path / "rank-000001.profile", [RECEIVE], rank=1, nodes_of=(0, 1))
    with pytest.raises(UsageError, match="ranks of two jobs: ranks 0 and 1 have different nodes"):
        read_profile(tmp_path)


def test_tables_of_hosts_that_knew_only_their_own_ranks_are_joined(tmp_path: Path) -> None:
    here = {0: (0, 1, 0, 1, 1), 1: (1, 0, 1, 0, 1), 2: (0, 1, 0, 1, 1), 3: (1, 0, 1, 0, 1)}
    for rank, nodes_of in here.items():
        write_rank(tmp_path / f"rank-{rank:06}.profile", [RECEIVE], rank=rank, nodes_of=nodes_of)
    profile = read_profile(tmp_path)
    assert profile.nodes_of.tolist() == [0, 1, 0, 1, 2]
    assert [rank.node for rank in profile.ranks] == [0, 1, 0, 1]
    assert profile.names[2] == "node 2"
    assert any("the node of rank 4 may not be known" in note for note in profile.notes)


def test_ranks_that_never_ran_together_are_two_jobs(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    late = START_WALL_NS + 3_600_000 * MS
    write_rank(tmp_path / "rank-000001.profile", [RECEIVE], rank=1, nodes_of=(0, 1), start_wall_ns=late)
    with pytest.raises(UsageError, match="never ran at the same time"):
        read_profile(tmp_path)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    write_rank(tmp_path / "rank-000001.profile", [RECEIVE], rank=1, nodes_of=(0, 1), version=3)
    with pytest.raises(UsageError, match="has format 3"):
        read_profile(tmp_path)


def test_a_renamed_file_is_refused(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    (tmp_path / "rank-000001.profile").rename(tmp_path / "rank-000007.profile")
    with pytest.raises(UsageError, match="is the file of rank 1"):
        read_profile(tmp_path)


@pytest.mark.parametrize("manifest", [None, {"schema": "elbowroom/profile", "version": 1}])
def test_a_folder_without_ranks_is_refused_with_the_likely_cause(
    tmp_path: Path, manifest: dict[str, object] | None
) -> None:
    if manifest:
        (tmp_path / "profile.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="never called MPI_Init" if manifest else "holds no profile"):
        read_profile(tmp_path)


def test_a_manifest_is_read(tmp_path: Path) -> None:
    write_profile(tmp_path, [[SEND], [RECEIVE]], (0, 1))
    content = {"schema": "elbowroom/profile", "version": 1, "command": ["./app"], "notes": ["noted"]}
    (tmp_path / "profile.json").write_text(json.dumps(content))
    profile = read_profile(tmp_path)
    assert profile.manifest is not None
    assert (profile.manifest.command, profile.notes) == (("./app",), ("noted",))


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "missing"):
        with pytest.raises(UsageError):
            read_profile(tmp_path / name)
