"""Profiles of JAX and TensorFlow: what the threads of a device hold follows from their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from elbowroom import api
from elbowroom.trace.overlap.document import TraceOverlap

Event = dict[str, Any]
STEPS = 4


def device(name: str, threads: Sequence[str]) -> list[Event]:
    """What metadata say of a device: threads are numbered from 1."""
    events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}}]
    for number, thread in enumerate(threads, start=1):
        events.append({"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": thread}})
    return events


def event(thread: int, name: str, ts: float, dur: float) -> Event:
    return {"ph": "X", "pid": 1, "tid": thread, "name": name, "ts": ts, "dur": dur, "args": {"hlo_op": name}}


def analysed(folder: Path, events: list[Event]) -> TraceOverlap:
    path = folder / "host.trace.json"
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]}))
    return api.trace_overlap(path)


def on_gpu() -> list[Event]:
    """Two kernels a step, one of them beside a collective, and the threads that repeat them."""
    threads = (
        "Steps",
        "XLA Modules",
        "XLA Ops",
        "Stream #13(Compute)",
        "Stream #17(Collective)",
        "Source code",
    )
    events = device("/device:GPU:0", threads)
    for step in range(STEPS):
        at = 1000.0 * step
        events += [event(1, str(step), at, 900), event(2, "jit_train(7)", at, 900)]
        events += [event(thread, "fusion.1", at + 100, 300) for thread in (3, 4, 6)]
        events += [event(thread, "fusion.2", at + 500, 200) for thread in (3, 4, 6)]
        events.append(event(5, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at + 150, 200))
    return events


def on_tpu(*, asynchronous: bool) -> list[Event]:
    """An operation inside a loop, another one while a collective is in flight, and one collective alone."""
    threads = ["Steps", "XLA Modules", "XLA Ops", *(["Async XLA Ops"] if asynchronous else [])]
    events = device("/device:TPU:0", threads)
    for step in range(STEPS):
        at = 1000.0 * step
        events += [event(1, str(step), at, 900), event(2, "jit_train(7)", at, 900)]
        events += [event(3, "while.1", at + 100, 300), event(3, "fusion.1", at + 120, 250)]
        events += [event(3, "all-gather-start.2", at + 410, 10), event(3, "fusion.2", at + 420, 100)]
        events += [event(3, "all-gather-done.2", at + 520, 20), event(3, "all-reduce.3", at + 600, 50)]
        if asynchronous:
            events += [event(4, "all-gather-start.2", at + 410, 130), event(4, "copy-start.4", at + 100, 300)]
    return events


def test_threads_that_repeat_the_streams_of_a_gpu_are_annotations(tmp_path: Path) -> None:
    answer = analysed(tmp_path, on_gpu())
    assert answer.comp_s == pytest.approx(STEPS * 500e-6)
    assert answer.hidden_s == pytest.approx(STEPS * 200e-6)


def test_the_thread_of_steps_names_them(tmp_path: Path) -> None:
    assert analysed(tmp_path, on_gpu()).steps == STEPS


@pytest.mark.parametrize("asynchronous", [True, False])
def test_operations_of_a_tpu_nest_and_collectives_are_in_flight_from_start_to_done(
    tmp_path: Path, asynchronous: bool
) -> None:
    answer = analysed(tmp_path, on_tpu(asynchronous=asynchronous))
    assert answer.comp_s == pytest.approx(STEPS * 400e-6)
    assert answer.hidden_s == pytest.approx(STEPS * 100e-6)
    assert answer.exposed_s == pytest.approx(STEPS * 80e-6)


def test_threads_of_a_device_without_xla_are_counted(tmp_path: Path) -> None:
    events = [json.loads(json.dumps(one).replace('"XLA ', '"My ')) for one in on_gpu()]
    assert analysed(tmp_path, events).comp_s > STEPS * 500e-6
