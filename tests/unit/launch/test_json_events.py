"""json-events reads what elbowroom's reader in Python reads, or declines the file."""

import gzip
import io
import json
import os
import random
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.launch import trace_reader
from elbowroom.trace.overlap.chrome import read_json
from elbowroom.trace.overlap.events import Events
from event_columns import rows
from made_overlap import Recipe, kineto, make


@pytest.fixture(scope="module", autouse=True)
def _every_size():
    patch = pytest.MonkeyPatch()
    patch.setattr(trace_reader, "LARGE_JSON", 0)
    yield
    patch.undo()


def read_fast(path: Path) -> Events | None:
    """None where the file is declined."""
    reader = trace_reader.json_reader(path)
    assert reader is not None, "json-events was not built"
    with reader(path) as stream:
        declined = not stream.peek(1)  # type: ignore[attr-defined]
    return None if declined else read_json(path, reader)


def check_same(path: Path) -> bool:
    """Whether it was read; fails where the two readers differ."""
    fast = read_fast(path)
    if fast is None:
        return False
    slow = read_json(path)
    assert (fast.job, fast.doubts, fast.notes) == (slow.job, slow.doubts, slow.notes)
    assert rows(fast) == rows(slow)
    return True


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2**63), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4), st.lists(st.integers(0, 9), max_size=3),
)  # fmt: skip
TIMES = st.one_of(st.integers(0, 10**7), st.floats(0, 1e7), st.just("12.5"), st.just("x"), st.none())
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "stream": st.integers(0, 3), "device": st.integers(-1, 2),
        "correlation": VALUES, "External id": VALUES,
        "grid": st.lists(st.integers(1, 9), max_size=3), "block": st.lists(st.integers(1, 9), max_size=3),
        "shared memory": st.integers(0, 99), "Input Dims": st.lists(st.integers(1, 9), max_size=3),
        "Collective name": st.sampled_from([None, "allreduce"]), "name": st.sampled_from(["GPU 0", "python"]),
        "labels": st.just("GPU 1"), "sort_index": st.integers(0, 6_000_000), "other": VALUES,
    },
)  # fmt: skip
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXBEMsfi")},
    optional={
        "name": st.sampled_from(["gemm", "nccl:all_reduce", 'a "quote"\n\u00e9', "process_name"]),
        "cat": st.sampled_from(["kernel", "cpu_op", "cuda_runtime", "gpu_memcpy", "other", ""]),
        "pid": st.sampled_from([0, 1, "host"]), "tid": st.sampled_from([0, 7, "stream 7"]),
        "ts": TIMES, "dur": TIMES, "args": ARGUMENTS,
    },
)  # fmt: skip


def test_kernels_of_one_grid_with_other_blocks_or_shared_memory_are_other_classes(tmp_path):
    launches = [([128, 1, 1], 0), ([256, 1, 1], 0), ([256, 1, 1], 512)]
    events = [
        {
            "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10 * number, "dur": 5,
            "args": {"device": 0, "stream": 7, "grid": [4, 1, 1], "block": block, "shared memory": shared},
        }
        for number, (block, shared) in enumerate(launches)
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert check_same(path)
    assert [one.detail for one in read_json(path).classes] == [
        "grid 4x1x1, block 128",
        "grid 4x1x1, block 256",
        "grid 4x1x1, block 256, 512 B shared",
    ]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "indented"])
def test_a_trace_is_read_as_in_python(tmp_path, packed, indent):
    document = json.loads(kineto(make(Recipe(seed=3, instances=300))))
    data = json.dumps(document, indent=indent).encode()
    path = tmp_path / ("trace.json.gz" if packed else "trace.json")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert check_same(path)


def test_a_trace_of_many_windows_and_members_is_read_as_in_python(tmp_path):
    event = {
        "ph": "X",
        "name": "gemm",
        "cat": "kernel",
        "pid": 0,
        "tid": 7,
        "dur": 2,
        "args": {"text": "},{" * 50},
    }
    events = [{**event, "ts": 10 * number, "name": f"gemm {number % 5}"} for number in range(60_000)]
    data = json.dumps(
        {"before": [1], "traceEvents": events, "distributedInfo": {"rank": 3, "world_size": 8}}
    ).encode()
    assert len(data) > 3 * 4 << 20
    half = len(data) // 2
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1))
    assert check_same(path)


@settings(max_examples=25, deadline=None)
@given(
    events=st.lists(EVENTS, max_size=30),
    around=st.dictionaries(st.sampled_from("abc"), VALUES),
    as_list=st.booleans(),
)
def test_any_events_are_read_as_in_python(tmp_path_factory, events, around, as_list):
    path = tmp_path_factory.mktemp("events") / "trace.json"
    path.write_text(json.dumps(events if as_list else {**around, "traceEvents": events, **around}))
    assert check_same(path)


def test_damaged_traces_are_declined_or_read_as_in_python(tmp_path):
    whole = kineto(make(Recipe(seed=4, instances=40)))
    path = tmp_path / "trace.json"
    chance, read = random.Random(5), 0
    for _ in range(30):
        at = chance.randrange(len(whole))
        path.write_bytes(
            whole[:at]
            + chance.choice([b"", b"\xff", b"x", b"]", b'"', b"{"])
            + whole[at + chance.randrange(3) :]
        )
        read += check_same(path)
    path.write_bytes(whole[:-40])
    assert not check_same(path)
    assert read < 30


@pytest.mark.parametrize("cut", [1, 9, 400])
def test_cut_compressed_data_are_declined(tmp_path, cut):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(kineto(make(Recipe(seed=4, instances=40))))[:-cut])
    assert read_fast(path) is None


@pytest.mark.parametrize("kept", [0, 3, 5, 1000, -1])
def test_a_trace_whose_program_dies_is_read_in_python(tmp_path, kept):
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(make(Recipe(seed=4, instances=40))))
    reader = trace_reader.json_reader(path)
    with reader(path) as stream:
        output = stream.read()
    assert rows(read_json(path, lambda _: nullcontext(io.BytesIO(output[:kept])))) == rows(read_json(path))


def test_small_traces_need_no_program(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 32 << 20)
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(make(Recipe(seed=4, instances=40))))
    assert trace_reader.json_reader(path) is None


PUBLIC = sorted(Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "/nonexistent")).glob("kineto/*.json.gz"))


@pytest.mark.skipif(not PUBLIC, reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_public_traces_are_read_as_in_python(path):
    assert check_same(path)
