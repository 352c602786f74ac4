"""Stalls planted into a rank, and what is recovered of them: python benchmarks/planted_stalls.py.

Two ranks exchange messages of 64 B, one every 20 us for 3 s. Rank 1 is stopped (SIGSTOP) for 1 ms every
100 ms. Printed are length and period as planted, and as recovered from the latencies alone. The length of a
stop is the one that a process notices that only reads the clock: until it runs again, later than SIGCONT is
sent.
Needs two cores that nothing else uses, or --real-time as root.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from command import Command

from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.session import Session
from elbowroom.points.unit import Unit
from elbowroom.stats.tails import Window, disturbances

LENGTH, PERIOD, MESSAGE_PERIOD = 1e-3, 0.1, 20e-6


def built(folder: Path) -> Path:
    """The program that stops a process."""
    program = folder / "stopper"
    source = Path(__file__).with_name("stopper.c")
    subprocess.run(["cc", "-O2", "-o", str(program), str(source)], check=True)
    return program


def raised(process: int, priority: int) -> None:
    """Gives all threads of a process a real-time priority, which keeps other programs off their cores."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))


def window_of(phase: dict) -> Window:
    comm, due = phase["comm"], phase["comm"]["due"]
    trips = 2 * np.array(comm["batches"])
    times = due["first_ns"] / 1e3 + due["period_us"] * np.arange(len(trips))
    return Window(period=due["period_us"], due=times, latencies=trips + due["late_us"], round_trips=trips)


def stopping(program: Path, process: int, seconds: float, real_time: bool) -> subprocess.Popen[str]:
    """The started program that stops a process."""
    words = [process, round(LENGTH * 1e6), round(PERIOD * 1e6), seconds]
    stopper = subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if real_time:
        raised(stopper.pid, 60)
    return stopper


def stops_of(program: subprocess.Popen[str]) -> np.ndarray:
    """Begin and end of each stop that a program printed, us, shape (n, 2)."""
    output, _ = program.communicate(timeout=60)
    return np.array([line.split() for line in output.splitlines()], dtype=np.float64).reshape(-1, 2) / 1e3


def noticed(program: Path, core: int, real_time: bool, window: float) -> float:
    """How long a stop is for a process that does nothing but read the clock, us: until it runs again."""
    victim = subprocess.Popen(
        ["taskset", "-c", str(core), program, str(window)], stdout=subprocess.PIPE, text=True
    )
    if real_time:
        raised(victim.pid, 50)
    stopper = stopping(program, victim.pid, window - 0.2, real_time)
    gaps = np.diff(stops_of(victim), axis=1)[:, 0]
    stopper.kill()
    stopper.communicate()
    return float(np.median(gaps[(gaps > 0.8e6 * LENGTH) & (gaps < 2e6 * LENGTH)]))


def run(session: Session, program: Path, real_time: bool, window: float) -> None:
    cores = sorted(os.sched_getaffinity(0))
    request = {
        "op": "measure", "point": "stalls", "repetition": 0, "sequence": ["B"], "kernel": "none", "size": 64,
        "comm_node": 0, "comm_cores": [cores[0]], "peer_cores": [cores[1]], "metric": "latency",
        "window": window, "period": MESSAGE_PERIOD,
    }  # fmt: skip
    length = noticed(program, cores[1], real_time, window)
    ranks = {rank["rank"]: rank["pid"] for rank in session.hello["ranks"]}
    stopper = stopping(program, ranks[1], window + 0.5, real_time)
    try:
        if real_time:
            raised(ranks[0], 50)
            raised(ranks[1], 50)
        (phase,) = session.ask(Unit(point="stalls", repetition=0), request, 60.0)["phases"]
        stops = stops_of(stopper)
    finally:
        stopper.kill()
    commanded = float(np.median(stops[:, 1] - stops[:, 0]))
    period = float(np.median(np.diff(stops[:, 0])))
    print(
        f"planted:   {len(stops)} stalls of {commanded:.0f} us, one every {period / 1e3:.2f} ms; "
        f"a process stopped like this runs again after {length:.0f} us"
    )
    for found in disturbances([window_of(phase)]):
        text = f"recovered: {found.count} stalls of {found.length.value:.0f} us"
        if found.period is not None:
            ends = f"{found.period.low / 1e3:.2f} to {found.period.high / 1e3:.2f}"
            text += f", one every {found.period.value / 1e3:.2f} ms ({ends}), {found.in_step} in step"
            if abs(found.period.value / period - 1) < 0.1:
                errors = (100 * (found.length.value / length - 1), 100 * (found.period.value / period - 1))
                text += "; length {:+.1f} %, period {:+.2f} %".format(*errors)
        print(text)


def main() -> None:
    parser = Command(__doc__, smoke="--seconds 0.5")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--real-time", action="store_true", help="ranks with a real-time priority; as root")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    options = parser.parse_args()
    mpi = find_mpi()
    wanted = LaunchRequest(ranks=2, ranks_per_host=2, probe=str(probe(mpi)), mpi=mpi, share_core=False)
    session = Session(build_launch("local", wanted, {}), ranks=2, mpi=mpi)
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = built(Path(folder))
            for _ in range(options.runs):
                run(session, program, options.real_time, options.seconds)
    finally:
        session.close()


if __name__ == "__main__":
    main()
