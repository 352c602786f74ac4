"""Messages that are due at fixed times: each is kept, also those that were due while a rank was stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import Session
from elbowroom.points.unit import Unit
from elbowroom.stats.tails import Window

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 60.0  # seconds that a busy machine may take for anything

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores: one for each rank")

Record = dict[str, Any]


@pytest.fixture(scope="module")
def live(embedded_mpi: Mpi) -> Iterator[Session]:
    """Ranks that do not yield: on a busy machine one that does waits for a time slice in each round trip."""
    program = str(probe(embedded_mpi))
    wanted = LaunchRequest(ranks=2, ranks_per_host=2, probe=program, mpi=embedded_mpi, share_core=False)
    session = Session(build_launch("local", wanted, {}), ranks=2, mpi=embedded_mpi)
    try:
        yield session
    finally:
        session.close()


def ask(live: Session, **changes: Any) -> Record:
    """Messages only, each rank on a core of its own, since one that waits for the due time does not yield."""
    request = {
        "op": "measure",
        "point": "due",
        "repetition": 0,
        "sequence": ["B"],
        "kernel": "none",
        "size": 64,
        "comm_node": 0,
        "comm_cores": [CORES[0]],
        "peer_cores": [CORES[1]],
        "metric": "latency",
        "steady": {"window": 3, "cov": 0.5, "limit": 0.2},
    }
    return live.ask(Unit(point="due", repetition=0), request | changes, PATIENCE)


def window_of(phase: Record) -> Window:
    """In s."""
    comm, due = phase["comm"], phase["comm"]["due"]
    trips = 2e-6 * np.array(comm["batches"])
    period = 1e-6 * due["period_us"]
    times = 1e-9 * due["first_ns"] + period * np.arange(len(trips))
    return Window(
        period=period, due=times, latencies=trips + 1e-6 * np.array(due["late_us"]), round_trips=trips
    )


def test_each_message_is_kept_with_how_late_it_started(live: Session) -> None:
    (phase,) = ask(live, period=1e-3, window=0.2)["phases"]
    due = phase["comm"]["due"]
    assert len(due["late_us"]) == len(phase["comm"]["batches"]) == phase["comm"]["messages"] / 2
    assert len(due["late_us"]) <= 200
    assert min(due["late_us"]) >= 0
    assert due["period_us"] == pytest.approx(1000)
    assert due["clock_call_ns"] > 0
    assert phase["measured_s"] >= 0.9 * 1e-3 * len(due["late_us"])


def test_a_phase_ends_also_when_messages_are_due_faster_than_they_are_exchanged(live: Session) -> None:
    (phase,) = ask(live, period=1e-6, window=0.02, size=1 << 20)["phases"]
    assert 2 <= len(phase["comm"]["due"]["late_us"]) < 20_000


def test_messages_at_fixed_times_are_refused_for_bandwidths(live: Session) -> None:
    answer = ask(live, period=1e-3, metric="bandwidth")
    assert (answer["record"], answer["field"]) == ("error", "period")


def test_all_messages_that_are_due_while_a_rank_is_stopped_are_late(live: Session) -> None:
    """A loop that waits for each answer would have one late message for each stop (coordinated omission)."""
    pid = next(rank["pid"] for rank in live.hello["ranks"] if rank["rank"] == 1)
    ended = threading.Event()
    stops = []

    def stop() -> None:
        while not ended.wait(0.07):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(pid, signal.SIGCONT)
            stops.append(time.monotonic())

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        (phase,) = ask(live, period=2e-3, window=1.0)["phases"]
    finally:
        ended.set()
        stopper.join()
    found = window_of(phase)
    inside = sum(stops[0] <= at < stops[0] + found.due[-1] - found.due[0] for at in stops) - 2
    # A message that is due in the first 20 ms of a stop is answered 10 ms later at the earliest.
    assert inside > 0
    assert (found.latencies >= 0.01).sum() >= 7 * inside
    assert found.latencies.max() >= 0.02
