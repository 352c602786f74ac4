"""Runs with and without flushes, what flushes interrupt, and what runs lose, from made-up traces."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

import made_columns as made
from elbowroom.trace import columns as c
from elbowroom.trace.activity import read_events
from elbowroom.trace.flushes import (
    FLUSH,
    PLAIN,
    Flush,
    FlushCosts,
    RecordedRun,
    analyse_flushes,
    find_flushes,
    flush_figures,
    flush_order,
    flush_page,
    flush_sentences,
    where_of,
)
from elbowroom.trace.overhead import TimedRun

FLUSH_TYPE = len(made.TYPES)


def found(events: list[Any], threads: int = 2) -> tuple[Flush, ...]:
    line = msgspec.json.decode(made.job(ranks=1, threads=threads))
    line["types"].append({"name": FLUSH, "category": 0, "fields": ["thread", "", ""]})
    data = made.stream(msgspec.json.encode(line) + b"\n", events, [])
    activity, every = read_events(c.TraceColumns(io.BytesIO(data)))
    return find_flushes(activity, every)


def flushed(begin: int, end: int, thread: int = 0) -> list[Any]:
    return [made.event(begin, thread, c.BEGIN, FLUSH_TYPE), made.event(end, thread, c.END, FLUSH_TYPE)]


def test_a_flush_in_a_task_says_so_and_how_much_the_others_worked_meanwhile() -> None:
    events = [*made.task(1, 0, 2000), *flushed(500, 1500), *made.task(2, 0, 750, thread=1)]
    (flush,) = found(sorted(events, key=lambda event: event[0]))
    assert (flush.inside, flush.category, where_of(flush)) == ("solve", "task", "in a task")
    assert flush.seconds == pytest.approx(1e-6)
    assert flush.begin_s == pytest.approx(5e-7)
    assert flush.others_in_tasks == pytest.approx(0.25)


def test_a_flush_between_spans_is_in_none_and_alone_without_other_workers() -> None:
    events = [*made.task(1, 0, 100), *flushed(500, 600), *made.task(2, 700, 800)]
    (flush,) = found(events, threads=1)
    assert (flush.inside, flush.others_in_tasks, where_of(flush)) == (None, None, "elsewhere")


def test_the_innermost_span_counts_and_an_end_without_its_begin_closes_none() -> None:
    events = [
        made.event(5, 0, c.END, made.MPI_SEND),
        made.event(10, 0, c.BEGIN, made.SOLVE, first=1),
        made.event(20, 0, c.BEGIN, made.MPI_RECV),
        *flushed(30, 40),
    ]
    (flush,) = found(events)
    assert (flush.inside, where_of(flush)) == ("MPI_Recv", "in communication")


def test_a_flush_while_mpi_is_set_up_interrupts_no_communication() -> None:
    flush = Flush(rank=0, thread="main", begin_s=0.0, seconds=1.0, inside="MPI_Comm_split", category="mpi")
    assert where_of(flush) == "elsewhere"


def test_each_repetition_has_both_kinds_and_flushes_are_spread_over_the_run() -> None:
    order = list(flush_order(4, 1))
    assert [repetition for repetition, _ in order] == [0, 0, 1, 1, 2, 2, 3, 3]
    shares = [share for _, share in order if share is not None]
    assert sorted(shares) == [0.125, 0.375, 0.625, 0.875]
    assert shares != sorted(shares)


def costs(rate: bool, slow: float) -> FlushCosts:
    """Six runs of 2 without flushes, and six of 2 times `slow`."""
    runs = []
    for repetition in range(6):
        flush = Flush(rank=0, thread="worker", begin_s=0.1 * repetition, seconds=0.01)
        noise = 1 + 0.001 * repetition
        runs.append(RecordedRun(TimedRun(None, PLAIN, repetition, 2 * noise, 1, 10), 1, ()))
        runs.append(RecordedRun(TimedRun(None, FLUSH, repetition, 2 * noise * slow, 1, 10), 1, (flush,)))
    return analyse_flushes(runs, command=("app",), metric="x", rate=rate, repeat=6, seed=0, buffer=64)


@pytest.mark.parametrize(("rate", "slow"), [(True, 0.5), (False, 2)])
def test_a_run_at_half_speed_lost_half_of_its_performance(rate: bool, slow: float) -> None:
    result = costs(rate, slow)
    assert result.worst.lost == pytest.approx(0.5, abs=0.01)
    assert result.cost is not None
    assert result.cost.low <= result.cost.value <= result.cost.high
    assert result.cost.value == pytest.approx(1)
    assert max(abs(run.lost) for run in result.runs if not run.with_flushes) < 0.01


def test_figures_mark_the_runs_with_flushes_and_when_they_were() -> None:
    result = costs(True, 0.5)
    runs, times = flush_figures(result)
    assert [mark.x for mark in runs.marks] == [2, 4, 6, 8, 10, 12]
    assert [series.name for series in runs.series] == ["without flushes", "with flushes"]
    assert times.series[0].x == pytest.approx((0, 0.1, 0.2, 0.3, 0.4, 0.5))
    assert "<svg" in flush_page(result)
    assert "100.0%" in flush_sentences(result)[0]


def test_runs_that_recorded_too_few_events_say_that_nothing_was_flushed() -> None:
    result = costs(True, 1)
    bare = msgspec.structs.replace(
        result, runs=tuple(msgspec.structs.replace(run, flushes=()) for run in result.runs)
    )
    assert flush_sentences(bare)[1].startswith("No buffer was flushed")


def test_events_that_did_not_fit_are_told() -> None:
    result = costs(True, 1)
    short = msgspec.structs.replace(result.runs[0], missing=7)
    told = flush_sentences(msgspec.structs.replace(result, runs=(short, *result.runs[1:])))
    assert told[-1].startswith("7 events did not fit")
