"""Extraneous accesses between one-way messages, asked of the probe as docs/reference/protocol.md says.

No test asserts a time: the machine may be busy. What is asserted holds on any machine, however slow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import Session
from elbowroom.points.unit import Unit

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 120.0  # seconds that a busy machine may take for anything
SLICE = 1e6  # us; longer than anything but a hang

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="sender and receiver need a core each")

Record = dict[str, Any]


@pytest.fixture(scope="module")
def live(embedded_mpi: Mpi) -> Iterator[Session]:
    """Two ranks on this machine. They yield while they wait, since other work may be there."""
    wanted = LaunchRequest(ranks=2, ranks_per_host=2, probe=str(probe(embedded_mpi)), mpi=embedded_mpi)
    session = Session(build_launch("local", wanted, {}), ranks=2, mpi=embedded_mpi)
    try:
        yield session
    finally:
        session.close()


def ask(live: Session, outside: Record | None = None, **window: Any) -> Record:
    """The answer to a small window; `outside` replaces fields of the request, the rest those of the
    window.
    """
    accesses = {"who": "sender", "access": "write", "first": 0, "step": 4000, "count": 3, "exchanges": 10}
    request = {
        "op": "measure",
        "point": "a window",
        "repetition": 2,
        "sequence": ["B", "AB"],
        "kernel": "none",
        "comp_cores": [],
        "comp_node": 0,
        "size": 400,
        "comm_node": 0,
        "comm_cores": [CORES[0]],
        "peer_cores": [CORES[1]],
        "metric": "latency",
        "extraneous": accesses | window,
    }
    return live.ask(Unit(point="a window", repetition=2), request | (outside or {}), PATIENCE)


def sound(answer: Record) -> None:
    """A repetition of which all holds that does not depend on how busy or how quick the machine is."""
    assert answer["record"] == "repetition", answer
    assert answer["validated"] is True
    assert [phase["phase"] for phase in answer["phases"]] == ["B", "AB"]
    assert [phase["index"] for phase in answer["phases"]] == [0, 1]
    for phase in answer["phases"]:
        # A receiver that other work keeps from its core may be late time after time; a few small messages
        # may be over within a hundred readings of a slow clock.
        voiding = {"late", "too_short"} & set(phase["flags"])
        assert set(phase["flags"]) - voiding <= {"steal", "migrated", "scheduling"}
        assert phase["status"] == ("void" if voiding else "ok")


@pytest.mark.parametrize("barrier", [True, False])
@pytest.mark.parametrize("who", ["none", "sender", "receiver", "both"])
def test_every_size_has_as_many_one_way_times_with_accesses_as_without(
    live: Session, who: str, barrier: bool
) -> None:
    answer = ask(live, who=who, barrier=barrier)
    sound(answer)
    for phase in answer["phases"]:
        comm = phase["comm"]
        assert comm["unit"] == "us"
        assert len(comm["batches"]) == comm["messages"] == 3 * 10
        assert comm["bytes"] == 30 * 400
        assert comm["value"] == pytest.approx(median(comm["batches"]), abs=1e-3)
        assert all(0 < time < SLICE for time in comm["batches"])
        assert comm["late"] >= 0


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("data", ["same", "different"])
@pytest.mark.parametrize("size", [1, 403, 300_000])
def test_messages_of_every_size_arrive_with_the_right_contents(
    live: Session, access: str, data: str, size: int
) -> None:
    sound(ask(live, {"size": size}, who="both", access=access, data=data, first=1001))


def test_the_time_of_the_accesses_is_not_in_the_messages(live: Session) -> None:
    """The accesses take most of the time of their blocks; the messages' own is what is left."""
    answer = ask(live, first=8_000_000, count=1, exchanges=5)
    sound(answer)
    after = answer["phases"][1]
    assert sum(sorted(after["comm"]["batches"])[:3]) * 1e-6 < after["measured_s"] / 2


def test_what_is_touched_lies_on_the_node_wanted(live: Session) -> None:
    pages = ask(live, who="both", first=1 << 20)["pages"]
    assert set(pages) == {"comm"}
    assert pages["comm"]["wanted"] == 0
    assert "unknown" in pages["comm"] or pages["comm"]["share"] == 1.0


def test_the_ranks_clocks_are_told_to_be_one_within_the_time_of_a_message(live: Session) -> None:
    for phase in ask(live)["phases"]:
        clocks = phase["comm"]["clocks"]
        assert abs(clocks["offset_ns"]) <= clocks["bound_ns"] + 1


@pytest.mark.parametrize("data", ["same", "different"])
def test_a_corrupted_message_voids_its_phase_and_no_other(live: Session, data: str) -> None:
    answer = ask(live, {"fault": "message"}, data=data)
    control, after = answer["phases"]
    assert "validation_failed" not in control["flags"]
    assert "validation_failed" in after["flags"]
    assert (after["status"], answer["status"], answer["validated"]) == ("void", "failed", False)
    sound(ask(live, data=data))


@pytest.mark.parametrize("barrier", [True, False])
def test_a_message_sent_before_its_receiver_came_is_sent_again(live: Session, barrier: bool) -> None:
    answer = ask(live, {"fault": "late"}, barrier=barrier)
    sound(answer)
    assert answer["phases"][0]["comm"]["late"] >= 1
    assert len(answer["phases"][0]["comm"]["batches"]) == 30


BESIDE = {"comp_cores": [CORES[1]], "scheduling": True}


def test_bystanders_touch_memory_of_their_own_while_messages_pass(live: Session) -> None:
    """Here one shares the receiver's core, on purpose: small machines have no third."""
    answer = ask(live, BESIDE, who="bystanders", first=4096, count=1, exchanges=4)
    sound(answer)
    assert "scheduling" in answer["flags"]
    assert answer["pages"]["comp"]["wanted"] == 0


def test_bystanders_may_be_processes_of_their_own(live: Session) -> None:
    answer = ask(live, BESIDE, who="bystanders", bystanders="processes", first=4096, count=1, exchanges=4)
    sound(answer)
    assert answer["pages"]["comp"]["wanted"] == 0
    sound(ask(live, BESIDE, who="bystanders", first=4096, count=1, exchanges=4))


@pytest.mark.parametrize("timing", ["recv", "send", "recv-cpu", "send-cpu"])
def test_calls_are_timed_by_the_clock_or_by_the_cpu_time_of_their_thread(live: Session, timing: str) -> None:
    answer = ask(live, timing=timing, exchanges=10)
    assert answer["validated"]
    assert answer["status"] == "ok", answer["flags"]
    for phase in answer["phases"]:
        assert len(phase["comm"]["batches"]) == 3 * 10
        assert phase["comm"]["late"] == 0
        assert all(0 <= time < 1e6 for time in phase["comm"]["batches"])


@pytest.mark.alone
def test_a_call_of_recv_contains_the_wait_for_a_sender_who_is_late(live: Session) -> None:
    """Without a barrier the receiver calls at once, and the sender after its accesses of 8 MB. A busy machine
    holds up some calls, not each of fifteen sends, and not the receiver in each of three windows.
    """
    there = {"who": "sender", "first": 8_000_000, "count": 1, "exchanges": 15, "barrier": False}

    def contains_the_wait() -> bool:
        called = ask(live, timing="recv", **there)["phases"][1]["comm"]["batches"]
        sent = ask(live, timing="send", **there)["phases"][1]["comm"]["batches"]
        return bool(median(called) > 5 * min(sent))

    assert any(contains_the_wait() for _ in range(3))


def test_bystanders_that_end_before_the_messages_void_the_phase(live: Session) -> None:
    answer = ask(live, {**BESIDE, "fault": "early_stop"}, who="bystanders", count=1)
    assert "not_overlapped" not in answer["phases"][0]["flags"]
    assert "not_overlapped" in answer["phases"][1]["flags"]
    assert answer["phases"][1]["status"] == "void"


def test_a_window_too_short_for_the_clock_is_void(live: Session) -> None:
    """One message of a byte takes less than a hundred readings of any clock, unless it is held up."""
    answers = [ask(live, {"size": 1}, who="none", count=1, exchanges=1) for _ in range(5)]
    limit = 100 * live.hello["clock"]["call_ns"] * 1e-3
    for phase in (phase for answer in answers for phase in answer["phases"]):
        # The probe and its hello measure the clock once; a time near the limit may fall on either side.
        if abs(phase["comm"]["value"] - limit) > limit / 2 and live.hello["clock"]["resolution_ns"] < 50:
            assert ("too_short" in phase["flags"]) == (phase["comm"]["value"] < limit)


def test_ordinary_repetitions_follow_windows_and_windows_them(live: Session) -> None:
    sound(ask(live))
    ordinary = {"sequence": ["B"], "extraneous": None, "window": 0.01, "steady": {"window": 3, "limit": 0.05}}
    assert ask(live, ordinary)["validated"] is True
    sound(ask(live))


REFUSED = [
    ({}, {"who": "nobody"}, "extraneous.who", "nobody"),
    ({}, {"access": "touch"}, "extraneous.access", "touch"),
    ({}, {"data": "other"}, "extraneous.data", "other"),
    ({}, {"timing": "wall"}, "extraneous.timing", "wall"),
    ({}, {"bystanders": "fibres"}, "extraneous.bystanders", "fibres"),
    ({}, {"count": 0}, "extraneous.count", "0"),
    ({}, {"step": 0}, "extraneous.step", "0"),
    ({}, {"exchanges": 0}, "extraneous.exchanges", "0"),
    ({}, {"first": -1}, "extraneous.first", "-1"),
    ({}, {"first": 1 << 50, "count": 1}, "accesses", str(1 << 50)),
    ({}, {"who": "bystanders"}, "comp_cores", ""),
    ({"comp_cores": [100_000]}, {"who": "bystanders"}, "comp_cores", "100000"),
    ({"comp_cores": [CORES[1]]}, {"who": "bystanders"}, "peer_cores", str(CORES[1])),
    ({"peer_cores": [CORES[0]]}, {}, "peer_cores", str(CORES[0])),
    ({"sequence": ["AB"]}, {}, "sequence", "AB"),
    ({"kernel": "prime", "comp_cores": [CORES[1]]}, {}, "kernel", "prime"),
    ({"metric": "bandwidth"}, {}, "metric", "bandwidth"),
]


@pytest.mark.parametrize(("outside", "window", "field", "value"), REFUSED)
def test_what_cannot_be_measured_is_refused_with_field_value_and_mend(
    live: Session, outside: Record, window: Record, field: str, value: str
) -> None:
    answer = ask(live, outside, **window)
    assert (answer["record"], answer["field"], answer["value"]) == ("error", field, value), answer
    assert answer["message"]
    assert answer["hint"]


def test_a_window_needs_two_ranks(embedded_mpi: Mpi) -> None:
    wanted = LaunchRequest(ranks=1, ranks_per_host=1, probe=str(probe(embedded_mpi)), mpi=embedded_mpi)
    alone = Session(build_launch("local", wanted, {}), ranks=1, mpi=embedded_mpi)
    try:
        answer = ask(alone)
    finally:
        alone.close()
    assert (answer["record"], answer["field"], answer["value"]) == ("error", "ranks", "1")


def test_misses_are_modelled_for_every_size_with_accesses_and_without(live: Session) -> None:
    without, after = (phase["misses"] for phase in ask(live)["phases"])
    if "unknown" in after:
        pytest.skip(after["unknown"])
    for one in (without, after):
        assert one["source"] == "modelled"
        for side in ("sender", "receiver"):
            assert all(len(counts) == 3 for counts in one[side].values())
    assert after["sender"]["L1"][0] == without["sender"]["L1"][0]


def test_misses_that_cannot_be_counted_are_absent_with_the_reason(live: Session) -> None:
    for phase in ask(live)["phases"]:
        for side in ("sender", "receiver"):
            counted = phase["misses"].get("measured", {}).get(side, {})
            assert all(len(counts) == 3 for counts in counted.values())
    after = ask(live)["phases"][1]["misses"]
    counted = after.get("measured", {}).get("sender", {})
    for level in ("L1", "L2", "L3"):
        assert (level in counted) != bool(after["not_measured"].get(level))


def test_misses_that_are_counted_have_a_number_for_each_size_side_and_kind(live: Session) -> None:
    answer = ask(live, {"fault": "counters"})  # counts time in their place
    sound(answer)
    for phase in answer["phases"]:
        measured = phase["misses"]["measured"]
        assert measured["source"] == "measured"
        for side in ("sender", "receiver"):
            assert set(measured[side]) <= {"L1", "L2", "L3"}
            assert "L1" in measured[side]
            assert all(len(counts) == 3 for counts in measured[side].values())
        for side in ("sender", "receiver"):
            work = phase["misses"]["work"][side]
            assert set(work) == {"instructions", "cycles", "L1_writes"}
            assert all(len(counts) == 3 for counts in work.values())
        assert phase["misses"]["source"] == "modelled"
        assert len(phase["comm"]["batches"]) == 3 * 10
