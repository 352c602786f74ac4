"""Ping-pong of the probe against NetPIPE's: same MPI, same cores, same pages, interleaved.

    python benchmarks/pingpong.py [--repeat 7] [--cores 0,1] [--sizes 4,1000,64MiB] [--json]

NetPIPE (Debian: netpipe-openmpi) is linked with the system's Open MPI, so the probe is built with that one.
Both report half the round trip and both take the best of three trials of a quarter of a second. Prints, for
each size, the ratio NetPIPE / probe of the medians of those times with its paired bootstrap interval: above 1
the probe is faster.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from command import Command

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch.build import probe
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment
from elbowroom.stats.interval import Kept, Summary
from elbowroom.stats.summary import kept, summarise

NETPIPE = "NPopenmpi"
SIZES = "4,61,1000,1024,4095,4097,65536,100001,1MiB,1500001,8MiB,64MiB"
TRIALS = 3  # of NetPIPE for each size
TRIAL_SECONDS = 0.25
PR_SET_THP_DISABLE = 41  # linux/prctl.h


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One size in bytes: both sides' times in us and their ratio."""

    size: int
    probe: Summary
    netpipe: Summary
    ratio: Kept | None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    mpi: Mpi
    probe: str
    cores: tuple[int, int]
    threads: str


def bytes_of(text: str) -> int:
    match = re.fullmatch(r"(\d+)(k|K|M|G)?(i)?B?", text.strip())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 64MiB, 1000 or 4")
    base = 1024 if match[3] else 1000
    return int(match[1]) * int(base ** ("_KMG".index(match[2].upper()) if match[2] else 0))


def sizes_of(text: str) -> list[int]:
    return [bytes_of(part) for part in text.split(",")]


def cores_of(text: str) -> tuple[int, int]:
    parts = [int(part) for part in text.split(",") if part.strip().isdigit()]
    if len(parts) != 2 or not set(parts) <= os.sched_getaffinity(0):
        raise argparse.ArgumentTypeError(f"'{text}' must be two of this process' cores; write 0,1")
    return parts[0], parts[1]


def without_huge_pages() -> None:
    """For a child between fork and exec: NetPIPE's buffers get no huge pages, so the probe's do not."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def environment(setting: Setting) -> dict[str, str]:
    """Copies through shared memory on both sides; ranks that share a core must yield it."""
    wanted = {"OMPI_MCA_pml": "ob1", "TMPDIR": "/tmp"}
    if setting.mpi.major >= 5:
        wanted |= {"OMPI_MCA_btl": "self,sm", "OMPI_MCA_smsc": "^cma,xpmem,knem"}
    else:
        wanted |= {"OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    if setting.cores[0] == setting.cores[1]:
        wanted["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return dict(os.environ) | launch_environment() | wanted


def ranks(setting: Setting, program: Sequence[str]) -> list[str]:
    """The command line: each rank starts on its own core, whichever program it is."""
    command = [setting.mpi.launcher, "--bind-to", "none", "--oversubscribe"]
    for rank, core in enumerate(setting.cores):
        command += [] if rank == 0 else [":"]
        command += ["-n", "1", "taskset", "-c", str(core), *program]
    return command


def netpipe_time(setting: Setting, size: int) -> float:
    """Half the round trip in us."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "np.out"
        program = [NETPIPE, "-l", str(size), "-u", str(size), "-p", "0", "-o", str(out)]
        done = subprocess.run(
            ranks(setting, program),
            capture_output=True,
            text=True,
            env=environment(setting),
            check=False,
            preexec_fn=without_huge_pages,
        )
        if done.returncode != 0 or not out.exists():
            raise MachineError(f"{NETPIPE} failed: {(done.stderr or done.stdout).strip()[-300:]}")
        fields = out.read_text().split()
    if len(fields) < 3 or int(fields[0]) != size:
        raise MachineError(f"{NETPIPE} wrote no line for {size} bytes: {' '.join(fields)}")
    # The third column, seconds, has too few digits for small messages; the second is in 2^20 bit/s.
    return size * 8 / (float(fields[1]) * 2**20) * 1e6


class Probe:
    """The probe; its ranks bind themselves to the cores asked for."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        command = [setting.mpi.launcher, "--bind-to", "none", "--oversubscribe", "-n", "2"]
        self.process = subprocess.Popen(
            [*command, setting.probe, "measure", "--threads", setting.threads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(setting),
            preexec_fn=without_huge_pages,
        )
        self.hello = self._answer()

    def _answer(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise MachineError("the probe ended before it answered")
        answer: dict[str, object] = json.loads(line)
        if answer["record"] == "error":
            raise MachineError(f"the probe refused: {answer['message']}; {answer['hint']}")
        return answer

    def _send(self, request: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def time(self, size: int) -> float:
        """Half the round trip in us: the best of as many phases as NetPIPE makes trials."""
        self._send(
            {
                "op": "measure",
                "point": "pingpong",
                "repetition": 0,
                "sequence": ["B"] * TRIALS,
                "size": size,
                "comm_cores": [self.setting.cores[0]],
                "peer_cores": [self.setting.cores[1]],
                "metric": "latency",
                "window": TRIAL_SECONDS,
            }
        )
        phases = self._answer()["phases"]
        assert isinstance(phases, list)
        return min(float(phase["comm"]["value"]) for phase in phases)

    def quit(self) -> None:
        if self.process.poll() is None:
            self._send({"op": "quit"})
        self.process.wait(60)


def probe_time(setting: Setting, size: int) -> float:
    """Half the round trip in us, of a probe started for it, as NetPIPE is: where the pages of a process come
    to lie moves a latency by more than 10 % from start to start.
    """
    started = Probe(setting)
    try:
        return started.time(size)
    finally:
        started.quit()


def measure(setting: Setting, sizes: Sequence[int], repeat: int) -> list[Row]:
    """Every repetition visits every size with both sides; the side that goes first alternates."""
    ours: dict[int, dict[int, list[float]]] = {size: {} for size in sizes}
    theirs: dict[int, dict[int, list[float]]] = {size: {} for size in sizes}
    for repetition in range(repeat):
        for size in sizes:
            print(f"{size} B {repetition + 1}/{repeat}", file=sys.stderr)
            for side in ("probe", "netpipe") if repetition % 2 == 0 else ("netpipe", "probe"):
                if side == "probe":
                    ours[size][repetition] = [probe_time(setting, size)]
                else:
                    theirs[size][repetition] = [netpipe_time(setting, size)]
    return [
        Row(
            size=size,
            probe=summarise([time for times in ours[size].values() for time in times], "us"),
            netpipe=summarise([time for times in theirs[size].values() for time in times], "us"),
            ratio=kept(ours[size], theirs[size]),
        )
        for size in sizes
    ]


def show(rows: Sequence[Row], machine: str) -> None:
    print(machine)
    print(f"{'bytes':>10} {'probe us':>12} {'NetPIPE us':>12} {'MB/s':>9}  NetPIPE / probe [95 %]")
    for row in rows:
        ratio = f"{row.ratio.value:.3f} [{row.ratio.low:.3f}, {row.ratio.high:.3f}]" if row.ratio else "n/a"
        rate = row.size / row.probe.median
        print(f"{row.size:>10} {row.probe.median:>12.3f} {row.netpipe.median:>12.3f} {rate:>9.1f}  {ratio}")


def arguments() -> argparse.Namespace:
    parser = Command("Ping-pong of the probe against NetPIPE.", smoke="--repeat 1 --sizes 8")
    parser.add_argument("--repeat", type=int, default=7, help="interleaved repetitions of each size")
    parser.add_argument("--cores", type=cores_of, default="0,1", help="core of each rank")
    parser.add_argument("--sizes", type=sizes_of, default=SIZES, help="message sizes in bytes")
    parser.add_argument(
        "--threads",
        choices=("single", "funneled", "multiple"),
        default="single",
        help="thread level of the probe's MPI; NetPIPE's is single, a program that also computes needs more",
    )
    parser.add_argument("--mpi", default="openmpi", help=f"the MPI that {NETPIPE} is linked with")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    chosen = parser.parse_args()
    if chosen.repeat < 1:
        parser.error("--repeat must be positive")
    return chosen


def main() -> int:
    chosen = arguments()
    for tool, package in ((NETPIPE, "netpipe-openmpi libopenmpi-dev"), ("taskset", "util-linux")):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed; on Debian: apt-get install {package}", file=sys.stderr)
            return 1
    load = os.getloadavg()
    try:
        mpi = find_mpi(chosen.mpi)
        setting = Setting(mpi=mpi, probe=str(probe(mpi)), cores=chosen.cores, threads=chosen.threads)
        rows = measure(setting, chosen.sizes, chosen.repeat)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except ElbowroomError as error:
        print(error, file=sys.stderr)
        return 1
    machine = (
        f"{mpi.name}, cores {chosen.cores[0]} and {chosen.cores[1]}, shared memory, no huge pages, "
        f"probe {chosen.threads}; "
        f"load {load[0]:.2f} before, {os.getloadavg()[0]:.2f} after"
    )
    if chosen.json:
        print(json.dumps({"machine": machine, "sizes": msgspec.to_builtins(rows)}))
    else:
        show(rows, machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
