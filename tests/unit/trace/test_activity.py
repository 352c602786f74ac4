"""Tasks, workers and messages over time, from the columns of a merged trace."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet
import pytest

import made_columns as made
from elbowroom.store.trace_parquet import write_tables
from elbowroom.trace import columns as c
from elbowroom.trace.activity import UNKNOWN, RecordedActivity, read_activity
from elbowroom.trace.activity_figures import activity_figures, over_time

SUBMIT, READY = len(made.TYPES), len(made.TYPES) + 1


def head(**changed: Any) -> bytes:
    """A job that also records submissions and readiness."""
    job = msgspec.json.decode(made.job(**changed))
    starpu = len(job["categories"])
    job["categories"].append("starpu")
    for name in ("submit", "ready"):
        job["types"].append({"name": name, "category": starpu, "fields": ["", "task", ""]})
    return msgspec.json.encode(job) + b"\n"


def read(line: bytes, events: list[Any], messages: list[Any] | None = None) -> RecordedActivity:
    data = made.stream(line, events, messages or [])
    return read_activity(c.TraceColumns(io.BytesIO(data)))


def mark(kind: int, number: int, time: int) -> Any:
    return made.event(time, 0, c.EVENT, kind, first=number)


def two_workers() -> RecordedActivity:
    """Worker 0 runs task 1 from 100 to 200 and task 2 from 200 to 400, worker 1 task 3 from 100 to 200."""
    events = [
        *(mark(SUBMIT, number, 10 * number) for number in (1, 2, 3)),
        *(mark(READY, number, time) for number, time in ((1, 50), (2, 150), (3, 60))),
        *made.task(1, 100, 200), *made.task(2, 200, 400), *made.task(3, 100, 200, thread=1),
    ]  # fmt: skip
    return read(head(ranks=1, threads=2), events)


def test_a_task_has_all_its_times_in_one_row() -> None:
    tasks = two_workers().tasks
    assert tasks.task.tolist() == [1, 2, 3]
    assert tasks.submitted.tolist() == [10, 20, 30]
    assert tasks.ready.tolist() == [50, 150, 60]
    assert tasks.start.tolist() == [100, 200, 100]
    assert tasks.end.tolist() == [200, 400, 200]
    assert tasks.thread.tolist() == [0, 0, 1]


def test_tasks_of_two_processes_with_one_number_are_two() -> None:
    activity = read(head(ranks=2), [*made.task(7, 0, 10, thread=0), *made.task(7, 5, 20, thread=1)])
    assert list(zip(activity.tasks.rank, activity.tasks.end, strict=True)) == [(0, 10), (1, 20)]


def test_a_suspended_task_begins_once_and_ends_last() -> None:
    activity = read(head(ranks=1), [*made.task(7, 0, 10), *made.task(7, 50, 60)])
    assert (activity.tasks.start.tolist(), activity.tasks.end.tolist()) == ([0], [60])


def test_waiting_tasks_are_counted_at_the_ends_of_bins() -> None:
    shown = over_time(two_workers(), 4)
    assert shown.bin_ns == 100
    assert shown.submitted == (1, 0, 0, 0)  # at 100 tasks 1 and 3 have begun
    assert shown.ready == (0, 0, 0, 0)
    assert shown.running == (2, 1, 1, 0)


def test_utilisation_and_imbalance_are_those_of_the_workers() -> None:
    shown = over_time(two_workers(), 4)
    assert shown.in_tasks == pytest.approx((0, 1, 0.5, 0.5))
    assert shown.imbalance == (None, pytest.approx(0), pytest.approx(1), pytest.approx(1))
    assert shown.whole_utilisation == pytest.approx((300 / 400 + 100 / 400) / 2)
    assert shown.whole_imbalance == pytest.approx(0.5)


def test_nested_spans_of_a_category_count_once_and_states_add_up_to_one() -> None:
    events = [
        *made.task(1, 0, 200), *made.task(2, 50, 100),
        made.event(250, 0, c.BEGIN, made.MPI_SEND), made.event(350, 0, c.END, made.MPI_SEND),
        made.event(400, 0, c.BEGIN, made.MPI_SEND), made.event(400, 0, c.END, made.MPI_SEND),
    ]  # fmt: skip
    shown = over_time(read(head(ranks=1), events), 4)
    assert shown.in_tasks == pytest.approx((1, 1, 0, 0))
    assert shown.in_communication == pytest.approx((0, 0, 0.5, 0.5))
    assert np.add(np.add(shown.in_tasks, shown.in_communication), shown.elsewhere) == pytest.approx(1)


def test_setting_mpi_up_is_no_communication() -> None:
    line = msgspec.json.decode(head(ranks=1))
    init = len(line["types"])
    line["types"].append({"name": "MPI_Init", "category": 2, "fields": ["", "", ""]})
    events = [
        *made.task(1, 0, 100),
        made.event(100, 0, c.BEGIN, init), made.event(300, 0, c.END, init),
        made.event(300, 0, c.BEGIN, made.MPI_SEND), made.event(400, 0, c.END, made.MPI_SEND),
    ]  # fmt: skip
    shown = over_time(read(msgspec.json.encode(line) + b"\n", events), 4)
    assert shown.in_communication == pytest.approx((0, 0, 0, 1))
    assert shown.elsewhere == pytest.approx((0, 1, 1, 0))


def test_an_end_without_its_begin_is_no_span() -> None:
    events = [made.event(50, 0, c.END, made.SOLVE, first=1), *made.task(2, 100, 200)]
    spans = read(head(ranks=1), events).spans[0, "task"]
    assert (spans[0].tolist(), spans[1].tolist()) == ([100], [200])


def test_a_span_without_an_end_lasts_to_the_end_of_the_trace() -> None:
    events = [
        *made.task(1, 0, 100),
        made.event(200, 0, c.BEGIN, made.SOLVE, first=2),
        *made.task(3, 0, 400, 1),
    ]
    spans = read(head(ranks=1, threads=2), sorted(events, key=lambda event: event[0])).spans[0, "task"]
    assert (spans[0].tolist(), spans[1].tolist()) == ([0, 200], [100, 400])


def test_idle_workers_are_told_from_those_elsewhere_where_they_were_recorded() -> None:
    line = msgspec.json.decode(head(ranks=1))
    line["categories"].append("idle")
    line["types"].append(
        {"name": "idle", "category": len(line["categories"]) - 1, "fields": ["", "cpu_ns", ""]}
    )
    idle = len(line["types"]) - 1
    spans = [made.event(150, 0, c.BEGIN, idle), made.event(300, 0, c.END, idle, first=30)]
    events = [*made.task(1, 0, 100), *spans]
    events += made.task(2, 300, 400)
    shown = over_time(read(msgspec.json.encode(line) + b"\n", events), 4)
    assert shown.idle == pytest.approx((0, 0.5, 1, 0))
    assert shown.polling == pytest.approx(30 / 150)
    assert shown.elsewhere == pytest.approx((0, 0.5, 0, 0))
    assert over_time(two_workers(), 4).idle is None


def test_a_trace_without_submissions_says_that_they_are_unknown() -> None:
    activity = read(made.job(ranks=1), [*made.task(1, 0, 10)])
    assert activity.tasks.submitted.tolist() == [UNKNOWN]
    shown = over_time(activity, 2)
    assert (shown.submitted, shown.ready) == (None, None)


def drifting(ns: int) -> dict[str, int]:
    """A comparison: the clock of rank 1 is 1000 ns behind at 0 and 1 % faster from then on."""
    local = ns - 1000 + ns // 100
    return {"local": local, "offset": ns - local, "low": 0, "high": 0, "used": True}


def test_one_offset_for_the_whole_job_makes_durations_drift() -> None:
    line = msgspec.json.decode(made.job(ranks=2))
    line["start"] = 0
    line["ranks"][1]["syncs"] = [drifting(0), drifting(1_000_000)]
    messages = [made.message(number, 100_000 * number, 0, 100_000 * number + 500, 1)[1] for number in (1, 9)]
    every = read(msgspec.json.encode(line) + b"\n", [], messages).communications
    assert (every.received - every.sent).tolist() == [500, 500]
    # One per cent of the time since the comparison.
    assert (every.received_once - every.sent_once).tolist() == [500 + 1005, 500 + 9005]


def test_a_trace_without_tasks_and_messages_has_no_figure() -> None:
    activity = read(made.job(ranks=1), [])
    assert activity_figures(activity, over_time(activity, 3)) == []


def test_figures_show_tasks_states_balance_and_messages() -> None:
    events = [*made.task(1, 0, 10), mark(SUBMIT, 1, 0)]
    activity = read(head(ranks=2), events, [made.message(1, 5, 0, 8, 1)[1]])
    drawn = {figure.name: figure for figure in activity_figures(activity, over_time(activity, 2))}
    assert list(drawn) == ["tasks", "states", "balance", "durations"]
    assert [series.name for series in drawn["tasks"].series] == ["submitted, not started", "running"]
    assert [series.y for series in drawn["durations"].series] == [(0.003,), (0.003,)]


def test_iterations_have_the_span_of_their_tasks_and_a_figure() -> None:
    line = msgspec.json.decode(head(ranks=1, threads=2))
    line["types"].append({"name": "iteration", "category": 1, "fields": ["level", "task", "iteration"]})
    kind = len(line["types"]) - 1
    inside = [(1, 4, 0), (2, 4, 0), (3, 5, 0), (3, 9, 1)]  # the last one: an inner loop
    events = [
        made.event(0, 0, c.EVENT, kind, small=level, first=task, second=number)
        for task, number, level in inside
    ]
    tasks = [*made.task(1, 1, 10), *made.task(2, 12, 20), *made.task(3, 15, 30, thread=1)]
    activity = read(msgspec.json.encode(line) + b"\n", [*events, *tasks])
    shown = over_time(activity, 2)
    assert [(one.iteration, one.tasks, one.start_ns, one.end_ns) for one in shown.iterations] == [
        (4, 2, 1, 20),
        (5, 1, 15, 30),
    ]
    (figure,) = [one for one in activity_figures(activity, shown) if one.name == "iterations"]
    assert figure.series[0].x == (4, 5)


def test_tables_hold_every_task_and_message_with_null_for_the_unknown(tmp_path: Path) -> None:
    activity = read(
        head(ranks=2), [*made.task(1, 0, 10), mark(SUBMIT, 2, 3)], [made.message(4, 5, 0, 8, 1)[1]]
    )
    tasks, communications, _ = map(pyarrow.parquet.read_table, write_tables(activity, tmp_path))
    assert tasks.to_pylist() == [
        {"rank": 0, "task": 1, "name": "solve", "worker": None, "thread": 0, "iteration": None,
         "submitted_ns": None, "ready_ns": None, "start_ns": 0, "end_ns": 10},
        {"rank": 0, "task": 2, "name": None, "worker": None, "thread": None, "iteration": None,
         "submitted_ns": 3, "ready_ns": None, "start_ns": None, "end_ns": None},
    ]  # fmt: skip
    row = communications.to_pylist()[0]
    assert (row["message"], row["from_rank"], row["to_rank"], row["sent_ns"], row["received_ns"]) == (
        4,
        0,
        1,
        5,
        8,
    )
    assert (row["bytes"], row["tag"], row["tachyon"]) == (400, 3, False)
    assert communications.schema.metadata[b"schema"] == b"elbowroom/trace-communications"


def exits(counts: tuple[int, int]) -> RecordedActivity:
    """Barriers of two ranks: rank 1 leaves the n-th one 10 n later than rank 0."""
    line = msgspec.json.decode(made.job(ranks=2))
    line["types"].append({"name": "MPI_Barrier", "category": 2, "fields": ["", "", ""]})
    barrier = len(line["types"]) - 1
    events = [
        made.event(1000 * number + 10 * number * thread, thread, c.END, barrier)
        for thread, count in enumerate(counts)
        for number in range(1, count + 1)
    ]
    return read(msgspec.json.encode(line) + b"\n", sorted(events, key=lambda event: event[0]))


def test_exits_of_barriers_are_a_distribution_by_rank() -> None:
    shown = over_time(exits((4, 4)), 1).barriers
    assert shown is not None
    assert (shown.barriers, shown.median_ns, shown.most_ns) == (4, 25, 40)
    assert [(rank.rank, rank.most_ns) for rank in shown.ranks] == [(0, 0), (1, 40)]
    (figure,) = activity_figures(exits((4, 4)), over_time(exits((4, 4)), 1))
    assert figure.series[1].x == (0.01, 0.02, 0.03, 0.04)
    assert figure.series[1].y == (0.25, 0.5, 0.75, 1)


def test_barriers_that_not_all_ranks_record_are_unknown() -> None:
    assert over_time(exits((4, 3)), 1).barriers is None
