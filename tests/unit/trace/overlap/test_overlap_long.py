"""Traces with more events than are analysed at once are analysed in parts; pipes are read once."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import threading
from pathlib import Path

import pytest

import benchmark_modules
from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.launch import trace_reader
from elbowroom.trace.overlap import event_rows, long_traces
from elbowroom.trace.overlap.chrome import read_json
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.raw_events import RawEvents
from made_overlap import Recipe, kineto, make

OTHERS = benchmark_modules.load("trace_reading")
EXACT = ("comp_s", "comm_s", "hidden_s", "exposed_s", "together_s", "hidden_share")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0)
    monkeypatch.setattr(long_traces, "MOST", 1500)


def operations(overlap: TraceOverlap) -> dict[str, int]:
    return {one.kind: one.operations for one in (*overlap.counted, *overlap.left_out)}


def instances(overlap: TraceOverlap) -> dict[tuple[str, str | None], tuple[int, int]]:
    return {(one.label, one.communication): (one.alone, one.overlapped) for one in overlap.classes}


@pytest.mark.parametrize("named", [True, False], ids=["steps", "no steps"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_parts_have_the_times_and_operations_of_the_whole(tmp_path, monkeypatch, ranks, named):
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0)
    made = make(Recipe(seed=2, ranks=ranks, instances=1200, slowdown=1.2))
    paths = []
    for rank in range(ranks):
        paths.append(tmp_path / f"rank-{rank}.json")
        paths[-1].write_bytes(kineto(made, rank=rank, launches=True, named=named))
    whole = api.trace_overlap(paths)
    monkeypatch.setattr(long_traces, "MOST", 1500)
    parts = api.trace_overlap(paths)
    assert "parts" in parts.notes[0]
    for name in EXACT:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-6), name
    assert operations(parts) == operations(whole)
    assert (parts.ranks, parts.steps if named else None) == (ranks, whole.steps if named else None)
    assert {key: sum(value) for key, value in instances(parts).items()}.keys() == instances(whole).keys()
    # The fastest tenth of each part: a trace that becomes slower has a tighter bound.
    assert parts.cost_at_most_s < 1.1 * whole.cost_at_most_s
    assert parts.estimate.at_most_s == parts.cost_at_most_s


@pytest.mark.parametrize("name", OTHERS.WRITERS)
def test_parts_of_other_formats_have_the_times_and_operations_of_the_whole(tmp_path, monkeypatch, name):
    path = tmp_path / name
    OTHERS.WRITERS[name](map(OTHERS._span, range(4000)), path)
    whole = api.trace_overlap(path)
    assert whole.hidden_s == pytest.approx(800 * 9e-6)
    monkeypatch.setattr(event_rows, "_BLOCK", 256)
    monkeypatch.setattr(long_traces, "MOST", 1500)
    parts = api.trace_overlap(path)
    assert "parts" in parts.notes[0]
    for field in EXACT:
        assert getattr(parts, field) == pytest.approx(getattr(whole, field), rel=1e-9), field
    assert operations(parts) == operations(whole)


def test_the_cost_of_a_part_counts_for_the_hidden_time_of_all(tmp_path, small_parts):
    made = make(Recipe(seed=3, instances=3000, slowdown=1.2))
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(made, launches=True))
    found = api.trace_overlap(path)
    assert found.estimate.grade == "measured"
    assert found.cost is not None
    assert found.cost.low < made.cost_s < found.cost.high
    assert f"{found.cost.value:.3g} s" in found.settings[0].why


def test_a_part_without_communication_counts_too(tmp_path, small_parts):
    kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "args": {"stream": 7}}
    events = [{**kernel, "name": "gemm", "ts": 10 * at, "dur": 8} for at in range(4000)]
    comm = {**kernel, "name": "ncclDevKernel_AllReduce", "tid": 9, "args": {"stream": 9}}
    events += [{**comm, "ts": 10 * at, "dur": 5} for at in range(3800, 3900)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    found = api.trace_overlap(path)
    assert found.comp_s == pytest.approx(4000 * 8e-6)
    assert found.hidden_s == pytest.approx(100 * 5e-6)
    assert operations(found) == {"computation": 4000, "collective": 100}


def through_pipe(data: bytes) -> TraceOverlap:
    """What is found in a trace that comes from a pipe, as the shell's <(...) gives it."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writing, "wb") as file:
            file.write(data)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        return api.trace_overlap(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
        writer.join(10)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_pipe_is_read_as_a_file(tmp_path, packed):
    data = kineto(make(Recipe(seed=4, instances=300)))
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    piped = through_pipe(gzip.compress(data) if packed else data)
    assert piped.hidden_s == api.trace_overlap(path).hidden_s


def test_a_pipe_with_a_name_is_refused_since_it_may_never_be_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is a named pipe; read it from stdin"):
        api.trace_overlap(tmp_path / "pipe")


def test_a_pipe_with_something_else_is_refused():
    with pytest.raises(UsageError, match="nothing else is read from a pipe"):
        through_pipe(b"SQLite format 3\0" + b"x" * 4096)


def read_fast(path: Path) -> Events:
    reader = trace_reader.json_reader(path)
    assert reader is not None
    return read_json(path, reader)


def test_a_large_trace_with_damage_is_read_up_to_there(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0)
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "args": {"text": "},{" * 20}}
    data = json.dumps({"traceEvents": [{**event, "ts": 10 * at, "dur": 12} for at in range(80_000)]}).encode()
    assert len(data) > 8 << 20
    path = tmp_path / "cut.json"
    path.write_bytes(data[:-300])
    found = read_fast(path)
    assert found.doubts == ("cut.json ends early: the events before that are analysed",)
    assert 79_990 <= len(found) < 80_000
    packed = tmp_path / "cut.json.gz"
    packed.write_bytes(gzip.compress(data)[:-900])
    assert "compressed data is cut" in read_fast(packed).doubts[0]
    damaged = tmp_path / "damaged.json"
    middle = data.index(b'"ts": 700000,')
    damaged.write_bytes(data[:middle] + b"x" + data[middle + 1 :])
    found = read_fast(damaged)
    place = data.rindex(b'{"ph"', 0, middle)
    assert found.doubts == (
        f"damaged.json is damaged from byte {place} on: the events before that are analysed",
    )
    assert len(found) == 70_000


def test_numbers_that_are_no_json_are_no_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0)
    made = kineto(make(Recipe(seed=4, instances=300)))
    path = tmp_path / "trace.json"
    path.write_bytes(made.replace(b'"device": 0', b'"occupancy": NaN, "most": -Infinity, "device": 0'))
    plain = tmp_path / "plain.json"
    plain.write_bytes(made)
    found = read_fast(path)
    assert (len(found), found.lanes) == (len(read_fast(plain)), read_fast(plain).lanes)


def test_a_trace_of_very_many_steps_has_few_classes_and_all_its_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0)
    kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 8, "args": {"stream": 7}}
    host = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 29}
    events = []
    for at in range(9000):
        comm = {"tid": 9, "name": "ncclDevKernel_AllReduce", "args": {"stream": 9}}
        events.append({**host, "name": f"ProfilerStep#{at}", "ts": 30 * at})
        events.append({**kernel, "name": "gemm", "ts": 30 * at + 2})
        events.append({**kernel, **comm, "ts": 30 * at + 6})
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    reader = trace_reader.json_reader(path)
    assert reader is not None
    with reader(path) as stream:
        header = RawEvents(stream).header
    assert header["merged"]
    assert len(header["classes"]) < 4200
    for most in (1 << 20, 20_000):
        monkeypatch.setattr(long_traces, "MOST", most)
        found = api.trace_overlap(path)
        assert found.steps == 9000
        assert found.hidden_s == pytest.approx(9000 * 4e-6)
