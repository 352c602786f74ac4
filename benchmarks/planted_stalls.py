"""Stalls planted into a rank, and what is recovered of them: python benchmarks/planted_stalls.py.

Two ranks exchange messages of 64 B, one every 20 us for 5 s. Rank 1 is stopped (SIGSTOP) for 1 ms
every 100 ms.
Printed are length and period as planted, by the clock of the process that stops it, and as recovered from the
latencies alone. Needs two cores that nothing else uses; `--runs N` repeats it.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time

import numpy as np

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.session import Session
from elbowroom.plan.point import Unit
from elbowroom.stats.tails import Window, disturbances

LENGTH, PERIOD, WINDOW, MESSAGE_PERIOD = 1e-3, 0.1, 5.0, 20e-6


class Stopper(threading.Thread):
    """Stops a process again and again; keeps when it did."""

    def __init__(self, process: int) -> None:
        super().__init__()
        self.process, self.ended = process, threading.Event()
        self.stops: list[tuple[float, float]] = []

    def run(self) -> None:
        begin = time.monotonic()
        number = 0
        while not self.ended.is_set():
            number += 1
            time.sleep(max(0.0, begin + PERIOD * number - time.monotonic()))
            stopped = time.monotonic()
            os.kill(self.process, signal.SIGSTOP)
            # The core of the stopped rank is free to wait on.
            while time.monotonic() < stopped + LENGTH:
                pass
            os.kill(self.process, signal.SIGCONT)
            self.stops.append((stopped, time.monotonic()))


def window_of(phase: dict) -> Window:
    comm, due = phase["comm"], phase["comm"]["due"]
    trips = 2 * np.array(comm["batches"])
    times = due["first_ns"] / 1e3 + due["period_us"] * np.arange(len(trips))
    return Window(period=due["period_us"], due=times, latencies=trips + due["late_us"], round_trips=trips)


def run(session: Session) -> None:
    cores = sorted(os.sched_getaffinity(0))
    request = {
        "op": "measure", "point": "stalls", "repetition": 0, "sequence": ["B"], "kernel": "none", "size": 64,
        "comm_node": 0, "comm_cores": [cores[0]], "peer_cores": [cores[1]], "metric": "latency",
        "window": WINDOW, "period": MESSAGE_PERIOD,
    }  # fmt: skip
    stopper = Stopper(next(rank["pid"] for rank in session.hello["ranks"] if rank["rank"] == 1))
    stopper.start()
    try:
        (phase,) = session.ask(Unit(point="stalls", repetition=0), request, 60.0)["phases"]
    finally:
        stopper.ended.set()
        stopper.join()
    begins = [begin for begin, _ in stopper.stops]
    length = statistics.median(end - begin for begin, end in stopper.stops) * 1e6
    period = statistics.median(np.diff(begins)) * 1e6
    print(f"planted:   {len(begins)} stalls of {length:.0f} us, one every {period / 1e3:.2f} ms")
    for found in disturbances([window_of(phase)]):
        text = f"recovered: {found.count} stalls of {found.length.value:.0f} us"
        if found.period is not None:
            ends = f"{found.period.low / 1e3:.2f} to {found.period.high / 1e3:.2f}"
            text += f", one every {found.period.value / 1e3:.2f} ms ({ends}), {found.in_step} in step"
        if found.count > 3:
            errors = (100 * (found.length.value / length - 1), 0.0)
            if found.period is not None:
                errors = (errors[0], 100 * (found.period.value / period - 1))
            text += f"; length {errors[0]:+.1f} %, period {errors[1]:+.2f} %" if found.period else ""
        print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    runs = parser.parse_args().runs
    mpi = find_mpi()
    wanted = LaunchRequest(ranks=2, ranks_per_host=2, probe=str(probe(mpi)), mpi=mpi, share_core=False)
    session = Session(build_launch("local", wanted, {}), ranks=2, mpi=mpi)
    try:
        for _ in range(runs):
            run(session)
    finally:
        session.close()


if __name__ == "__main__":
    main()
