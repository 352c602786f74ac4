"""A merged trace as Parquet."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow.compute
import pyarrow.parquet
import pytest

import made_columns as made
from elbowroom.errors import MachineError
from elbowroom.store import trace_parquet
from elbowroom.trace.activity import read_activity
from elbowroom.trace.columns import BEGIN, COUNTER, END, EVENT, EVENTS, TraceColumns

HEAD = made.job(texts=[(1, made.SOLVE, 5, "solve(5)")], warnings=["rank 1 was killed"])


def written(path: Path, data: bytes) -> pyarrow.Table:
    rows = trace_parquet.write_parquet(io.BytesIO(data), path / "out.parquet")
    table = pyarrow.parquet.read_table(path / "out.parquet")
    assert table.num_rows == rows
    return table


def test_events_have_names_and_messages_join_at_both_ends(tmp_path: Path) -> None:
    ends, message = made.message(1, 20, 0, 30, 1, flags=1)
    power = made.event(40, 1, COUNTER, made.POWER, first=2**64 - 3, small=2)
    lonely = made.event(50, 0, 4, made.MPI_SEND, first=7 << 32 | 1, second=8, flags=4, error=-1)
    events = [*made.task(5, 0, 10, thread=1), *ends, power, lonely]
    table = written(tmp_path, made.stream(HEAD, events, [message], [(60, 70, 3, 1), (70, 71, 0, 1)]))
    rows = table.to_pylist()
    assert [row["kind"] for row in rows] == [
        *("begin", "end", "send", "receive", "counter", "send", "lost", "flush")
    ]
    assert rows[0]["text"] == "solve(5)"
    assert (rows[0]["category"], rows[0]["type"], rows[0]["thread_name"]) == ("task", "solve", "worker 0")
    assert [row["message"] for row in rows] == [None, None, 1, 1, None, None, None, None]
    assert (rows[3]["peer"], rows[3]["communicator"], rows[3]["tag"], rows[3]["bytes"]) == (0, 7, 3, 400)
    assert rows[2]["tachyon"]
    assert rows[5]["unmatched"]
    assert rows[5]["error_ns"] is None
    assert (rows[4]["value"], rows[4]["small"]) == (-3, 2)
    assert (rows[6]["lost"], rows[6]["time_ns"], rows[6]["until_ns"], rows[6]["type"]) == (3, 60, 70, None)
    job = json.loads(table.schema.metadata[b"job"])
    assert job["warnings"] == ["rank 1 was killed"]
    assert job["types"][0]["fields"] == ["block", "task", "cells"]


def test_a_trace_without_events_is_a_file_without_rows(tmp_path: Path) -> None:
    assert written(tmp_path, made.stream(HEAD)).num_rows == 0


def test_many_events_become_row_groups_with_the_same_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_parquet, "ROWS", 1000)
    events = np.zeros(5000, dtype=EVENTS)
    events["time"] = np.arange(5000)
    events["second"] = np.arange(5000) ** 3
    parts = [made.blocks(b"EVNT", events[at : at + 700]) for at in range(0, 5000, 700)]
    done = b"DONE" + np.uint32(1).tobytes() + np.array([5000, 0, 0], dtype="<u8").tobytes()
    table = written(tmp_path, b"".join([made.job(), *parts, done]))
    assert pyarrow.compute.sum(table["second"]).as_py() == int(events["second"].sum())
    assert table["time_ns"].to_numpy().tolist() == list(range(5000))
    assert pyarrow.parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups > 3


def test_a_stream_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    data = made.stream(HEAD, made.task(1, 0, 10))
    with pytest.raises(MachineError, match="ends early"):
        trace_parquet.write_parquet(io.BytesIO(data[:-5]), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_buffers_that_a_runtime_got_are_a_table(tmp_path: Path) -> None:
    register, use, copy, unregister = range(len(made.TYPES), len(made.TYPES) + 4)
    head = json.loads(made.job(threads=2))
    types = [
        *head["types"],
        {"name": "register data", "category": 1, "fields": ["node", "bytes", "data"]},
        {"name": "use", "category": 1, "fields": ["mode", "task", "data"]},
        {"name": "copy", "category": 1, "fields": ["nodes", "bytes", "data"]},
        {"name": "unregister data", "category": 1, "fields": ["", "data", ""]},
    ]
    events = [
        made.event(10, 1, EVENT, register, first=4096, second=1),
        made.event(20, 2, EVENT, register, first=2**20, second=1),
        made.event(25, 2, EVENT, use, first=5, second=1),
        made.event(26, 2, EVENT, use, first=6, second=1),
        made.event(28, 2, BEGIN, copy, first=2**20, second=1),
        made.event(29, 2, END, copy, first=2**20, second=1),
        *made.task(5, 30, 40),
        made.event(50, 1, BEGIN, unregister, first=1),
        made.event(51, 1, END, unregister, first=1),
    ]
    stream = io.BytesIO(made.stream(made.job(threads=2, types=types), events))
    activity = read_activity(TraceColumns(stream))
    paths = trace_parquet.write_tables(activity, tmp_path)
    assert [path.name for path in paths] == ["tasks.parquet", "communications.parquet", "buffers.parquet"]
    rows = pyarrow.parquet.read_table(tmp_path / "buffers.parquet").to_pylist()
    assert [list(row.values()) for row in rows] == [
        [0, 1, 1, 10, 50, 4096, 0, 0],
        [1, 1, 0, 20, None, 2**20, 2, 2**20],
    ]


def test_uses_of_buffers_are_unknown_where_they_were_not_recorded(tmp_path: Path) -> None:
    head = json.loads(made.job(threads=2))
    types = [*head["types"], {"name": "register data", "category": 1, "fields": ["", "bytes", ""]}]
    events = [made.event(10, 1, EVENT, len(made.TYPES), first=4096), *made.task(5, 30, 40)]
    stream = io.BytesIO(made.stream(made.job(threads=2, types=types), events))
    trace_parquet.write_tables(read_activity(TraceColumns(stream)), tmp_path)
    (row,) = pyarrow.parquet.read_table(tmp_path / "buffers.parquet").to_pylist()
    assert (row["bytes"], row["data"], row["uses"], row["unregistered_ns"]) == (4096, None, None, None)
