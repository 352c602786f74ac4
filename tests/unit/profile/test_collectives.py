"""How many bytes of collective operations go between nodes."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.profile.matching import base_name, moved


def bytes_of(name: str, size: float, members: int, local: int, *, root: bool = False) -> tuple[float, float]:
    one = [np.array([float(value)]) for value in (size, members, local)]
    result = moved(name, *one, np.array([root]))
    return float(result.out[0]), float(result.into[0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("MPI_Alltoall", "Alltoall"),
        ("MPI_Ialltoallv", "Alltoallv"),
        ("MPI_Ibcast", "Bcast"),
        ("MPI_Allreduce_init", "Allreduce"),
        ("MPI_Allreduce_c", "Allreduce"),
        ("mpi_allreduce_", "Allreduce"),
        ("Ireduce_scatter_block", "Reduce_scatter_block"),
    ],
)
def test_a_call_is_known_by_all_its_names(call: str, name: str) -> None:
    assert base_name(call) == name


def test_an_alltoall_sends_its_part_to_each_process_of_other_nodes() -> None:
    assert bytes_of("Alltoall", 100, members=8, local=2) == (600, 600)


def test_an_alltoallv_sends_the_share_of_the_processes_on_other_nodes() -> None:
    assert bytes_of("Alltoallv", 800, members=8, local=2) == (600, 600)


def test_a_large_allreduce_goes_round_a_ring_twice() -> None:
    out, into = bytes_of("Allreduce", 1e6, members=4, local=1)
    assert out == into == pytest.approx(2 * 1e6 * 3 / 4)


def test_a_small_allreduce_doubles_its_distance() -> None:
    assert bytes_of("Allreduce", 8, members=8, local=2) == (16, 16)


def test_a_root_sends_what_all_others_receive() -> None:
    root, leaf = (bytes_of("Scatter", 100, members=8, local=2, root=root) for root in (True, False))
    assert root == (600, 0)
    # Six of the eight receive from another node, on average.
    assert leaf == (0, 75)
    assert bytes_of("Gather", 100, members=8, local=2, root=True) == (0, 600)


@pytest.mark.parametrize("name", ["Alltoall", "Allgather", "Allreduce", "Bcast", "Reduce", "Alltoallv"])
def test_nothing_leaves_the_only_node(name: str) -> None:
    assert bytes_of(name, 1000, members=4, local=4) == (0, 0)
    assert bytes_of(name, 10, members=1, local=1) == (0, 0)


def test_an_unknown_operation_moves_nothing() -> None:
    assert bytes_of("Barrier", 1000, members=4, local=2) == (0, 0)
