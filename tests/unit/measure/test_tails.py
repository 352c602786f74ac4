"""Tails of runs: from the journal to tables; plans whose messages are due at fixed times."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.measure.tails import tables, tails
from elbowroom.plan.axes import due_messages
from elbowroom.points.point import Expansion
from elbowroom.points.unit import Entry
from elbowroom.quantities import parse_period
from elbowroom.store.journal import JournalLine
from sampled import point as sample_point

POINT = msgspec.structs.replace(
    sample_point(1, "triad", "latency", 64), message_period=2e-5, comm_cores=(0,), peer_cores=(1,)
)


def entry(repetition: int = 0, *, count: int = 5000, trip: float = 2.0, **phase: Any) -> Entry:
    """Messages every 20 us that take `trip` us; every 1000th starts 300 us late."""
    late = np.where(np.arange(count) % 1000 == 500, 300.0, 0.02)
    due = {"period_us": 20.0, "first_ns": 5_000_000, "clock_call_ns": 20.0, "late_us": late.tolist()}
    comm = {"value": trip / 2, "unit": "us", "batches": [trip / 2] * count, "due": due}
    record = {"status": "ok", "phases": [{"phase": "B", "status": "ok", "comm": comm} | phase]}
    return Entry(point=POINT.id, repetition=repetition, record=record)


def test_percentiles_count_from_the_due_time() -> None:
    (found,) = tails([entry()], [POINT])
    assert found.tail is not None
    assert (found.style, found.tail.count) == ("alone", 5000)
    assert found.tail.percentiles[0].value == pytest.approx(2.02)
    assert found.tail.maximum == pytest.approx(302)
    assert found.clock_share == pytest.approx(0.01)
    (stalls,) = found.disturbances
    assert stalls.count == 5


def test_windows_of_all_repetitions_are_one_tail_but_void_ones_and_closing_ones_are_not() -> None:
    closing = msgspec.structs.replace(entry(3), closing=True)
    (found,) = tails([entry(0), entry(1), entry(2, status="void"), closing], [POINT])
    assert found.tail is not None
    assert found.tail.count == 10_000


def test_messages_that_are_due_faster_than_they_are_exchanged_have_no_percentiles() -> None:
    (found,) = tails([entry(trip=30.0)], [POINT])
    assert found.tail is None
    assert "wait ever longer" in found.reason
    assert tables([found], [POINT])[0].below == (f"alone: n/a, {found.reason}",)


def test_the_table_says_which_percentiles_the_messages_cannot_support() -> None:
    (table,) = tables(tails([entry(count=500)], [POINT]), [POINT])
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["p99.9"] == ("n/a", "needs 3688")
    assert cells["p50"][0] == "2.02"
    assert table.below[0].startswith("alone: 500 messages, one every 20 us")


def test_lines_of_a_journal_with_due_messages_are_read_again() -> None:
    line = msgspec.json.encode(entry(count=3))
    assert msgspec.json.decode(line, type=JournalLine).record.phases[0].comm.due.late_us == [0.02] * 3


def test_messages_that_are_due_are_latencies_and_have_names_of_their_own() -> None:
    (due,) = due_messages(Expansion(points=(sample_point(),), notes=()), 2e-5).points
    assert (due.metric, due.message_period) == ("latency", 2e-5)
    assert due.id.endswith("every20us")


@pytest.mark.parametrize(
    ("changes", "period", "word"),
    [({"pattern": "ring"}, 1e-4, "ping-pongs"), ({"window": 60.0}, 2e-5, "more than 250000 messages")],
)
def test_points_whose_messages_cannot_be_due_are_refused(
    changes: dict[str, Any], period: float, word: str
) -> None:
    point = msgspec.structs.replace(sample_point(), **changes)
    with pytest.raises(UsageError, match=word):
        due_messages(Expansion(points=(point,), notes=()), period)


@pytest.mark.parametrize(
    ("text", "seconds"), [("20us", 2e-5), ("1ms", 1e-3), ("0.5", 0.5), (2e-05, 2e-05), ("1 s", 1.0)]
)
def test_periods_have_short_units(text: str | float, seconds: float) -> None:
    assert parse_period(text, "message_period") == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "0.0001us", "-1us", "0.2 ns", "2min", "1e400", float("nan"), True]
)
def test_other_periods_are_refused(text: str | float) -> None:
    with pytest.raises(UsageError, match="message_period"):
        parse_period(text, "message_period")
