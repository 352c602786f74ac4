"""One made file for each kind of bad input: a sentence on what is missing, or a result that says so; nothing
counts that was not recognised.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.launch import trace_reader
from elbowroom.trace.overlap.document import Grade, TraceOverlap
from made_overlap import Recipe, kineto, make

Event = dict[str, Any]
GEMM, REDUCE = "gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def kernel(name: str, start: float, length: float, stream: int = 7, **more: Any) -> Event:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": length,
            "args": {"device": 0, "stream": stream}, **more}  # fmt: skip


def step(number: int, start: float, length: float) -> Event:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1,
            "ts": start, "dur": length}  # fmt: skip


def steps(count: int, *, overlapping: float = 0.0, named: bool = True, offset: float = 0.0) -> list[Event]:
    """Steps of 100 us: three kernels, and a collective that hides behind the second and third."""
    events = []
    for at in range(count):
        begin = offset + 100.0 * at
        events += [kernel(GEMM, begin + 10 + 25 * place, 20.0 + place) for place in range(3)]
        events.append(kernel(REDUCE, begin + 36, 40.0, stream=9))
        events += [step(at, begin, 99 + overlapping)] if named else []
    return events


def trace(events: list[Event], rank: int | None = None) -> bytes:
    about = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    return json.dumps({**about, "traceEvents": events}).encode()


def asynchronous(name: str, category: str, number: int, start: float, end: float) -> list[Event]:
    both = {"name": name, "cat": category, "id": number, "pid": 5, "tid": 1}
    return [{**both, "ph": "b", "ts": start}, {**both, "ph": "e", "ts": end}]


def written(folder: Path, **files: bytes) -> list[str]:
    paths = []
    for name, data in files.items():
        paths.append(folder / name.replace("__", "."))
        paths[-1].write_bytes(data)
    return list(map(str, paths))


LAUNCHES = [
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at, "dur": 0.5}
    for at in range(9)
]
NCCL_PROFILER = [
    one
    for at in range(4)
    for one in (
        *asynchronous("AllReduce", "COLL", at, 100 * at, 100 * at + 50),
        *asynchronous("KernelCh", "GPU", at, 100 * at + 5, 100 * at + 45),
        {"ph": "n", "name": "ProgressStep", "cat": "PROXY", "id": at, "pid": 5, "tid": 1, "ts": 100 * at},
    )
]

REFUSED: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "two ranks with one number": (
        lambda folder: written(folder, a__json=trace(steps(3), 0), b__json=trace(steps(3), 0)),
        "has rank 0, as .* has",
    ),
    "only launches": (
        lambda folder: written(folder, a__json=trace(LAUNCHES)),
        "has no communication that is recognised",
    ),
    "launches of communication without its device": (
        lambda folder: written(
            folder, a__json=trace([{**LAUNCHES[0], "cat": "cpu_op", "name": "nccl:all_reduce"}, *LAUNCHES])
        ),
        "the host launches it .* but the device that carries it out was not recorded",
    ),
    "unknown categories only": (
        lambda folder: written(
            folder, a__json=trace([{**one, "cat": "thing", "args": {}, "pid": 3} for one in steps(3)[:3]])
        ),
        "has no communication that is recognised .*of kind unknown",
    ),
    "communication only, of NCCL's profiler": (
        lambda folder: written(folder, a__json=json.dumps([*NCCL_PROFILER, {}]).encode()),
        "has no computation that is recognised .*4 of kind collective",
    ),
    "Chakra without times": (
        lambda folder: written(folder, a__json=b'{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]}'),
        "without times: none of its 1 nodes has a duration",
    ),
    "a parquetdir without tables of events": (
        lambda folder: [str(parquet(folder / "x", StringIds={"id": [1], "value": ["gemm"]}))],
        "Nsight",
    ),
    "a pipe that is none": (lambda folder: [str(folder / "missing")], "cannot be read"),
}


def parquet(folder: Path, **tables: dict[str, list[Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as writer

    folder.mkdir()
    for name, columns in tables.items():
        writer.write_table(pyarrow.table(columns), folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_answered_is_refused_with_a_sentence(tmp_path: Path, kind: str) -> None:
    write, sentence = REFUSED[kind]
    with pytest.raises(UsageError, match=sentence):
        api.trace_overlap(write(tmp_path))


def changed(**more: Any) -> bytes:
    """A trace whose fourth event has other fields."""
    return trace([{**one, **more} if at == 3 else one for at, one in enumerate(steps(6))])


GOOD = trace(steps(6))
READ: dict[str, tuple[bytes, int]] = {
    "a time that is NaN": (changed(ts=float("nan")), 29),
    "a duration that is infinite": (changed(dur=float("inf")), 29),
    "a negative duration": (changed(dur=-5), 29),
    "a time with 30 digits": (changed(ts=10**30), 29),
    "a time that is a list": (changed(ts=[1]), 29),
    "a name that is a list": (changed(name=["x"]), 30),
    "no name": (changed(name=None), 30),
    "arguments that are text": (changed(args="x"), 30),
    "times before zero": (trace(steps(6, offset=-1e6)), 30),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, 30),
    "lines that end as on Windows": (GOOD.replace(b", ", b",\r\n"), 30),
    "names that are not UTF-8": (GOOD.replace(b'"gemm"', b'"ge\xff\xfemm"'), 30),
    "one correlation for all": (
        trace([{**one, "args": {**one.get("args", {}), "correlation": 7}} for one in steps(6)]), 30,
    ),
    "a comma behind the last event": (GOOD.replace(b"]}", b",]}"), 30),
    "two members of gz": (gzip.compress(GOOD[:500]) + gzip.compress(GOOD[500:]), 30),
    "gz filled with zeros": (gzip.compress(GOOD) + bytes(512), 30),
    "gz with something behind it": (gzip.compress(GOOD) + b"junk", 30),
    "a cut name": (GOOD[:700], 5),
}  # fmt: skip
NOT_READ: dict[str, tuple[bytes, str]] = {
    "an empty array": (b"[]", "has no events with a duration"),
    "an array of arrays": (json.dumps([steps(3)]).encode(), "has no events with a duration"),
    "events inside an event": (
        json.dumps({"traceEvents": [{"traceEvents": steps(3)}]}).encode(),
        "has no events",
    ),
    "events that are an object": (b'{"traceEvents": {"a": []}}', "has no array traceEvents"),
    "an event on each line": (
        b"\n".join(json.dumps(one).encode() for one in steps(3)),
        "has no array traceEvents",
    ),
    "deep nesting": (b"[" * 100_000, "has no events with a duration"),
    "no durations": (trace([{**one, "dur": 0} for one in steps(3)]), "has no events with a duration"),
    "begins without ends": (trace([{**one, "ph": "B"} for one in steps(3)]), "has no events with a duration"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "is text in UTF-16"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(100), "is compressed by zstd"),
    "xz": (lzma.compress(GOOD), "is compressed by xz"),
    "bzip2": (bz2.compress(GOOD), "is compressed by bzip2"),
    "zip": (b"PK\x03\x04" + bytes(100), "is a zip archive"),
}


@pytest.mark.parametrize("program", [False, True], ids=["Python", "json-events"])
@pytest.mark.parametrize("kind", [*READ, *NOT_READ])
def test_what_can_be_read_counts_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, program: bool
) -> None:
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0 if program else 1 << 30)
    path = tmp_path / "trace.json"
    path.write_bytes((READ | NOT_READ)[kind][0])
    if kind in NOT_READ:
        with pytest.raises(UsageError, match=NOT_READ[kind][1]):
            api.trace_overlap(path)
        return
    found = api.trace_overlap(path)
    assert found.events == READ[kind][1]
    assert found.events == 30 or found.doubts or any("left out" in text for text in found.notes)


def found_in(folder: Path, **files: bytes) -> Any:
    return api.trace_overlap(written(folder, **files))


def test_a_truncated_gz_is_analysed_up_to_there(tmp_path: Path) -> None:
    found = found_in(tmp_path, a__json__gz=gzip.compress(trace(steps(400)))[:-200])
    assert found.partial
    assert "compressed data is cut" in found.doubts[0]


def test_clocks_of_ranks_that_disagree_change_nothing(tmp_path: Path) -> None:
    together = found_in(tmp_path, a__json=trace(steps(5), 0), b__json=trace(steps(5), 1))
    apart = found_in(tmp_path, c__json=trace(steps(5), 0), d__json=trace(steps(5, offset=7e9), 1))
    for name in ("comp_s", "comm_s", "hidden_s", "exposed_s", "skew_s"):
        assert getattr(apart, name) == pytest.approx(getattr(together, name)), name


def test_steps_that_overlap_are_counted_once(tmp_path: Path) -> None:
    plain = found_in(tmp_path, a__json=trace(steps(6)))
    over = found_in(tmp_path, b__json=trace(steps(6, overlapping=15.0)))
    assert (over.steps, over.comp_s, over.hidden_s) == (plain.steps, plain.comp_s, plain.hidden_s)


@pytest.mark.parametrize("named", [True, False], ids=["one step", "no steps"])
def test_a_trace_of_one_step_or_none_gets_a_bound_and_the_reason(tmp_path: Path, named: bool) -> None:
    found = found_in(tmp_path, a__json=trace(steps(1, named=named)))
    assert (found.estimate.grade, found.cost_s) == ("bounded", None)
    assert found.estimate.reason
    assert found.estimate.at_most_s == found.cost_at_most_s > 0


def test_unknown_categories_are_named_and_count_as_nothing(tmp_path: Path) -> None:
    strange = [kernel("mystery", 100.0 * at, 90.0, cat="thing", pid=3, args={}) for at in range(3)]
    plain = found_in(tmp_path, a__json=trace(steps(3)))
    more = found_in(tmp_path, b__json=trace([*steps(3), *strange]))
    assert (more.comp_s, more.comm_s, more.hidden_s) == (plain.comp_s, plain.comm_s, plain.hidden_s)
    (unknown,) = [one for one in more.left_out if one.kind == "unknown"]
    assert (unknown.operations, unknown.names) == (3, ("thing",))


def test_another_device_is_read_by_its_category(tmp_path: Path) -> None:
    events = [{**one, "cat": "privateuse1_kernel"} if one["cat"] == "kernel" else one for one in steps(3)]
    found = found_in(tmp_path, a__json=trace(events))
    assert found.hidden_s == found_in(tmp_path, b__json=trace(steps(3))).hidden_s


def test_a_parquetdir_without_its_kernels_says_what_is_missing(tmp_path: Path) -> None:
    folder = parquet(
        tmp_path / "x",
        MPI_COLLECTIVES_EVENTS={"start": [0, 100], "end": [50, 150], "textId": [1, 1], "globalTid": [1, 1]},
        StringIds={"id": [1], "value": ["MPI_Allreduce"]},
    )
    with pytest.raises(UsageError, match="no computation that is recognised"):
        api.trace_overlap(folder)


def test_asynchronous_events_may_overlap_on_their_thread(tmp_path: Path) -> None:
    collectives = [
        *asynchronous("AllReduce", "COLL", 1, 0, 80),
        *asynchronous("AllGather", "COLL", 2, 40, 120),
        {"name": "AllReduce", "cat": "COLL", "id": 3, "pid": 5, "tid": 1, "ph": "b", "ts": 130},
    ]
    work = {"ph": "X", "cat": "task", "name": "solve", "pid": 5, "tid": 2, "ts": 20, "dur": 40}
    found = found_in(tmp_path, a__json=trace([*collectives, work]))
    assert (found.ranks, found.comm_s, found.hidden_s) == (1, pytest.approx(120e-6), pytest.approx(40e-6))
    assert [one.operations for one in found.counted if one.kind == "collective"] == [2]
    assert any("1 events have no end" in text for text in found.notes)


def test_nodes_of_chakra_with_times_are_events(tmp_path: Path) -> None:
    nodes = [{"id": at, "name": one["name"], "cat": one["cat"], "ts": one["ts"], "inclusive_dur": one["dur"],
              "stream": one["tid"]} for at, one in enumerate(steps(3, named=False))]  # fmt: skip
    data = json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": [*nodes, {"id": 99, "name": "x"}]})
    found = found_in(tmp_path, et__json=data.encode())
    assert found.hidden_s == found_in(tmp_path, a__json=trace(steps(3))).hidden_s
    assert "1 nodes have no time" in found.notes[0]


def faster_beside_communication() -> list[Event]:
    """Kernels that would be faster beside communication than alone."""
    chance = random.Random(1)
    events = []
    for at in range(60):
        time = begin = 400.0 * at
        covered = chance.randrange(6)
        for place in range(6):
            length = (20 + place) * chance.uniform(0.98, 1.02) * (0.6 if place == covered else 1.0)
            events.append(kernel(GEMM, time, length))
            if place == covered:
                events.append(kernel(REDUCE, time - 1, length + 2, stream=9))
            time += length + 5
        events.append(step(at, begin - 2, time - begin))
    return events


def graded(grade: str) -> TraceOverlap:
    """A trace whose answer has this grade."""
    events = steps(1)
    if grade == "nothing hidden":
        events = [*(kernel(GEMM, 100.0 * at, 20) for at in range(5)), kernel(REDUCE, 50, 20, stream=9)]
    data = trace(events)
    if grade == "measured":
        data = kineto(make(Recipe(seed=1, instances=600, slowdown=1.2)))
    if grade == "confounded":
        data = trace(faster_beside_communication())
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        return api.trace_overlap(file.name)


@pytest.mark.parametrize("grade", get_args(Grade))
def test_the_estimate_of_a_grade_has_what_scripts_rely_on(grade: str) -> None:
    found = graded(grade)
    document = msgspec.to_builtins(found)
    estimate = document["estimate"]
    assert estimate["grade"] == grade
    assert {"grade", "slowdown", "cost", "at_most_s"} <= estimate.keys()
    assert estimate["at_most_s"] == document["cost_at_most_s"]
    for name in ("slowdown", "cost"):
        assert (estimate[name] is None) == (grade != "measured")
        if estimate[name] is not None:
            assert estimate[name].keys() == {"value", "low", "high"}
            assert estimate[name]["low"] <= estimate[name]["value"] <= estimate[name]["high"]
    assert document["cost_s"] == (estimate["cost"]["value"] if grade == "measured" else None)
    if grade in ("nothing hidden", "bounded"):
        assert (estimate["at_most_s"] == 0) == (grade == "nothing hidden")
    assert bool(estimate["reason"]) == (grade in ("bounded", "confounded"))
    assert all("trace" in one["why"] for one in document["settings"])
