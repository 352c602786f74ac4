"""Estimated network time against the truth of the emulated NIC, and how much the mini-kernels communicate.

    python benchmarks/nic.py [--mpi openmpi] [--bandwidth 50MB/s] [--senders 8] [--repeat 3] [--json]

Two emulated nodes. First `nic measure` measures the curve. Then k = 1, 2 … senders of a node send
messages of 4 KiB to 1 MiB in rounds (senders.c); profiled, and logged by the NIC itself. The log has for each
piece of a message when its sender first wanted to pass it on, and when the NICs had passed it on. Compared
are, summed over all rounds: the time in which the node's NIC was in use, and the time of each sender, summed.
The estimate knows the profile and the curve, and nothing of the log. To reach: 5 % for each k (the median of
the repetitions), for the node.

Then each mini-kernel with its defaults on two nodes of two ranks: the share of its time on the network, as
estimated and as logged, and the time that is not computation.

Exit code 1 where one is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from command import Command, status
from nic_transfers import Transfers, read_transfers
from trace_mpi import c_wrapper

from elbowroom import api
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi, spec_of
from elbowroom.launch.nic import NicSettings
from elbowroom.profile.analysis import analyse, summarise
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.profile import read_profile
from elbowroom.profile.spans import union
from elbowroom.quantities import parse_bandwidth

LIMIT = 0.05
SENDERS = Path(__file__).with_name("senders.c")
ROUNDS = 4
KERNELS = ("ep", "cg", "ft", "is", "mg", "lu", "bt", "sp")


class Compared(NamedTuple):
    """A run: seconds, those in MPI (mean of the first node's ranks), and seconds on the network as logged and
    as estimated: in which the first node's NIC was in use, and of its senders, summed.
    """

    seconds: float
    mpi_s: float
    truth: float
    estimate: float
    truth_senders: float
    estimate_senders: float
    concurrency: tuple[float, ...]


def words_of(mpi: Mpi, ranks: int, *program: str) -> list[str]:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return [mpi.launcher, *more, "-n", str(ranks), *program]


def compared(words: list[str], where: Path, nic: NicSettings, curve: NicCurve) -> Compared:
    """Profiles a command behind the NIC, and compares what is estimated with what the NIC logged."""
    logged = msgspec.structs.replace(nic, log=str(where.with_suffix(".log")))
    document = api.record_profile(words, where, nic=logged, stdout=subprocess.DEVNULL).document
    if document.exit_code:
        sys.exit(f"{' '.join(words)} ended with exit code {document.exit_code}: {document.notes}")
    analysis = analyse(read_profile(where), curve)
    summary = summarise(analysis)
    leaves = analysis.network.out & (analysis.network.node == 0)
    senders = union(
        analysis.network.rank[leaves], analysis.network.begin[leaves], analysis.network.end[leaves]
    )
    truth = read_transfers(where.with_suffix(".log"))
    ours = (truth.source == 0) | (truth.target == 0)
    return Compared(
        seconds=summary.duration_s,
        mpi_s=summary.nodes[0].mpi_s / summary.nodes[0].ranks,
        truth=used(truth, ours, np.zeros(len(ours), np.int64)),
        estimate=summary.nodes[0].network_s,
        truth_senders=used(truth, truth.source == 0, truth.rank),
        estimate_senders=float((senders.end - senders.begin).sum()),
        concurrency=summary.nodes[0].concurrency,
    )


def used(truth: Transfers, which: npt.NDArray[np.bool_], group: npt.NDArray[np.int64]) -> float:
    """Seconds in which at least one of these transfers was in flight, sum of the groups."""
    found = union(group[which], truth.began[which], truth.ended[which])
    return float((found.end - found.begin).sum())


def error(estimate: float, truth: float) -> float:
    return estimate / truth - 1 if truth > 0 else 0.0


def measure_senders(
    mpi: Mpi, nic: NicSettings, curve: NicCurve, most: int, repeat: int, folder: Path
) -> dict[int, list[Compared]]:
    """The repetitions of each k; the k take turns."""
    program = folder / "senders"
    subprocess.run([c_wrapper(mpi), "-O2", "-o", program, SENDERS], check=True)
    found: dict[int, list[Compared]] = {k: [] for k in range(1, most + 1)}
    for number in range(repeat):
        for k in found:
            words = words_of(mpi, 2 * most, str(program), str(most), str(k), str(ROUNDS))
            found[k].append(compared(words, folder / f"senders-{k}-{number}", nic, curve))
    return found


def measure_kernels(mpi: Mpi, nic: NicSettings, curve: NicCurve, folder: Path) -> dict[str, Compared]:
    program = str(build.application("elbow_minikernel", mpi))
    return {
        name: compared(words_of(mpi, 2 * nic.ranks_per_node, program, name), folder / name, nic, curve)
        for name in KERNELS
    }


def print_senders(found: dict[int, list[Compared]]) -> None:
    print("senders   node: logged  estimated   error   senders: logged  estimated   error")
    for k, runs in found.items():
        node, ranks = middle(runs, "truth", "estimate"), middle(runs, "truth_senders", "estimate_senders")
        print(
            f"{k:>7}   {node[0]:>11.3f} s {node[1]:>8.3f} s {100 * node[2]:>+6.1f} %"
            f"   {ranks[0]:>14.3f} s {ranks[1]:>8.3f} s {100 * ranks[2]:>+6.1f} %"
        )


def middle(runs: list[Compared], truth: str, estimate: str) -> tuple[float, float, float]:
    """Of the repetition with the median error: seconds of the log and of the estimate, and the error."""
    rows = sorted(
        (error(getattr(run, estimate), getattr(run, truth)), getattr(run, truth), getattr(run, estimate))
        for run in runs
    )
    share, logged, estimated = rows[(len(rows) - 1) // 2]
    return logged, estimated, share


def print_kernels(found: dict[str, Compared]) -> None:
    print("\nkernel   time   on the network: logged  estimated   in MPI")
    for name, run in found.items():
        print(
            f"{name:<6} {run.seconds:>5.2f} s {100 * run.truth / run.seconds:>22.1f} %"
            f" {100 * run.estimate / run.seconds:>8.1f} % {100 * run.mpi_s / run.seconds:>7.1f} %"
        )


def main() -> None:
    parser = Command(__doc__, smoke="--senders 1 --repeat 1 --no-kernels")
    parser.add_argument("--mpi", default="embedded")
    parser.add_argument("--bandwidth", default="50MB/s")
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-kernels", action="store_true", help="leave the mini-kernels out")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    mpi = find_mpi(arguments.mpi)
    bandwidth = parse_bandwidth(arguments.bandwidth, "bandwidth")
    nic = NicSettings(bandwidth=bandwidth, ranks_per_node=arguments.senders)
    calibration = api.calibrate_network(nic=nic, mpi=spec_of(mpi), repeat=min(3, arguments.repeat))
    assert calibration.curve is not None
    with tempfile.TemporaryDirectory() as name:
        senders = measure_senders(
            mpi, nic, calibration.curve, arguments.senders, arguments.repeat, Path(name)
        )
        pair = NicSettings(bandwidth=bandwidth, ranks_per_node=2)
        kernels = {} if arguments.no_kernels else measure_kernels(mpi, pair, calibration.curve, Path(name))
    if arguments.json:
        rows = {k: [run._asdict() for run in runs] for k, runs in senders.items()}
        shares = {name: run._asdict() for name, run in kernels.items()}
        print(json.dumps({"mpi": mpi.name, "senders": rows, "kernels": shares, "limit": LIMIT}))
    else:
        print(f"{mpi.name}, {arguments.bandwidth} of each direction; calibrated, MB/s:")
        print(" ".join(f"{total / 1e6:.1f}" for total in calibration.curve.total) + "\n")
        print_senders(senders)
        if kernels:
            print_kernels(kernels)
    missed = [k for k, runs in senders.items() if abs(middle(runs, "truth", "estimate")[2]) > LIMIT]
    sys.exit(status(arguments, missed))


if __name__ == "__main__":
    main()
