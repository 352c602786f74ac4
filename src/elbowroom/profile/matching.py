"""Which send belongs to which receive, and which calls of all ranks are one collective operation.

Records have no tags and no communicators. The k-th message of a sender to a receiver is matched with the k-th
one of the same bytes at the receiver, then what is left with each other in order: MPI keeps this order for
messages with one tag and communicator. Both are counted from the last one, as a ring loses the first ones.

How many bytes of a collective operation leave the node of a process, and reach it from other nodes.

A record has what the process gave the call (lib/pmpi); what the MPI library makes of it is not recorded. For
alltoall the answer is exact. For the others it is that of the usual algorithms: rings for large vectors,
recursive doubling for small ones, trees that reach each node once (Thakur, Rabenseifner, Gropp 2005).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def match(sends: Ints, receives: Ints) -> tuple[Ints, Ints]:
    """Rows of equal keys, matched from the last one of each key on: indices in `sends` and in `receives`.

    Both (N, K) integers, the rows of a key in order of time.
    """
    if not len(sends) or not len(receives):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    keys = codes(np.concatenate([sends, receives]))
    a, b = keys[: len(sends)], keys[len(sends) :]
    wide = np.int64(max(len(a), len(b)) + 1)
    left, right = a * wide + from_last(a), b * wide + from_last(b)
    _, at_a, at_b = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    return at_a, at_b


def codes(rows: Ints) -> Ints:
    """A number for each row of integers (N, K), the same for equal rows. Much faster than unique rows."""
    code = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        at = dense(column)
        code = dense(code * (at.max(initial=0) + 1) + at)
    return code


def dense(values: npt.NDArray[np.integer]) -> Ints:
    """The place of each value (N,) among the different ones, in order."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low <= 4 * len(values):  # a table of the values is much faster than sorting them
        at = values.astype(np.int64) - low
        there = np.zeros(high - low + 1, dtype=bool)
        there[at] = True
        return (np.cumsum(there) - 1)[at]
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    result = np.zeros(len(values), dtype=np.int64)
    result[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
    return result


def from_last(keys: Ints) -> Ints:
    """For each row how many rows with the same key come after it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    ends = np.searchsorted(ordered, ordered, side="right")
    result = np.empty(len(keys), dtype=np.int64)
    result[order] = ends - 1 - np.arange(len(keys))
    return result


def matched_messages(send: dict[str, Ints], receive: dict[str, Ints]) -> tuple[Ints, Ints]:
    """Sends and receives that belong together. Each of `from`, `to`, `bytes`, `begin` and `end`, in order of
    `begin` for one pair of ranks; what would be complete before it was sent is not matched.
    """
    rounds = (("from", "to", "bytes"), ("from", "to"))
    free_s, free_r = np.arange(len(send["from"])), np.arange(len(receive["from"]))
    pairs: list[tuple[Ints, Ints]] = []
    for names in rounds:
        a, b = match(
            np.stack([send[name][free_s] for name in names], axis=1),
            np.stack([receive[name][free_r] for name in names], axis=1),
        )
        a, b = free_s[a], free_r[b]
        good = receive["end"][b] >= send["begin"][a]
        pairs.append((a[good], b[good]))
        free_s, free_r = np.setdiff1d(free_s, a[good], True), np.setdiff1d(free_r, b[good], True)
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def last_begins(rank: Ints, call: Ints, begin: Ints, ranks: int) -> Ints:
    """For operations of all ranks: when the last rank called each of them; its own begin where not all are
    there.
    """
    if not len(rank):
        return begin
    group, members = operations(rank, call)
    latest = np.full(len(members), np.iinfo(np.int64).min)
    np.maximum.at(latest, group, begin)
    return np.where(members[group] == ranks, latest[group], begin)


def operations(rank: Ints, call: Ints) -> tuple[Ints, Ints]:
    """Which operation each call belongs to (the k-th last one of its function in each rank), and how many
    ranks each operation has.
    """
    place = from_last(codes(np.stack([rank, call], axis=1)))
    group = codes(np.stack([call, place], axis=1))
    return group, np.bincount(group)


Floats = npt.NDArray[np.float64]

SMALL = 10_000
"""Bytes of an allreduce up to which libraries use recursive doubling (Open MPI's and MPICH's defaults)."""

EXACT = ("Alltoall", "Barrier")
TO_ALL = ("Alltoall", "Alltoallv", "Alltoallw")
"""Operations in which each process sends to all others."""
WAITING = ("Alltoall", "Alltoallv", "Alltoallw", "Allgather", "Allgatherv", "Allreduce", "Barrier",
           "Reduce_scatter", "Reduce_scatter_block")  # fmt: skip
"""Operations of which no process can have the result before all have called them."""
ROOT_FIRST = ("Bcast", "Scatter", "Scatterv")
"""Operations of which no process can have the result before the root has called them."""


class Moved(NamedTuple):
    """Bytes of one process that leave its node (`out`), and that reach it (`into`)."""

    out: Floats
    into: Floats


def base_name(call: str) -> str:
    """`Alltoall` of MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, MPI_Alltoall_c, mpi_alltoall_."""
    bare = call.removeprefix("P").removeprefix("MPI_").removeprefix("mpi_")
    name = re.sub(r"(_init)?(_c)?_{0,2}$", "", bare)
    if name[:1] == "I" and name[1:2].islower():
        name = name[1:]
    return name[:1].upper() + name[1:]


def moved(name: str, size: Floats, members: Floats, local: Floats, is_root: npt.NDArray[np.bool_]) -> Moved:
    """`name` as base_name gives it; `size`: bytes of the record; `members`, `local`: processes of the
    communicator, and those of them on this process' node; `is_root`: where the operation has a root.
    """
    apart = np.maximum(members - local, 0.0)
    nodes = np.maximum(np.ceil(members / local), 1.0)
    ring = size * (members - 1) / local
    once = size * (nodes - 1) / nodes / local
    zero = np.zeros_like(size)
    match name:
        case "Alltoall":
            both = size * apart
        case "Alltoallv" | "Alltoallw":
            # The sum of all parts, that of the process itself too.
            both = size * apart / members
        case "Allgather" | "Allgatherv" | "Reduce_scatter_block":
            both = ring
        case "Allreduce":
            small = size * np.ceil(np.log2(nodes))
            both = np.where(size <= SMALL, small, 2 * ring / members)
        case "Reduce_scatter":
            both = ring / members
        case "Gather" | "Gatherv":
            return Moved(_where(is_root, zero, size * apart / members), _where(is_root, size * apart, zero))
        case "Scatter" | "Scatterv":
            return Moved(_where(is_root, size * apart, zero), _where(is_root, zero, size * apart / members))
        case (
            "Neighbor_allgather" | "Neighbor_allgatherv" | "Neighbor_alltoall" | "Neighbor_alltoallv"
            | "Neighbor_alltoallw"
        ):  # fmt: skip
            # The sum of what goes to all neighbours.
            both = size * apart / np.maximum(members - 1, 1.0)
        case "Bcast" | "Reduce" | "Scan" | "Exscan":
            both = once
        case _:
            both = zero
    both = np.where(apart > 0, both, 0.0)
    return Moved(both, both)


def flows(name: str, members: Floats, local: Floats) -> Floats:
    """To how many processes of other nodes a process sends at once in this operation, and receives from.

    A NIC that is shared serves each connection alike, so an operation with three of them gets three times as
    much of it as one message beside it. Large exchanges between all post everything at once in Open MPI and
    in MPICH (basic linear, scattered); in rings and trees a process has one partner at a time.
    """
    if name in TO_ALL:
        return np.maximum(members - local, 1.0)
    return np.ones_like(members)


def _where(mask: npt.NDArray[np.bool_], yes: Floats, no: Floats) -> Floats:
    result: Floats = np.where(mask, yes, no)
    return result
