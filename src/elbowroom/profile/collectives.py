"""How many bytes of a collective operation leave the node of a process, and reach it from other nodes.

A record has what the process gave the call (lib/pmpi); what the MPI library makes of it is not recorded. For
alltoall the answer is exact. For the others it is that of the usual algorithms: rings for large vectors,
recursive doubling for small ones, trees that reach each node once (Thakur, Rabenseifner, Gropp 2005).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
