"""No traces, damaged ones, ones that miss a side: one sentence, or a result that is labelled partial."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import sqlite3
from pathlib import Path

import pytest

from elbowroom import api, cli
from elbowroom.errors import ElbowroomError, UsageError
from made_overlap import COLLECTIVES, COMM, Made, Recipe, kineto, make, nsight


@pytest.fixture(scope="module")
def trace() -> bytes:
    return kineto(make(Recipe(seed=1, instances=600, slowdown=1.2)))


def refused(path: Path, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        api.trace_overlap(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    refused(tmp_path / "empty.json", "is empty")


def test_a_trace_without_events_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"traceEvents": []}')
    refused(tmp_path / "none.json", "has no events with a duration")


def test_json_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"a": 1}')
    refused(tmp_path / "other.json", "no array traceEvents")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.bin").write_bytes(b"\x7fELF\x00\x01binary")
    refused(tmp_path / "t.bin", "unsupported trace format")


def test_a_damaged_trace_without_events_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.pftrace").write_bytes(b"\x0a\x10\x00\x01binary")
    refused(tmp_path / "t.pftrace", "has no events with a duration .*ends early")


@pytest.mark.parametrize(("stream", "word"), [(7, "communication"), (COMM, "computation")])
def test_a_trace_with_one_side_is_refused(tmp_path: Path, stream: int, word: str) -> None:
    made = make(Recipe(seed=1, instances=50))
    path = tmp_path / "one.json"
    path.write_bytes(kineto(Made(spans=[span for span in made.spans if span.stream == stream])))
    refused(path, f"no {word} that is recognised")


def test_a_trace_whose_ranks_have_one_side_each_is_refused(tmp_path: Path) -> None:
    made = make(Recipe(seed=1, instances=50, ranks=2))
    spans = [span for span in made.spans if (span.stream == COMM) == (span.rank == 1)]
    path = tmp_path / "apart.json"
    path.write_bytes(kineto(Made(spans=spans)))
    refused(path, "no rank that both computes and communicates")


def test_files_of_two_runs_are_refused(tmp_path: Path) -> None:
    made = make(Recipe(seed=1, instances=50, ranks=2))
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_bytes(kineto(made, rank=0))
    with pytest.raises(UsageError, match="several runs"):
        api.trace_overlap(files)


def test_files_of_jobs_of_two_sizes_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for rank, file in enumerate(files):
        file.write_bytes(kineto(make(Recipe(seed=1, instances=50, ranks=2 + rank)), rank=rank))
    with pytest.raises(UsageError, match="comes from a job of 3 ranks"):
        api.trace_overlap(files)


def test_two_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    one = json.loads(kineto(make(Recipe(seed=1, instances=50))))
    one["traceEvents"] += json.loads(kineto(make(Recipe(seed=2, instances=50))))["traceEvents"]
    (tmp_path / "two.json").write_text(json.dumps(one))
    refused(tmp_path / "two.json", "several runs are mixed")


def test_traces_of_two_formats_are_refused(tmp_path: Path, trace: bytes) -> None:
    (tmp_path / "a.json").write_bytes(trace)
    nsight(make(Recipe(seed=1, instances=50)), tmp_path / "b.sqlite")
    with pytest.raises(UsageError, match="several runs"):
        api.trace_overlap([tmp_path / "a.json", tmp_path / "b.sqlite"])


def test_a_trace_larger_than_memory_is_refused(
    tmp_path: Path, trace: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_bytes(trace)
    monkeypatch.setattr("elbowroom.trace.overlap.tables._available", lambda: 1000)
    refused(tmp_path / "a.json", "is larger than memory")


def test_a_cut_file_is_analysed_up_to_its_end_and_labelled(
    tmp_path: Path, trace: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(trace[: len(trace) * 2 // 3])
    found = api.trace_overlap(path)
    assert found.partial
    assert found.doubts == ("cut.json ends early: the events before that are analysed",)
    assert found.events == pytest.approx(api_events(trace) * 2 / 3, rel=0.05)
    assert cli.run(["trace", "overlap", str(path)]) == 3
    assert "partial: cut.json ends early" in capfd.readouterr().out


def api_events(trace: bytes) -> int:
    return len(json.loads(trace)["traceEvents"])


def test_cut_compressed_data_is_labelled(tmp_path: Path, trace: bytes) -> None:
    path = tmp_path / "cut.json.gz"
    data = gzip.compress(trace)
    path.write_bytes(data[: len(data) // 2])
    assert api.trace_overlap(path).doubts


def test_a_chrome_trace_may_be_a_bare_array_without_its_end(tmp_path: Path, trace: bytes) -> None:
    events = json.loads(trace)["traceEvents"]
    path = tmp_path / "bare.json"
    path.write_text(json.dumps(events)[:-1] + ",")
    whole = tmp_path / "whole.json"
    whole.write_bytes(trace)
    assert api.trace_overlap(path).events == api.trace_overlap(whole).events


def test_numbers_that_json_does_not_have_are_left_out(tmp_path: Path, trace: bytes) -> None:
    path = tmp_path / "nan.json"
    path.write_bytes(trace.replace(b'"correlation": 1003', b'"correlation": NaN', 1))
    found = api.trace_overlap(path)
    assert not found.doubts
    assert found.events == api_events(trace)


def test_a_database_without_events_of_nsight_systems_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as base:
        base.execute("CREATE TABLE x (y INT)")
    refused(tmp_path / "a.sqlite", "no events of Nsight Systems")


def test_the_same_command_line_refuses_a_comparison_of_one_trace(tmp_path: Path, trace: bytes) -> None:
    (tmp_path / "a.json").write_bytes(trace)
    assert cli.run(["trace", "overlap", str(tmp_path / "a.json"), "--compare"]) == 2


def test_a_pattern_that_is_no_regular_expression_is_refused(tmp_path: Path, trace: bytes) -> None:
    (tmp_path / "a.json").write_bytes(trace)
    with pytest.raises(UsageError, match="not a regular expression"):
        api.trace_overlap(tmp_path / "a.json", communication=["("])


def test_nested_regions_of_the_host_count_once(tmp_path: Path) -> None:
    host = {"ph": "X", "pid": 1, "tid": 1, "cat": "user"}
    events = [{**host, "name": "solve", "ts": 0, "dur": 100}]
    events += [{**host, "name": "kernel", "ts": 10, "dur": 40}]
    events += [{**host, "name": "MPI_Allreduce", "ts": 60, "dur": 30}]
    (tmp_path / "a.json").write_text(json.dumps(events))
    found = api.trace_overlap(tmp_path / "a.json")
    assert found.comp_s == pytest.approx(70e-6)
    assert found.comm_s == pytest.approx(30e-6)
    assert found.hidden_s == 0
    assert found.verdict == "Nothing is hidden: all 30 us of communication is exposed."


def test_a_copy_inside_a_device_is_computation_and_one_to_the_host_is_not(tmp_path: Path) -> None:
    device = {"ph": "X", "pid": 0, "cat": "gpu_memcpy"}
    events = [
        {**device, "name": "Memcpy DtoD (Device -> Device)", "ts": 0, "dur": 10, "args": {"stream": 7}},
        {**device, "name": "Memcpy HtoD (Pinned -> Device)", "ts": 0, "dur": 4, "args": {"stream": 9}},
    ]
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": events}))
    found = api.trace_overlap(tmp_path / "a.json")
    assert (found.comp_s, found.comm_s) == (pytest.approx(10e-6), pytest.approx(4e-6))


ODD: tuple[object, ...] = (
    None, True, -1, 0, 1e300, 10**30, "", "12", [1, [2]], {"a": 1}, "\ud800", float("nan"), float("inf"),
    2**63, -(2**63), 4e15,
)  # fmt: skip


FIELDS = (
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "stream", "device", "correlation", "External id",
    "grid", "labels", "sort_index",
)  # fmt: skip


@pytest.mark.parametrize("device", [True, False])
def test_values_of_any_type_end_with_a_sentence_or_a_result(tmp_path: Path, device: bool) -> None:
    cat, other = ("kernel", "kernel") if device else ("computation", "mpi")
    good = []
    for n in range(12):
        good += [
            {"ph": "X", "cat": cat, "name": "gemm", "pid": 0, "tid": 7, "ts": 100.0 * n, "dur": 90.0,
             "args": {"device": 0, "stream": 7, "correlation": n, "External id": n}},
            {"ph": "X", "cat": other, "name": COLLECTIVES[0] if device else "MPI_Allreduce", "pid": 0,
             "tid": 8, "ts": 100.0 * n, "dur": 50.0, "args": {}},
            {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "GPU 0", "sort_index": 3}},
        ]  # fmt: skip
    dice = random.Random(7)
    path = tmp_path / "odd.json"
    for value in ODD:
        for field in FIELDS:
            events = json.loads(json.dumps(good))
            for one in dice.sample(events, 3):
                (one if field in one else one["args"])[field] = value
            head = {
                "distributedInfo": dice.choice(
                    [value, {"rank": value, "world_size": value, "backend": value}]
                )
            }
            path.write_text(json.dumps({**head, "traceEvents": [*events, value]}))
            with contextlib.suppress(ElbowroomError):
                found = api.trace_overlap(path)
                assert 0 <= found.hidden_s <= found.comm_s <= found.span_s + 1e-9
                assert found.cost_at_most_s <= found.hidden_s + 1e-12


def test_impossible_times_are_counted_and_left_out(tmp_path: Path, trace: bytes) -> None:
    document = json.loads(trace)
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7}
    document["traceEvents"] += [
        {**kernel, "ts": 5.0, "dur": -3.0},
        {**kernel, "ts": 1e300, "dur": 3.0},
        {**kernel, "ts": 5.0, "dur": 1e300},
        {**kernel, "ts": "x", "dur": 3.0},
    ]
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    whole = tmp_path / "whole.json"
    whole.write_bytes(trace)
    found = api.trace_overlap(path)
    assert found.hidden_s == api.trace_overlap(whole).hidden_s
    notes = " ".join(found.notes)
    assert "3 events have an impossible time" in notes
    assert "1 events have no time" in notes


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"rocprofiler-sdk-tool": [{}]}', "is damaged.*buffer_records"),
        ('{"schema": "1.1.0-chakra.0.0.4", "nodes": [{"id": 1}]}', "of Chakra without times"),
    ],
)
def test_json_of_another_tool_is_named(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "a.json").write_text(text)
    refused(tmp_path / "a.json", what)


PUBLIC = Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "-"))


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("folder", ["kineto", "nsight", "otf2", "rocprof", "chakra"])
def test_public_traces_end_with_a_sentence_or_a_result(folder: str) -> None:
    for path in sorted((PUBLIC / folder).iterdir()):
        try:
            found = api.trace_overlap(path)
        except UsageError:
            continue
        assert found.counted
        assert 0 <= found.hidden_s <= found.comm_s
        assert found.cost is None or found.cost.low <= found.cost_at_most_s
