"""Samples of the scheduler, as a profile has them."""

from __future__ import annotations

from pathlib import Path

from elbowroom.profile import rank_file as f
from elbowroom.profile import rank_tables as t
from elbowroom.profile.profile import read_profile
from made_profiles import MS, Row, write_profile, write_rank

ROWS: list[Row] = [
    (1 * MS, 2 * MS, 600_000, 3, 1, f.RAN, 0),
    (1 * MS + 1, 3 * MS, 900_000, 2, 0, f.RAN, 0),
    (1 * MS, 2 * MS, 400_000, -1, 1, f.WAITED, 0),
    (1 * MS, 2 * MS, 8, 0, "MPI_Send", f.SEND, f.CALL),
    (2 * MS, 4 * MS, 100_000, 5, 1, f.RAN, f.OPEN),
    (2 * MS, 9 * MS, 1, -1, 1, f.WAITED, 0),
]
THREADS = [(7,) * 11, (8,) * 11]


def test_a_sample_has_the_wait_of_its_thread_and_end(tmp_path: Path) -> None:
    samples = read_profile(write_profile(tmp_path, [ROWS], [0], places=THREADS)).scheduled
    assert samples is not None
    assert samples.waited_ns is not None
    assert samples.thread.tolist() == [1, 0, 1]
    assert samples.begin.tolist() == [MS, MS + 1, 2 * MS]
    assert samples.end.tolist() == [2 * MS, 3 * MS, 4 * MS]
    assert samples.cpu_ns.tolist() == [600_000, 900_000, 100_000]
    assert samples.waited_ns.tolist() == [400_000, 0, -1]
    assert samples.cpu.tolist() == [3, 2, 5]


def test_samples_of_all_ranks_are_ordered_by_rank(tmp_path: Path) -> None:
    samples = read_profile(write_profile(tmp_path, [ROWS, ROWS[:1]], [0, 0], places=THREADS)).scheduled
    assert samples is not None
    assert samples.rank.tolist() == [0, 0, 0, 1]


def test_waits_that_no_sample_knows_are_absent(tmp_path: Path) -> None:
    rows = [(1 * MS, 2 * MS, 600_000, 3, 0, f.RAN, f.OPEN)]
    samples = read_profile(write_profile(tmp_path, [rows], [0])).scheduled
    assert samples is not None
    assert samples.waited_ns is None
    assert samples.thread.tolist() == [-1]


def test_a_profile_of_format_1_has_neither_samples_nor_sites(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row[4] == "MPI_Send"]
    old = read_profile(write_profile(tmp_path / "old", [rows], [0], version=1))
    assert (old.scheduled, old.events.site, old.events.sites) == (None, None, ())


def test_sites_of_ranks_are_one_table(tmp_path: Path) -> None:
    here = t.Site(call="MPI_Send", module="/opt/app", offset=16)
    there = t.Site(call="MPI_Send", module="/opt/app", offset=32)
    rows = [
        [(n * MS, n * MS + 1, 8, 0, site, f.SEND, f.CALL) for n, site in own]
        for own in (
            [(1, here), (2, there)],
            [(1, there), (2, "MPI_Send")],
        )
    ]
    events = read_profile(write_profile(tmp_path, rows, [0, 0])).events
    assert events.site is not None
    assert [events.sites[one] for one in events.site] == [here, there, there, t.Site(call="MPI_Send")]
    part = events.part(events.rank == 1)
    assert part.site is not None
    assert part.site.tolist() == events.site[2:].tolist()


def test_events_have_no_sites_if_a_rank_has_none(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row[4] == "MPI_Send"]
    write_profile(tmp_path, [rows, rows], [0, 0])
    (tmp_path / "rank-000001.profile").unlink()
    write_rank(tmp_path / "rank-000001.profile", rows, rank=1, nodes_of=[0, 0], version=1)
    assert read_profile(tmp_path).events.site is None
