"""Colours of a trace's types of events."""

from __future__ import annotations

import pytest

from elbowroom.trace.activity_figures import trace_figures
from elbowroom.trace.documents import Stat, TypeStat


def hues(name: str, category: str) -> set[str | None]:
    """In which colours the figures draw such a type."""
    kind = TypeStat(name=name, category=category, events=5, per_bin=(2.0, 3.0))
    stat = Stat(duration_ns=100, bin_ns=50.0, types=(kind,), threads=(), ranks=())
    by_type, _, over_time = trace_figures(stat)
    return {series.hue for series in (*by_type.series, *over_time.series)}


@pytest.mark.parametrize("name", ["MPI_Init", "MPI_Finalize", "MPI_Comm_dup", "PMPI_Comm_split"])
def test_set_up_of_mpi_is_neither_communication_nor_another_type(name: str) -> None:
    assert hues(name, "mpi") == {"black"}


def test_calls_that_communicate_and_tasks_have_their_colours() -> None:
    assert hues("MPI_Send", "mpi") == {"blue"}
    assert hues("message", "message") == {"blue"}
    assert hues("potrf", "task") == {"red"}
