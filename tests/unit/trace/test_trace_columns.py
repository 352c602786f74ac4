"""Columns of a merged trace: what is read of them, and what of damaged ones."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_columns as made
from elbowroom.errors import MachineError
from elbowroom.trace.columns import COUNTER, EVENT, Texts, TraceColumns


def whole() -> bytes:
    ends, message = made.message(1, 20, 0, 30, 1)
    events = [*made.task(5, 0, 10), *ends, made.event(40, 1, COUNTER, made.POWER, first=2**64 - 3)]
    return made.stream(made.job(warnings=["rank 1 was killed"]), events, [message], [(50, 60, 2, 1)])


def test_job_events_messages_and_gaps_are_read() -> None:
    columns = TraceColumns(io.BytesIO(whole()))
    assert columns.job.job == 2**64 - 1
    assert columns.job.warnings == ("rank 1 was killed",)
    assert columns.job.category(columns.job.types[made.MPI_SEND]) == "mpi"
    found = list(columns.blocks())
    assert [name for name, _ in found] == ["events", "events", "messages", "gaps"]
    events = np.concatenate([block for name, block in found if name == "events"])
    assert events["time"].tolist() == [0, 10, 20, 30, 40]
    assert int(events["first"][-1]) == 2**64 - 3
    assert found[2][1]["received"].tolist() == [30]
    assert found[3][1]["lost"].tolist() == [2]


def test_a_stream_that_comes_in_small_pieces_is_read() -> None:
    class Pieces(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 5))

    events = [block for name, block in TraceColumns(Pieces(whole())).blocks() if name == "events"]
    assert sum(len(block) for block in events) == 5


@pytest.mark.parametrize("kept", [0, 10, len(made.job()) + 3, len(made.job()) + 60, len(whole()) - 1])
def test_a_stream_that_ends_early_is_refused(kept: int) -> None:
    with pytest.raises(MachineError, match=r"ends early; merge the trace again"):
        list(TraceColumns(io.BytesIO(whole()[:kept])).blocks())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{}\n", "does not begin with a job"),
        (made.job(version=2), "version 2"),
        (made.job(categories=[]), "a category or a rank that does not exist"),
        (made.job(texts=[(9, 0, 0, "x")]), "an unknown type or thread"),
        (made.job() + b"WHAT" + bytes(4), "has a block b'WHAT'"),
        (made.stream(made.job(), [made.event(0, 9, EVENT, 0)]), "refers to thread 9 of 2"),
        (made.stream(made.job(), [made.event(0, 0, EVENT, 99)]), "an unknown type or kind"),
        (made.stream(made.job())[:-24] + bytes([1]) + bytes(23), "but states"),
    ],
)
def test_a_damaged_stream_is_refused_with_what_is_wrong(data: bytes, said: str) -> None:
    with pytest.raises(MachineError, match=said):
        list(TraceColumns(io.BytesIO(data)).blocks())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_are_read_or_refused(noise: bytes, at: int) -> None:
    data = whole()
    place = len(made.job(warnings=["rank 1 was killed"])) + at
    with contextlib.suppress(MachineError):
        list(TraceColumns(io.BytesIO(data[:place] + noise + data[place + len(noise) :])).blocks())


def test_a_text_is_found_by_rank_and_key_of_tasks_of_any_type() -> None:
    texts = [(0, made.FACTOR, 4, "first"), (2, made.SOLVE, 4, "second"), (0, made.POWER, 4, "a socket")]
    head = made.job(ranks=2, threads=2, texts=[*texts, (0, made.FACTOR, 4, "told again")])
    events = [
        made.event(0, 1, 1, made.SOLVE, first=4),
        made.event(1, 3, 1, made.FACTOR, first=4),
        made.event(2, 1, 3, made.POWER, first=4),
        made.event(3, 1, 1, made.SOLVE, first=5),
        made.event(4, 1, 4, made.MPI_SEND, first=4),
    ]
    columns = TraceColumns(io.BytesIO(made.stream(head, events, block=9)))
    found = Texts(columns.job)
    ((_, block),) = columns.blocks()
    assert found.of(block).tolist() == [3, 1, 2, -1, -1]
