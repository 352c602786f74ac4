"""Profiles as lib/profile writes them, from lists of records: what tests of elbowroom.profile read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elbowroom.profile import rank_file as f
from elbowroom.profile import rank_tables as t

MS = 1_000_000
START_NS, START_WALL_NS = 5_000_000_000, 1_700_000_000_000_000_000

Row = tuple[Any, ...]
"""begin, end (ns since the start), bytes, peer, call, kind, flags. The call: its name, or its site, or of a
sample the number of a thread.
"""


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
    places: Sequence[Row] = (),
    version: int = f.VERSION,
    **header: Any,
) -> Path:
    """A file of `rank` with these records; `end`: MPI_Finalize, ns since the start, None where it never came;
    `capacity`: of the ring, which keeps the last records; `places`: of threads, THREAD, or THREAD_1 in
    version 1; `header`: fields that replace those that follow from the rest.
    """
    capacity = len(rows) + 3 if capacity is None else capacity
    names = list(dict.fromkeys(name for row in rows if (name := _name(row[4])))) or ["MPI_Init"]
    sites = list(dict.fromkeys(row[4] for row in rows if isinstance(row[4], t.Site)))
    modules = list(dict.fromkeys((site.module, site.size, site.mtime_ns) for site in sites if site.module))
    tables = {
        "nodes": np.array(nodes_of, "<i4"),
        "threads": np.array([*places], t.THREAD if version > 1 else t.THREAD_1),
        "modules": np.array([(0, size, time, name.encode()) for name, size, time in modules], t.MODULE),
        "calls": _calls(rows, names),
        "sites": _sites(rows, names, sites, modules),
        "windows": np.array([*windows, *[(0,) * 8] * 2], f.WINDOW),
        "records": _ring(rows, names, sites, capacity),
    }
    if version == 1:
        head = np.zeros(1, f.HEADER_1)
        head["places"][0, : len(places)] = tables.pop("threads")
        tables = {name: tables[name] for name in ("nodes", "calls", "windows", "records")}
    else:
        head = np.zeros(1, f.HEADER)
    node = nodes_of[rank]
    local = [other for other, where in enumerate(nodes_of) if where == node]
    inside = [row for row in rows if row[6] & f.CALL]
    values = {
        "magic": f.MAGIC,
        "version": version,
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
        "host": b"node%d" % node,
        "mpi": b"Made MPI 1.0",
        "threads": len(places),
    }
    at = f.HEADER_BYTES
    for name, table in tables.items():
        values[f"{name}_at"] = at
        at += table.nbytes
    if version > 1:
        rooms = {f"{name}_room": len(tables[f"{name}s"]) for name in ("thread", "module", "site")}
        values |= rooms | {"modules": len(modules), "sites": len(sites), "cpu_limit": -1.0}
    for name, value in {**values, **header}.items():
        head[name] = value
    path.write_bytes(
        head.tobytes().ljust(f.HEADER_BYTES, b"\0") + b"".join(table.tobytes() for table in tables.values())
    )
    return path


def _name(call: str | t.Site | int) -> str | None:
    return call.call if isinstance(call, t.Site) else call if isinstance(call, str) else None


def _totals(rows: Sequence[Row], call: str | t.Site) -> tuple[int, int, int]:
    own = [row for row in rows if row[4] == call and row[6] & f.CALL]
    return len(own), sum(row[1] - row[0] for row in own), sum(row[2] for row in own)


def _calls(rows: Sequence[Row], names: list[str]) -> np.ndarray[Any, Any]:
    return np.array([(name.encode(), *_totals(rows, name)) for name in names], t.CALL_KIND)


def _sites(
    rows: Sequence[Row], names: list[str], sites: list[t.Site], modules: list[tuple[str, int, int]]
) -> np.ndarray[Any, Any]:
    table = np.zeros(len(sites), t.SITE)
    for at, site in enumerate(sites):
        file = (site.module, site.size, site.mtime_ns)
        module = modules.index(file) if site.module else t.NO_MODULE
        table[at] = (names.index(site.call), module, site.offset, (0,) * 3, *_totals(rows, site))
    return table


def _ring(rows: Sequence[Row], names: list[str], sites: list[t.Site], capacity: int) -> np.ndarray[Any, Any]:
    ring = np.zeros(capacity, f.RECORD)
    for number, (begin, end, size, peer, call, kind, flags) in list(enumerate(rows))[
        -capacity or len(rows) :
    ]:
        at = START_NS + begin, (START_NS + end if end else 0)
        place = call
        if isinstance(call, t.Site):
            place = len(names) + sites.index(call)
        elif isinstance(call, str):
            place = names.index(call)
        ring[number % capacity] = (*at, size, peer, place, kind, flags)
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
