"""Which functions of MPI communicate."""

from __future__ import annotations

import pytest

from elbowroom.trace.columns import sets_up


@pytest.mark.parametrize(
    "name",
    ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_split", "MPI_Comm_dup", "MPI_Send_init",
     "MPI_Win_create", "MPI_Type_commit", "MPI_Comm_spawn", "MPI_Session_init", "mpi_init_"],
)  # fmt: skip
def test_calls_that_set_mpi_up_do_not_communicate(name: str) -> None:
    assert sets_up(name)


@pytest.mark.parametrize(
    "name",
    ["MPI_Send", "MPI_Isend", "MPI_Irecv_c", "MPI_Sendrecv_replace", "MPI_Isendrecv", "MPI_Wait",
     "MPI_Testsome", "MPI_Ibarrier", "MPI_Iallreduce", "MPI_Neighbor_alltoallw", "MPI_Put", "MPI_Win_unlock",
     "MPI_Rget_accumulate", "MPI_Win_flush_local_all", "mpi_send_", "MPI_Startall", "MPI_Imrecv",
     "MPI_Reduce_scatter_block", "MPI_File_write_all", "solve", "all_reduce"],
)  # fmt: skip
def test_calls_that_move_data_or_wait_do(name: str) -> None:
    assert not sets_up(name)
