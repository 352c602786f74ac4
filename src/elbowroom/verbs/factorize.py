"""`elbowroom broadcast factorize`: factorizations on simulated clusters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import click

from elbowroom.broadcast.factorizations import (
    FactorizationDocument,
    FactorizationRequest,
    KernelTimes,
    factorization_document,
    read_step_times,
)
from elbowroom.cli.answer import Answer
from elbowroom.cli.console import print_wrapped
from elbowroom.errors import UsageError
from elbowroom.launch import build
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.points.factorizations import parse_grid
from elbowroom.quantities import number
from elbowroom.verbs.broadcasts import SEGMENTS, NetworkOptions
from elbowroom.verbs.declaration import Verb, dry_run_option, included, option

BLOCK = 320
"""Rows of a tile, where neither an option nor a file of times says it."""


class Factorized(NamedTuple):
    """A simulated factorization, and the rows of its tiles."""

    document: FactorizationDocument
    block: int


class Factorize(Verb):
    """Simulate a factorization in tiles on a cluster (Figs 4.9 to 4.16 of the thesis).

    Task graph and broadcasts are those of the real program; kernels take times that are measured on one core
    here, or given. The network is simulated.
    """

    name = "broadcast factorize"

    task: Literal["cholesky", "qr"] = option(
        "Factorization to simulate.", default="cholesky", type=click.Choice(["cholesky", "qr"])
    )
    tile_rows: int = option("Rows of tiles.", default=40, formerly="--rows")
    tile_columns: int | None = option(
        "With --task qr: columns of tiles; default: as many as rows.", formerly="--columns"
    )
    block: int | None = option("Rows of a tile; default: 320, or as in --times.")
    grid: str = option("Processes in rows and columns.", "PxQ", default="4x4")
    workers: int = option("Cores per process.", default=8)
    times: Path | str | None = option(
        "Times of the kernels (factorizations-inline times); default: measured."
    )
    sharing: int = option("Processes of a node, which share its link.", default=1)
    links: NetworkOptions = included(NetworkOptions)
    tree: str = option("Tree of the broadcasts; none: without broadcasts.", "KIND", default="binomial")
    segment: int | None = option(SEGMENTS, "SIZE")
    priorities: bool = option("Give all tasks the same priority.", spelled="--no-priorities", default=True)
    early: bool = option(
        "Start readers only after their data have been forwarded.", spelled="--wait-released", default=True
    )
    dry_run: bool = dry_run_option()

    def do(self) -> Factorized:
        """The time of the factorization, and the counts of its broadcasts."""
        from elbowroom.launch.executables import simulate_factorization

        network = self.links.network()
        request = FactorizationRequest(
            task=self.task,
            rows=self.tile_rows,
            columns=self.tile_rows if self.tile_columns is None else self.tile_columns,
            grid=parse_grid(self.grid),
            times=self._times(),
            workers=self.workers,
            bandwidth=network.bandwidth,
            latency=network.latency,
            overhead=network.overhead,
            tree=self.tree,
            segment=self.segment or 0,
            priorities=self.priorities,
            early=self.early,
            sharing=self.sharing,
        )
        document = factorization_document(simulate_factorization(request), request)
        return Factorized(document, request.times.block)

    def document(self, result: Factorized) -> FactorizationDocument:
        """Without the rows of its tiles."""
        return result.document

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The kernels, where their times are not given, and the simulator."""
        from elbowroom.launch.executables import FIRST_GUESS, times_command

        if self.times is None:
            what = "the kernels of a factorization on one core; the time is a first guess"
            command = shlex.join(times_command(self.block or BLOCK))
            yield PlannedStart(what=what, commands=(command,), seconds=FIRST_GUESS)
        what = "the simulator of task graphs; it measures nothing"
        yield PlannedStart(what=what, commands=(str(build.taskflow_simulator()),))

    def _times(self) -> KernelTimes:
        """Read, or measured; a block that contradicts the file is refused."""
        from elbowroom.launch.executables import time_steps

        if self.times is None:
            return time_steps(BLOCK if self.block is None else self.block)
        times = read_step_times(self.times)
        if self.block not in (None, times.block):
            raise UsageError(
                f"differs from the {times.block} rows of the times",
                field="block",
                value=self.block,
                hint="leave it out",
            )
        return times

    def print(self, result: Factorized) -> None:
        """The size, the time and rate, and the counts."""
        document, block = result
        print_wrapped(
            f"{self.task} of order {self.tile_rows * block} in tiles of {block} on {self.grid} "
            f"processes of {self.workers} cores, tree: {self.tree}; simulated",
            style="bold",
        )
        print_wrapped(
            f"{document.data} data are read by other processes, {document.broadcasts} of them by several (at "
            f"most {document.most_recipients}); without broadcasts there would be {document.messages} "
            "messages."
        )

    def answer(self, result: Factorized) -> Answer:
        """How long it takes, how busy the workers are, and what it is without broadcasts."""
        document = result.document
        return Answer(
            f"It takes {number(document.time_us / 1e6)} s at {number(document.Gflop_s)} Gflop/s (simulated).",
            f"The workers compute {document.busy:.0%} of the time; the rest they wait for data or for tasks.",
            self.again(tree="none" if self.tree != "none" else "binomial"),
        )
