"""What counts as computation and as communication, and what is left out, with its time."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.trace.overlap import names
from elbowroom.trace.overlap.categories import meaning
from elbowroom.trace.overlap.document import TraceOverlap

Event = dict[str, Any]


def event(name: str, cat: str, ts: float, dur: float, tid: int = 1, pid: int = 1, **args: Any) -> Event:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def on_gpu(name: str, cat: str, ts: float, dur: float, stream: int, pid: int = 0) -> Event:
    return event(name, cat, ts, dur, stream, pid, device=pid, stream=stream)


def metadata(pid: int, **facts: Any) -> list[Event]:
    return [{"ph": "M", "pid": pid, "tid": 0, "name": name, "args": args} for name, args in facts.items()]


def analysed(folder: Path, events: list[Event], **head: Any) -> TraceOverlap:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}))
    return api.trace_overlap(path)


def kinds(found: TraceOverlap) -> dict[str, int]:
    return {one.kind: one.operations for one in (*found.counted, *found.left_out)}


@pytest.mark.parametrize(
    ("name", "cat"),
    [
        ("Stream Sync", "cuda_sync"),
        ("hipDeviceSynchronize", "hip_runtime"),
        ("cudaStreamSynchronize", "cuda_runtime"),
        ("zeCommandQueueSynchronize", "xpu_runtime"),
        ("synchronizeStream", "mtia_runtime"),
        ("aclrtSynchronizeStream", "privateuse1_runtime"),
        ("event_wait", "mtia_ccp_events"),
        ("Notify_Wait", "npu"),
        ("wait for all", "hpu_sync"),
    ],
)
def test_a_wait_is_no_computation(tmp_path: Path, name: str, cat: str) -> None:
    events = [on_gpu("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 0, 400, 7)]
    events += [on_gpu(name, cat, 100, 300, 7), on_gpu("gemm", "kernel", 500, 100, 7)]
    found = analysed(tmp_path, events)
    assert found.hidden_s == 0
    assert found.comp_s == pytest.approx(100e-6)
    assert kinds(found)["wait"] == 1
    assert name[:20] in found.counts


def test_launches_and_annotations_are_no_computation(tmp_path: Path) -> None:
    events = [on_gpu("ncclDevKernel_AllReduce", "kernel", 0, 400, 7), on_gpu("gemm", "kernel", 500, 100, 8)]
    for number, cat in enumerate(
        ("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "python_function", "user_annotation",
         "gpu_user_annotation", "cpu_op", "overhead", "cpu_instant_event", "Trace")
    ):  # fmt: skip
        events.append(event(f"work {number}", cat, 0, 400, tid=20 + number))
    found = analysed(tmp_path, events)
    assert (found.hidden_s, found.ranks) == (0, 1)
    assert found.comp_s == pytest.approx(100e-6)


@pytest.mark.parametrize("device", [True, False])
def test_an_unknown_category_never_computes_and_is_named_with_its_time(tmp_path: Path, device: bool) -> None:
    events = [on_gpu("ncclDevKernel_AllReduce", "kernel", 0, 400, 7), on_gpu("gemm", "kernel", 500, 100, 8)]
    odd = event("gemm", "mystery", 0, 300, 9, 0 if device else 5, **({"device": 0} if device else {}))
    found = analysed(tmp_path, [*events, odd])
    assert found.hidden_s == 0
    left = next(one for one in found.left_out if one.kind == "unknown")
    assert (left.operations, left.names) == (1, ("mystery",))
    assert left.seconds == pytest.approx(300e-6)
    assert "unknown categories 300 us (1: mystery)" in found.counts


def test_unknown_categories_alone_are_refused_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([event("x", "mystery", 0, 9), event("MPI_Send", "mpi", 0, 9, 2)]))
    with pytest.raises(UsageError, match=r"no computation that is recognised.*'mystery'"):
        api.trace_overlap(path)
    assert api.trace_overlap(path, computation=["x"]).hidden_s == pytest.approx(9e-6)


@pytest.mark.parametrize(
    ("cat", "args", "facts"),
    [
        ("mtia_ccp_events", {}, {}),
        ("hpu_op", {}, {}),
        ("npu_kernel", {}, {}),
        ("privateuse1_kernel", {}, {}),
        ("", {"device": 0, "stream": 3}, {}),
        ("", {}, {"process_name": {"name": "XPU 0"}}),
        ("", {}, {"process_name": {"name": "/device:TPU:0"}}),
        ("", {}, {"process_labels": {"labels": "HPU 1"}}),
        ("", {}, {"process_name": {"name": "python"}, "process_sort_index": {"sort_index": 5000001}}),
    ],
)
def test_any_accelerator_is_one_rank_with_its_host(
    tmp_path: Path, cat: str, args: dict[str, Any], facts: dict[str, Any]
) -> None:
    events = []
    for step in range(6):
        at = 1000.0 * step
        events += [
            event(f"ProfilerStep#{step}", "user_annotation", at, 1000),
            event("aten::addmm", "cpu_op", at + 10, 20),
            event("c10d::allreduce_", "cpu_op", at + 40, 30),
        ]
        for j in range(4):
            name = "fc_kernel" if j < 3 else "hccl_all_reduce"
            events.append(event(name, cat, at + 100 + 200 * min(j, 2), 190, j // 3, 9, **args))
    for one in events:
        if one["pid"] == 9 and one["args"].get("stream") is not None:
            one["args"] = {**one["args"], "stream": one["tid"]}
    found = analysed(tmp_path, [*events, *metadata(9, **facts)])
    assert (found.ranks, found.steps) == (1, 6)
    assert found.comp_s / 6 == pytest.approx(570e-6)
    assert found.comm_s / 6 == pytest.approx(190e-6)
    assert found.hidden_s / 6 == pytest.approx(190e-6)
    assert kinds(found)["collective"] == 6


def test_the_devices_of_a_file_that_states_its_rank_are_one_rank(tmp_path: Path) -> None:
    events = [on_gpu("gemm", "kernel", 0, 100, 7, pid) for pid in (0, 1)]
    events.append(on_gpu("ncclDevKernel_AllReduce", "kernel", 0, 50, 8))
    assert analysed(tmp_path, events, distributedInfo={"rank": 3}).ranks == 1
    assert analysed(tmp_path, events).ranks == 2


def test_devices_of_one_name_are_not_one_rank(tmp_path: Path) -> None:
    events = [on_gpu("gemm", "kernel", 0, 100, 7, pid) for pid in (0, 1)]
    events += [on_gpu("ncclDevKernel_AllReduce", "kernel", 0, 50, 8, pid) for pid in (0, 1)]
    events += [one for pid in (0, 1) for one in metadata(pid, process_name={"name": "python3"})]
    assert analysed(tmp_path, events).ranks == 2


@pytest.mark.parametrize("name", ["gloo:all_reduce", "mpi:all_reduce", "ucc:all_gather", "gloo:send"])
def test_collectives_of_the_host_that_are_annotations_communicate(tmp_path: Path, name: str) -> None:
    events = [event("aten::addmm", "cpu_op", 10, 800), event(name, "user_annotation", 300, 600, 2)]
    events.append(event("c10d::allreduce_", "cpu_op", 900, 5))
    found = analysed(tmp_path, events, distributedInfo={"backend": name.split(":")[0], "rank": 0})
    assert found.hidden_s == pytest.approx(510e-6)
    assert kinds(found)["message" if "send" in name else "collective"] == 1
    assert kinds(found)["launch"] == 1


def test_operations_of_c10d_communicate_where_nothing_else_was_recorded(tmp_path: Path) -> None:
    events = [event("aten::addmm", "cpu_op", 10, 800), event("c10d::allreduce_", "cpu_op", 300, 600, 2)]
    events.append(event("record_param_comms", "cpu_op", 310, 500, 2))
    found = analysed(tmp_path, events, distributedInfo={"backend": "gloo", "rank": 0})
    assert kinds(found)["collective"] == 1  # the inner one is part of it
    assert found.hidden_s == pytest.approx(510e-6)


@pytest.mark.parametrize("category", ["cpu_op", "Operator"])
def test_operations_of_the_host_compute_where_no_device_was_used(tmp_path: Path, category: str) -> None:
    events = [
        event("aten::addmm", category, 10, 800),
        event("gloo:all_reduce", "user_annotation", 300, 600, 2),
    ]
    assert analysed(tmp_path, events).hidden_s == pytest.approx(510e-6)


@pytest.mark.parametrize("head", [{"distributedInfo": {"backend": "nccl", "rank": 0}}, {}])
def test_launches_of_nccl_without_a_device_are_no_communication(tmp_path: Path, head: dict[str, Any]) -> None:
    events = [event("aten::linear", "cpu_op", 0, 60), event("c10d::alltoall_base_", "cpu_op", 70, 10)]
    events.append(event("nccl:all_to_all", "user_annotation", 72, 6))
    with pytest.raises(UsageError, match=r"the host launches it .*was not recorded"):
        analysed(tmp_path, events, **head)


@pytest.mark.parametrize(
    "call",
    ["MPI_Init", "MPI_Finalize", "MPI_Comm_split", "MPI_Win_create", "mpi_comm_dup_", "MPI_Allreduce_init",
     "PMPI_Init_thread", "MPI_Type_commit"],
)  # fmt: skip
def test_set_up_of_mpi_is_apart(tmp_path: Path, call: str) -> None:
    events = [event(call, "mpi", 0, 9000), event("solve", "computation", 0, 9000, 2)]
    events.append(event("MPI_Sendrecv", "mpi", 9000, 100))
    found = analysed(tmp_path, events)
    assert found.hidden_s == 0
    assert found.comm_s == pytest.approx(100e-6)
    assert found.counts == f"Counted: 1 message; 1 computation; apart: set-up 9 ms (1: {call})."


def test_a_wait_for_messages_hides_nothing_and_is_exposed_where_nothing_computes(tmp_path: Path) -> None:
    events = [event("solve", "computation", 0, 100, 2), event("MPI_Isend", "mpi", 10, 20)]
    events.append(event("MPI_Waitall", "mpi", 50, 80))
    found = analysed(tmp_path, events)
    assert found.hidden_s == pytest.approx(20e-6)
    assert found.exposed_s == pytest.approx(30e-6)
    assert kinds(found)["wait for messages"] == 1


def test_the_first_line_names_what_was_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events = [on_gpu("gemm", "kernel", 100.0 * n, 90, 7) for n in range(4)]
    events += [on_gpu("ncclDevKernel_AllReduce_Sum", "kernel", 100.0 * n, 50, 8) for n in range(3)]
    events += [on_gpu("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy", 50.0 * n, 9, 9) for n in range(5)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert cli.run(["trace", "overlap", str(path)]) == 0
    assert capfd.readouterr().out.splitlines()[0] == "Counted: 3 collectives, 5 copies; 4 computations."
    assert cli.run(["trace", "overlap", str(path), "--json"]) == 0
    counted = json.loads(capfd.readouterr().out)["counted"]
    assert [set(one) for one in counted] == [{"kind", "operations", "seconds"}] * 3
    assert {one["kind"]: one["operations"] for one in counted} == {
        "computation": 4,
        "collective": 3,
        "copy": 5,
    }


def test_launches_of_two_processes_with_the_same_numbers_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT,"
                     " streamId INT, correlationId INT, globalPid INT, demangledName TEXT)")  # fmt: skip
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT,"
                     " correlationId INT)")  # fmt: skip
        base.execute("CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT)")
        for process, name in ((1, "flash"), (2, "ncclDevKernel_SendRecv")):
            thread = process << 24 | 5
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 9, ?, 70)", (thread,))
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 90, ?, 7, 70, ?, ?)",
                         (process - 1, process << 24, name))  # fmt: skip
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 50, ?, 8, 71, ?, 'gemm')",
                         (process - 1, process << 24))  # fmt: skip
        base.execute("INSERT INTO NVTX_EVENTS VALUES (0, 9, 'ncclSend', ?)", (2 << 24 | 5,))
    base.close()
    found = api.trace_overlap(path)
    assert [one.name for one in found.communications] == ["ncclDevKernel_SendRecv"]
    assert {one.name for one in found.classes} == {"flash", "gemm"}


@pytest.mark.parametrize(
    ("call", "kind"),
    [("MPI_Iallreduce", "collective"), ("mpi_alltoallv_", "collective"), ("MPI_Bcast_c", "collective"),
     ("MPI_Recv", "message"), ("MPI_Put", "message"), ("MPI_Win_fence", "message"), ("MPI_Waitsome", "wait"),
     ("MPI_Test", "wait"), ("MPI_Barrier", "wait"), ("MPI_File_write_all", "input/output"),
     ("MPI_Send_init", "set-up"), ("MPI_Wtime", "set-up"), ("ncclCommInitRank", "set-up"),
     ("shmem_barrier_all", "wait"), ("gaspi_proc_init", "set-up"), ("ncclDevKernel_SendRecv", "message"),
     ("ncclDevKernel_AllGather_RING_LL", "collective")],
)  # fmt: skip
def test_calls_of_communication_libraries_are_told_apart(call: str, kind: str) -> None:
    assert names.of_communication(call) == kind


def test_copies_are_called_copies(tmp_path: Path) -> None:
    events = [on_gpu("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 0, 400, 7)]
    found = analysed(tmp_path, [*events, on_gpu("gemm", "kernel", 500, 100, 7)])
    assert found.verdict == "Nothing is hidden: all 400 us of copies are exposed."


def test_what_a_program_calls_communication_is_no_set_up(tmp_path: Path) -> None:
    events = [event("free halo exchange", "communication", 0, 9), event("solve", "computation", 0, 9, 2)]
    assert kinds(analysed(tmp_path, events)) == {"computation": 1, "communication": 1}


def test_a_list_of_categories_has_the_meaning_of_the_first_that_is_known() -> None:
    assert meaning("mystery,MPI") == "communication"
    assert meaning("mystery, other") == "unknown"
