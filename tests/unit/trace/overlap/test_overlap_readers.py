"""Formats of other tools, folders and archives: the same events give the same answer."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tarfile
import tempfile
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from damage import damages
from elbowroom import api
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.readers import nccl_inspector
from made_overlap import Recipe, kineto, make, nsight

MS = 1_000_000
SPANS = [("gemm", 0, 4), ("nccl", 2, 5), ("gemm", 6, 9), ("nccl", 8, 12)]
"""Computation and communication, ms: 2 + 1 ms hidden, 4 ms exposed."""


def is_of_spans(found: TraceOverlap) -> None:
    times = {"comp_s": 7e-3, "comm_s": 7e-3, "hidden_s": 3e-3, "exposed_s": 4e-3}
    assert {name: getattr(found, name) for name in times} == pytest.approx(times)


def rocprof(devices: int = 1) -> dict[str, object]:
    names = {1: "gemm", 2: "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"}
    kernels = [
        {
            "start_timestamp": start * MS, "end_timestamp": end * MS, "kind": 11, "operation": 2,
            "thread_id": 3, "correlation_id": {"internal": number, "external": 0},
            "dispatch_info": {
                "agent_id": {"handle": 100 + device}, "queue_id": {"handle": 1 + (name == "nccl")},
                "kernel_id": 1 + (name == "nccl"), "grid_size": {"x": 512, "y": 1, "z": 1},
                "workgroup_size": {"x": 256, "y": 1, "z": 1}, "group_segment_size": 64,
            },
        }
        for device in range(devices)
        for number, (name, start, end) in enumerate(SPANS, 1)
    ]  # fmt: skip
    process = {
        "metadata": {"pid": 7},
        "agents": [{"id": {"handle": 1}, "type": 1}]
        + [{"id": {"handle": 100 + at}, "type": 2, "gpu_index": at} for at in range(devices)],
        "kernel_symbols": [{"kernel_id": one, "formatted_kernel_name": name} for one, name in names.items()],
        "buffer_records": {"kernel_dispatch": kernels, "hip_api": []},
    }
    return {"rocprofiler-sdk-tool": [process]}


@pytest.mark.parametrize("packed", [False, True])
def test_kernels_of_rocprofv3_are_read(tmp_path: Path, packed: bool) -> None:
    text = json.dumps(rocprof()).encode()
    path = tmp_path / ("7_results.json" + ".gz" * packed)
    path.write_bytes(gzip.compress(text) if packed else text)
    found = api.trace_overlap(path)
    assert found.format == "rocprof"
    is_of_spans(found)
    assert found.classes[0].label == "gemm [grid 2x1x1, block 256, 64 B shared]"


def test_each_device_of_a_rocprofv3_process_is_a_rank(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rocprof(devices=3)))
    found = api.trace_overlap(path)
    assert found.ranks == 3
    is_of_spans(found)


def test_a_cut_file_of_rocprofv3_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(rocprof())[:-20])
    with pytest.raises(UsageError, match=r"is damaged.*write it again with rocprofv3"):
        api.trace_overlap(path)


PAJE_HEAD = """\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineLinkType 2
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeCreateContainer 3
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajePushState 4
% Time date
% Type string
% Container string
% Value string
%EndEventDef
%EventDef PajePopState 5
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeStartLink 6
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 7
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
"""
PAJE = (
    PAJE_HEAD
    + """\
0 R 0 "Root"
0 W R "Worker"
1 S W "Task"
2 L R W W "MPI message"
3 0 r 0 0 "program"
3 0 a W r "rank-0"
3 0 b W r "rank-1"
4 0 S a gemm
6 0.002 L r a 8 k1
5 0.004 S a
7 0.005 L r b 8 k1
4 0.006 S a gemm
6 0.008 L r a 8 k2
5 0.009 S a
7 0.012 L r b 8 k2
"""
)


def test_states_and_links_of_paje_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.trace"
    path.write_text(PAJE)
    found = api.trace_overlap(path)
    assert found.format == "paje"
    is_of_spans(found)


def test_states_of_a_paje_trace_that_ends_early_end_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t.trace"
    path.write_text(PAJE.rsplit("5 0.009", 1)[0])
    found = api.trace_overlap(path)
    assert found.comp_s == pytest.approx(6e-3)


def test_a_line_of_paje_that_cannot_be_read_is_a_doubt(tmp_path: Path) -> None:
    path = tmp_path / "t.trace"
    path.write_text(PAJE + "4 x S a gemm\n99 1 2\n")
    found = api.trace_overlap(path)
    assert [text.split("line")[1] for text in found.doubts] == [" 67 cannot be read", " 68 cannot be read"]
    is_of_spans(found)


STATES = "Start,End,Value,ResourceId,Type\n0,4,gemm,0_CPU1,Worker State\n6,9,gemm,0_CPU1,Worker State\n"
LINKS = "Start,End,Type,Origin,Dest\n2,5,MPI message,0_CPU1,1_CPU1\n8,12,MPI message,0_CPU1,1_CPU1\n"


def test_a_folder_of_starvz_is_one_trace(tmp_path: Path) -> None:
    (tmp_path / "application.csv").write_text(STATES)
    (tmp_path / "link.csv").write_text(LINKS)
    found = api.trace_overlap(tmp_path)
    assert found.format == "starvz"
    is_of_spans(found)


def test_starvz_tables_may_be_parquet(tmp_path: Path) -> None:
    from pyarrow import csv

    for name, text in (("application", STATES), ("link", LINKS)):
        table = csv.read_csv(pyarrow.py_buffer(text.encode()))
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    is_of_spans(api.trace_overlap(tmp_path))


def test_the_text_of_pj_dump_is_read(tmp_path: Path) -> None:
    lines = [
        f"State, 0_CPU1, Worker State, {start}, {end}, {end - start}, 0, gemm"
        for name, start, end in SPANS
        if name == "gemm"
    ] + [
        f"Link, 0, MPI message, {start}, {end}, {end - start}, 8, 0_CPU1, 1_CPU1, k{start}"
        for name, start, end in SPANS
        if name == "nccl"
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["Container, 0, 0, 0, 12, 12, program", *lines]) + "\n")
    is_of_spans(api.trace_overlap(path))


def test_a_table_without_begins_is_refused(tmp_path: Path) -> None:
    (tmp_path / "application.csv").write_text("End,Value,ResourceId\n4,gemm,0_CPU1\n")
    with pytest.raises(UsageError, match="lacks the columns start"):
        api.trace_overlap(tmp_path)


def inspector(verbose: bool) -> str:
    lines = []
    for number, (_, start, end) in enumerate(one for one in SPANS if one[0] == "nccl"):
        first, last = start * 1000 + 1_000_000, end * 1000 + 1_000_000
        channels = [(first, last - 500), (first + 200, last)]
        times = {
            "kernel_events": [
                {"channel_id": at, "kernel_start_ts": begin, "kernel_stop_ts": stop}
                for at, (begin, stop) in enumerate(channels)
            ]
        }
        operation = {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 64}
        lines.append(
            json.dumps(
                {
                    "header": {"id": "0x1", "rank": 2, "n_ranks": 8, "nnodes": 1},
                    "metadata": {"inspector_output_format_version": "v4.0", "hostname": "n", "pid": 1},
                    "coll_perf": operation | ({"event_trace_ts": times} if verbose else {}),
                }
            )
        )
    return "\n".join(lines) + "\n"


def test_collectives_of_nccl_inspector_lie_between_their_channels_times(tmp_path: Path) -> None:
    path = tmp_path / "n-pid1.log"
    path.write_text(inspector(verbose=True))
    with tempfile.TemporaryFile() as store:
        events = nccl_inspector.read(path, store).whole()
    assert (events.start.tolist(), events.duration.tolist()) == ([0, 6 * MS], [3 * MS, 4 * MS])
    assert events.ranks == ("rank 2",)
    assert [one.label for one in events.classes] == ["ncclAllReduce [64 B, 2 channels]"]


def test_a_log_of_communication_alone_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "n-pid1.log"
    path.write_text(inspector(verbose=True))
    with pytest.raises(UsageError, match=r"no computation that is recognised.*profiler of kernels"):
        api.trace_overlap(path)


def test_nccl_inspector_without_times_says_how_to_record_them(tmp_path: Path) -> None:
    path = tmp_path / "n-pid1.log"
    path.write_text(inspector(verbose=False))
    with pytest.raises(UsageError, match="NCCL_INSPECTOR_DUMP_VERBOSE=1"):
        api.trace_overlap(path, between_calls=True)


def exported(tmp_path: Path) -> tuple[Path, Path]:
    """A trace as Nsight's SQLite, and the same tables as a folder of Parquet."""
    base, folder = tmp_path / "t.sqlite", tmp_path / "t_pqtdir"
    nsight(make(Recipe(seed=1, instances=300, slowdown=1.2)), base)
    folder.mkdir()
    with sqlite3.connect(base) as tables:
        for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = tables.execute(f"SELECT * FROM {name}")
            names = [one[0] for one in rows.description]
            columns = list(zip(*rows.fetchall(), strict=True)) or [()] * len(names)
            parquet.write_table(
                pyarrow.table({n: list(c) for n, c in zip(names, columns, strict=True)}),
                folder / f"{name}.parquet",
            )
    return base, folder


def test_parquetdir_of_nsight_gives_what_its_sqlite_gives(tmp_path: Path) -> None:
    base, folder = exported(tmp_path)
    first, second = api.trace_overlap(base), api.trace_overlap(folder)
    assert second.format == "nsight"
    assert (first.hidden_s, first.estimate, first.classes) == (
        second.hidden_s,
        second.estimate,
        second.classes,
    )


def test_a_damaged_table_of_parquetdir_is_left_out_with_a_doubt(tmp_path: Path) -> None:
    _, folder = exported(tmp_path)
    (folder / "NVTX_EVENTS.parquet").write_bytes(b"PAR1 damaged")
    found = api.trace_overlap(folder)
    assert "NVTX_EVENTS.parquet cannot be read" in found.doubts[0]
    assert found.hidden_s > 0


@pytest.fixture
def ranks(tmp_path: Path) -> list[Path]:
    made = make(Recipe(seed=2, instances=200, slowdown=1.2))
    files = []
    for rank in range(3):
        document = json.loads(kineto(made)) | {"distributedInfo": {"rank": rank, "world_size": 3}}
        files.append(tmp_path / "set" / f"rank-{rank}.json")
        files[-1].parent.mkdir(exist_ok=True)
        files[-1].write_text(json.dumps(document))
    return files


def test_a_folder_of_ranks_is_one_trace(ranks: list[Path]) -> None:
    (ranks[0].parent / "config.json").write_text('{"lr": 0.1}')
    (ranks[0].parent / "README").write_text("three ranks")
    found, named = api.trace_overlap(ranks[0].parent), api.trace_overlap(ranks)
    assert found.ranks == 3
    assert (found.files, found.hidden_s, found.estimate) == (named.files, named.hidden_s, named.estimate)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_of_ranks_is_one_trace(tmp_path: Path, ranks: list[Path], mode: str) -> None:
    path = tmp_path / "set.tar"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(ranks[0].parent, "run/ranks")
    found, named = api.trace_overlap(path), api.trace_overlap(ranks)
    assert found.files == tuple(f"{path}/run/ranks/rank-{rank}.json" for rank in range(3))
    assert (found.hidden_s, found.estimate) == (named.hidden_s, named.estimate)


def test_an_archive_without_a_trace_says_so(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("nothing")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "README", "README")
    with pytest.raises(UsageError, match=r"a.tar'?: holds no trace; give Kineto"):
        api.trace_overlap(tmp_path / "a.tar")


def test_an_archive_that_would_write_elsewhere_is_refused(tmp_path: Path, ranks: list[Path]) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(ranks[0], "../../escaped.json")
    with pytest.raises(UsageError, match="cannot be unpacked"):
        api.trace_overlap(tmp_path / "a.tar")


def test_a_cut_archive_is_refused(tmp_path: Path, ranks: list[Path]) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(ranks[0].parent, "ranks")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(UsageError, match="cannot be unpacked"):
        api.trace_overlap(path)


DAMAGED = {
    "r.json": lambda: json.dumps(rocprof()).encode(),
    "t.trace": lambda: PAJE.encode(),
    "t.csv": lambda: STATES.encode(),
    "n.log": lambda: inspector(verbose=True).encode(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_of_these_formats_ends_with_a_sentence_or_a_result(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for number, damaged in enumerate(damages(DAMAGED[name](), 200)):
        path.write_bytes(damaged)
        try:
            found = api.trace_overlap(path, between_calls=number % 2 == 0)
        except ElbowroomError:
            continue
        assert 0 <= found.hidden_s <= found.comm_s <= found.span_s + 1e-9
