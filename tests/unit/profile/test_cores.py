"""Threads and ranks that share cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from elbowroom.profile import rank_tables as t
from elbowroom.profile.cores import sharing
from elbowroom.profile.profile import Profile, read_profile
from made_profiles import MS, Row, write_rank

Thread = tuple[int, int, int]
"""First and last core, CPU time (ms)."""
SENT: Row = (MS, 2 * MS, 8, 0, "MPI_Send", f.SEND, f.CALL)


def profile_of(folder: Path, threads: Sequence[Sequence[Thread]]) -> Profile:
    """Ranks on one node with these threads."""
    for rank, own in enumerate(threads):
        places = [
            (100 + at, last - first + 1, first, last, 1000 * first + last, ms * MS, MS, first, 0, 0, 0)
            for at, (first, last, ms) in enumerate(own)
        ]
        write_rank(
            folder / f"rank-{rank:06d}.profile",
            [SENT],
            rank=rank,
            nodes_of=[0] * len(threads),
            places=places,
        )
    return read_profile(folder)


def notes_of(folder: Path, threads: Sequence[Sequence[Thread]]) -> list[str]:
    return [note for note in profile_of(folder, threads).notes if "share" in note]


def test_threads_of_several_ranks_on_one_core_are_named(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, [[(0, 0, 500), (0, 0, 400)], [(0, 0, 500), (0, 0, 400)]])
    assert notes == ["4 threads of 2 ranks share core 0"]


def test_threads_of_one_rank_that_was_bound_to_a_core_share_it(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, [[(0, 0, 500), (0, 0, 400)], [(1, 1, 500)]])
    assert notes == ["2 threads of 1 rank share core 0"]


def test_more_threads_than_cores_that_nobody_bound_share_them(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, [[(0, 3, 500)] * 3, [(0, 3, 400)] * 3])
    assert notes == ["6 threads of 2 ranks share 4 cores (0-3)"]


def test_helper_threads_that_hardly_run_share_nothing(tmp_path: Path) -> None:
    assert notes_of(tmp_path, [[(0, 0, 500), (0, 0, 2), (0, 0, 0)], [(1, 1, 500), (0, 1, 3)]]) == []


def test_of_many_cores_the_last_sentence_has_the_sum(tmp_path: Path) -> None:
    notes = notes_of(tmp_path, [[(core, core, 500), (core, core, 500)] for core in range(6)])
    assert len(notes) == 5
    assert notes[-1] == "4 threads of 2 ranks share 2 more cores"


def test_a_file_of_the_first_release_has_no_threads(tmp_path: Path) -> None:
    write_rank(tmp_path / "rank-000000.profile", [SENT], version=1)
    assert read_profile(tmp_path).ranks[0].threads == ()


def test_of_threads_in_a_file_of_format_1_waits_and_cores_are_not_known(tmp_path: Path) -> None:
    write_rank(tmp_path / "rank-000000.profile", [SENT], version=1, places=[(100, 1, 3, 3, 7, 5 * MS)])
    (thread,) = read_profile(tmp_path).ranks[0].threads
    assert thread == t.ThreadPlace(thread=100, cpus=1, first=3, last=3, mask=7, cpu_ns=5 * MS)
    assert (thread.waited_ns, thread.cpu, thread.node, thread.migrations) == (None, None, None, None)


def test_a_thread_has_its_wait_its_core_and_how_often_it_moved(tmp_path: Path) -> None:
    places = [(100, 4, 0, 3, 7, 5 * MS, 2 * MS, 3, 1, 6, 0), (101, 4, 0, 3, 7, 0, 0, -1, -1, 0, 0)]
    write_rank(tmp_path / "rank-000000.profile", [SENT], places=places)
    known, unknown = read_profile(tmp_path).ranks[0].threads
    assert (known.waited_ns, known.cpu, known.node, known.migrations) == (2 * MS, 3, 1, 6)
    assert (unknown.waited_ns, unknown.cpu, unknown.node, unknown.migrations) == (None, None, None, None)


@pytest.mark.parametrize(("version", "most"), [(1, t.THREADS_1), (2, 0)])
def test_a_count_of_threads_that_the_file_cannot_hold_is_damage(
    tmp_path: Path, version: int, most: int
) -> None:
    write_rank(tmp_path / "rank-000000.profile", [SENT], threads=most + 1, version=version)
    with pytest.raises(UsageError, match="threads cannot be right"):
        read_profile(tmp_path)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=8))
def test_every_core_with_two_bound_threads_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, cores: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("cores")
    found = sharing(profile_of(folder, [[(core, core, 100)] for core in cores]).ranks)
    crowded = [core for core in set(cores) if cores.count(core) > 1]
    assert bool(found) == bool(crowded)
    assert sum(int(sentence.split()[0]) for sentence in found) == sum(map(cores.count, crowded))
