"""`elbowroom nic measure`: what n senders of a node get together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import REPEAT, Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.launch.launchers import host_count
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.nic import NicSettings, behind, emulated
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import format_size, number, plural
from elbowroom.verbs.declaration import Verb, dry_run_option, function_of, included, option
from elbowroom.verbs.nic import EmulatedNicOptions
from elbowroom.verbs.run_options import Launching, launcher_help, out_option

if TYPE_CHECKING:
    from elbowroom.launch.executables import JobLaunch
    from elbowroom.launch.launcher import Launch
    from elbowroom.profile.curve import MessageCase, ProfileCalibration

MOST_RANKS = 1024
MOST_SIZE = 2**30


class CalibrateNic(Verb):
    """Measure the bandwidth that n senders on a node share.

    To another node and inside the node, over sizes. Estimates of network time rest on it.
    """

    name = "nic measure"
    has_tables = True
    saves = True

    sizes: Sequence[int] = option("Message sizes.", "S,S", default="1KiB,16KiB,256KiB,4MiB", positional=True)
    ranks: int | None = option(
        "Number of ranks on all nodes; default: one per core.", "N", type=click.IntRange(min=2)
    )
    emulation: EmulatedNicOptions = included(EmulatedNicOptions)
    repeat: int = option("Number of repetitions.", "N", default=5, type=REPEAT)
    launching: Launching = included(Launching, own={"launcher": launcher_help()})
    out: Path | str | None = out_option(Output(".json"), "Write the curve for `--curve`.")
    dry_run: bool = dry_run_option()
    seconds: float = 0.1

    def do(self) -> ProfileCalibration:
        """Measures 1, 2, … senders of a node at once, to another node and inside the node, over sizes (B).

        `ranks`: of all nodes together (default: one for each core of two nodes); `nic`: an emulated one
        (docs/reference/nic.md), else all ranks of a host are one node's. `seconds` of each of the `repeat`
        measurements of a case. UsageError for what cannot be measured, MachineError where it fails.
        """
        from elbowroom.launch.executables import measure_network
        from elbowroom.profile.curve import calibration

        nic = self.emulation.settings()
        cases, job = self._cases(nic)
        with contextlib.nullcontext() if nic is None else emulated(nic):
            measured = measure_network(
                cases, job, repeat=self.repeat, seconds=self.seconds, adapt=_adapt(nic)
            )
        return calibration(cases, measured, find_mpi(self.launching.mpi).name)

    def planned_starts(self) -> Iterator[PlannedStart]:
        from elbowroom.launch.executables import NETWORK_BENCH, bench_launch

        nic = self.emulation.settings()
        cases, job = self._cases(nic)
        launch = _adapt(nic)(bench_launch(NETWORK_BENCH, job))
        yield PlannedStart(
            what=f"senders of messages: {len(cases)} cases, {self.repeat} repetitions each",
            commands=(launch.line(),),
            seconds=len(cases) * self.repeat * self.seconds,
        )

    def _cases(self, nic: NicSettings | None) -> tuple[list[MessageCase], JobLaunch]:
        """What is measured, and the job whose ranks measure it."""
        from elbowroom.launch.executables import JobLaunch
        from elbowroom.profile.curve import cases

        for size in self.sizes:
            if not 1 <= size <= MOST_SIZE:
                raise UsageError(
                    "is not between 1 B and 1 GiB", field="sizes", value=size, hint="give 1KiB,4MiB"
                )
        launching = self.launching
        hosts, hostfile = tuple(launching.hosts), launching.hostfile
        if nic is not None and (hosts or hostfile):
            raise UsageError(
                "is emulated on this host only", field="nic", hint="leave --hosts and --hostfile out"
            )
        ranks = _ranks(self.ranks, hosts, hostfile, nic)
        job = JobLaunch(ranks, launching.launcher, launching.mpi, hosts, hostfile)
        on_host = -(-ranks // max(1, host_count(job.launcher or "local", hosts, hostfile, os.environ)))
        each = nic.ranks_per_node if nic else on_host
        return cases(tuple(sorted(set(self.sizes))), min(each, ranks)), job

    def print(self, result: ProfileCalibration) -> None:
        print_wrapped(f"All senders of a node together, MB/s ({result.mpi})", style="bold")
        table = new_table("", ">senders", ">size", ">MB/s", ">range")
        for row in result.rows:
            where = "inside the node" if row.inside else "both directions" if row.both else "between nodes"
            spread = f"{number(row.low)} - {number(row.high)}"
            table.add_row(where, str(row.senders), format_size(row.size), number(row.bandwidth), spread)
        print_table(table)

    def answer(self, result: ProfileCalibration) -> Answer:
        """What the NIC moves, with one sender and with all, and the latency."""
        between = [row for row in result.rows if not row.inside and not row.both]
        if result.curve is None or not between:
            best = max(result.rows, key=lambda row: row.bandwidth)
            return Answer(
                "There is not a curve of a NIC: all ranks are on one node.",
                f"{plural(best.senders, 'sender')} in the node move {number(best.bandwidth)} MB/s at most.",
                command_line("nic", "measure", "--nic", "1GB/s", "--ranks-per-node", 1, "-o", "nic.json"),
                "yellow",
            )
        best = max(between, key=lambda row: row.bandwidth)
        alone = max((row for row in between if row.senders == 1), key=lambda row: row.bandwidth, default=best)
        return Answer(
            f"The NIC moves {number(best.bandwidth)} MB/s with {plural(best.senders, 'sender')} of a node, "
            f"{number(alone.bandwidth)} MB/s with one.",
            f"A message takes {number(result.curve.latency * 1e6)} µs from node to node.",
            self.again(out="nic.json") if self.out is None else command_line("help", "profile"),
        )


calibrate_network = function_of(CalibrateNic, "calibrate_network")


def _adapt(nic: NicSettings | None) -> Callable[[Launch], Launch]:
    return (lambda launch: launch) if nic is None else (lambda launch: behind(launch, nic))


def _ranks(ranks: int | None, hosts: Sequence[str], hostfile: str | None, nic: NicSettings | None) -> int:
    cores = len(os.sched_getaffinity(0))
    default = 2 * nic.ranks_per_node if nic else max(2, 2 * cores if hosts or hostfile else cores)
    count = default if ranks is None else ranks
    if not 2 <= count <= MOST_RANKS:
        raise UsageError(f"is not between 2 and {MOST_RANKS}", field="ranks", value=count, hint="give 8")
    return count


def save(calibration: ProfileCalibration, path: Path) -> None:
    """Writes what `load_calibration` reads."""
    from elbowroom.profile.curve import CALIBRATION

    CALIBRATION.write(path, calibration)
