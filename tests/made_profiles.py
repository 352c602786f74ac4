"""Profiles as lib/profile writes them, from lists of records: what tests of elbowroom.profile read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elbowroom.profile import rank_file as f

MS = 1_000_000
START_NS, START_WALL_NS = 5_000_000_000, 1_700_000_000_000_000_000

Row = tuple[Any, ...]
"""begin, end (ns since the start), bytes, peer, name of the call, kind, flags."""


def write_rank(
    path: Path,
    rows: Sequence[Row],
    *,
    rank: int = 0,
    nodes_of: Sequence[int] = (0,),
    end: int | None = 1000 * MS,
    capacity: int | None = None,
    windows: Sequence[Row] = (),
    window_ns: int = MS,
    **header: Any,
) -> Path:
    """A file of `rank` with these records; `end`: MPI_Finalize, ns since the start, None where it never came;
    `capacity`: of the ring, which keeps the last records; `header`: fields that replace those that follow
    from the rest.
    """
    capacity = len(rows) + 3 if capacity is None else capacity
    names = list(dict.fromkeys(row[4] for row in rows)) or ["MPI_Init"]
    head = np.zeros(1, f.HEADER)
    node = nodes_of[rank]
    local = [other for other, where in enumerate(nodes_of) if where == node]
    at = f.HEADER_BYTES
    calls_at = at + 4 * len(nodes_of)
    windows_at = calls_at + f.CALL_KIND.itemsize * len(names)
    records_at = windows_at + f.WINDOW.itemsize * (len(windows) + 2)
    inside = [row for row in rows if row[6] & f.CALL]
    values = {
        "magic": f.MAGIC,
        "version": f.VERSION,
        "header_bytes": f.HEADER_BYTES,
        "rank": rank,
        "size": len(nodes_of),
        "node": node,
        "nodes": max(nodes_of) + 1,
        "local_rank": local.index(rank),
        "local_size": len(local),
        "pid": 100 + rank,
        "start_wall_ns": START_WALL_NS,
        "start_ns": START_NS,
        "end_ns": 0 if end is None else START_NS + end,
        "window_ns": window_ns,
        "windows": len(windows) + 2,
        "window_count": len(windows),
        "records": capacity,
        "written": len(rows),
        "lost": max(0, len(rows) - capacity),
        "calls": len(inside),
        "mpi_ns": sum(row[1] - row[0] for row in inside),
        "call_kinds": len(names),
        "nodes_at": at,
        "calls_at": calls_at,
        "windows_at": windows_at,
        "records_at": records_at,
        "host": b"node%d" % node,
        "mpi": b"Made MPI 1.0",
        **header,
    }
    for name, value in values.items():
        head[name] = value
    path.write_bytes(
        head.tobytes().ljust(f.HEADER_BYTES, b"\0")
        + np.array(nodes_of, "<i4").tobytes()
        + _calls(rows, names).tobytes()
        + np.array([*windows, *[(0,) * 8] * 2], f.WINDOW).tobytes()
        + _ring(rows, names, capacity).tobytes()
    )
    return path


def _calls(rows: Sequence[Row], names: list[str]) -> np.ndarray[Any, Any]:
    table = np.zeros(len(names), f.CALL_KIND)
    for at, name in enumerate(names):
        own = [row for row in rows if row[4] == name and row[6] & f.CALL]
        table[at] = (name.encode(), len(own), sum(row[1] - row[0] for row in own), sum(row[2] for row in own))
    return table


def _ring(rows: Sequence[Row], names: list[str], capacity: int) -> np.ndarray[Any, Any]:
    ring = np.zeros(capacity, f.RECORD)
    for number, (begin, end, size, peer, name, kind, flags) in list(enumerate(rows))[
        -capacity or len(rows) :
    ]:
        at = START_NS + begin, (START_NS + end if end else 0)
        ring[number % capacity] = (*at, size, peer, names.index(name), kind, flags)
    return ring


def write_profile(
    folder: Path, rows_of: Sequence[Sequence[Row]], nodes_of: Sequence[int], **options: Any
) -> Path:
    """A profile folder of ranks with these records, without a manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, rows in enumerate(rows_of):
        write_rank(folder / f"rank-{rank:06d}.profile", rows, rank=rank, nodes_of=nodes_of, **options)
    return folder


class MadeJob:
    """Ranks that compute and communicate over a NIC of known bandwidth: what a recorder would have written,
    from a simulation in which all ranks go on together (`now`, ns). Two nodes by default.
    """

    def __init__(self, ranks: int, nodes: int = 2, bandwidth: float = 1e9, seed: int = 0) -> None:
        self.nodes_of = [rank * nodes // ranks for rank in range(ranks)]
        self.rows: list[list[Row]] = [[] for _ in range(ranks)]
        self.now, self.bandwidth = MS, bandwidth
        self._random = np.random.default_rng(seed)

    def compute(self, ns: int, noise: float = 0.0) -> None:
        """All ranks compute, and meet again."""
        self.now += max(1, int(ns * (1 + noise * self._random.uniform(-1, 1))))

    def alltoall(self, size: int) -> None:
        """`size` bytes from each rank to each other one, all at once."""
        ranks = len(self.rows)
        here = self.nodes_of.count(0)
        end = self.now + int(size * here * (ranks - here) / self.bandwidth * 1e9) + 1000
        for rank in range(ranks):
            row = (self.now, end, size, -ranks - 1, "MPI_Alltoall", f.COLLECTIVE, f.CALL | f.BETWEEN)
            self.rows[rank].append(row)
        self.now = end

    def allreduce(self, size: int = 8) -> None:
        """A small reduction, which takes 20 us."""
        ranks = len(self.rows)
        end, flags = self.now + 20_000, f.CALL | f.BETWEEN
        for rank in range(ranks):
            row = (self.now, end, size, -ranks - 1, "MPI_Allreduce", f.COLLECTIVE, flags)
            self.rows[rank].append(row)
        self.now += 20_000

    def exchange(self, size: int) -> None:
        """Each rank sends `size` bytes to its partner on the other node, and receives as many."""
        ranks = len(self.rows)
        here = self.nodes_of.count(0)
        end = self.now + int(size * here / self.bandwidth * 1e9) + 1000
        for rank in range(ranks):
            peer = (rank + ranks // 2) % ranks
            flags = f.CALL | f.BETWEEN
            self.rows[rank].append((self.now, end, size, peer, "MPI_Sendrecv", f.SENDRECV, flags))
            self.rows[rank].append((self.now, end, size, peer, "MPI_Sendrecv", f.RECEIVE, f.BETWEEN))
        self.now = end

    def mark(self, level: int = 1) -> None:
        """MPI_Pcontrol."""
        for rows in self.rows:
            rows.append((self.now, self.now + 1, level, -1, "MPI_Pcontrol", f.MARK, f.CALL))
        self.now += 1

    def write(self, folder: Path) -> Path:
        """The profile folder."""
        return write_profile(folder, self.rows, self.nodes_of, end=self.now)
