"""Broadcasts measured over MPI, beside MPI's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from elbowroom.broadcast import measured
from elbowroom.broadcast.measured import MOST_RANKS, Case
from elbowroom.broadcast.measured import BroadcastEntry as BroadcastEntry
from elbowroom.broadcast.measured import Time as Time
from elbowroom.broadcast.measured_figures import broadcast_figures as broadcast_figures
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.launch.bench import Job, bench_launch
from elbowroom.launch.broadcast_bench import BROADCAST_BENCH, measure_broadcasts
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts

DEFAULT_SIZES = (4, 65536, 1048576)
DEFAULT_TREES = ("flat", "binary", "binomial", "two")
WAYS = 4
"""A tree, and MPI's three ways beside it."""
GUESSED_RATE = 1e9
"""B/s that a rank sends, for the first guess of the time."""
GUESSED_TURN = 1e-3
"""Seconds of a repetition besides."""


def cores() -> set[int]:
    """The cores that ranks on this host may use."""
    return os.sched_getaffinity(0)


def bench_broadcasts(
    sizes: Sequence[int] = DEFAULT_SIZES,
    trees: Sequence[str] = DEFAULT_TREES,
    *,
    ranks: int | None = None,
    recipients: Sequence[int] | None = None,
    segment: int = 0,
    repeat: int = 15,
    rising: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
) -> list[BroadcastEntry]:
    """Sends data from rank 0 to others by each tree, and by MPI_Bcast, MPI_Ibcast and a loop of sends, all in
    turns: one entry for each size, number of recipients and tree. `ranks`: default one for each core, at
    least 2; `recipients`: how many of them receive (default: all others). `segment`: bytes, 0 for whole
    messages. `rising`: priorities rise with the rank. UsageError for what cannot be asked, MachineError where
    the program cannot be built or dies.
    """
    asked, job = _cases(
        sizes, trees, recipients, Job(_count(ranks), launcher, mpi, tuple(hosts), hostfile),
        segment=segment, repeat=repeat, rising=rising,
    )  # fmt: skip
    return list(measured.entries(asked, measure_broadcasts(asked, job)))


def plan_broadcast_bench(
    sizes: Sequence[int] = DEFAULT_SIZES,
    trees: Sequence[str] = DEFAULT_TREES,
    *,
    ranks: int | None = None,
    recipients: Sequence[int] | None = None,
    segment: int = 0,
    repeat: int = 15,
    rising: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
) -> PlannedStarts:
    """What `bench_broadcasts` would build and start; errors as there. The time is a guess: that of a network
    in which a rank sends GUESSED_RATE.
    """

    def find() -> Iterator[PlannedStart]:
        where = Job(_count(ranks), launcher, mpi, tuple(hosts), hostfile)
        asked, job = _cases(sizes, trees, recipients, where, segment=segment, repeat=repeat, rising=rising)
        turns = sum(case.repeat for case in asked)
        sent = sum(case.repeat * case.size * case.recipients for case in asked)
        yield PlannedStart(
            what=f"broadcasts: {len(asked)} cases, {turns} repetitions in all, MPI's own ones beside them; "
            "the time is a first guess",
            commands=(bench_launch(BROADCAST_BENCH, job).line(),),
            seconds=WAYS * sent / GUESSED_RATE + turns * GUESSED_TURN,
        )

    return plan_starts(find)


def _count(ranks: int | None) -> int:
    return max(2, len(cores())) if ranks is None else ranks


def _cases(
    sizes: Sequence[int], trees: Sequence[str], recipients: Sequence[int] | None, job: Job, **options: Any
) -> tuple[list[Case], Job]:
    """What is measured, and the job whose ranks measure it."""
    count = job.ranks
    if not 2 <= count <= MOST_RANKS:
        raise UsageError(f"is not between 2 and {MOST_RANKS}", field="ranks", value=count, hint="give 8")
    chosen = tuple(recipients) if recipients is not None else (count - 1,)
    for one in chosen:
        if not 1 <= one < count:
            raise UsageError(
                f"is not between 1 and {count - 1}, the ranks but the root",
                field="recipients",
                value=one,
                hint="give more --ranks",
            )
    return measured.cases(sizes, chosen, trees, **options), job


def save_broadcast_figure(found: Sequence[BroadcastEntry], file: str | Path) -> None:
    """Latency over recipients and bandwidth over size as .svg or .png; UsageError where there is only one of
    each.
    """
    check_drawable([entry.size for entry in found], [entry.ranks for entry in found], file)
    figures = broadcast_figures(found)
    save_panels(
        figures, Path(file), columns=min(2, len(figures)), title="Broadcasts over trees", shared=False
    )


def check_drawable(sizes: Sequence[int], recipients: Sequence[int], file: str | Path) -> None:
    """UsageError where a figure of these has one point."""
    if len(set(sizes)) < 2 and len(set(recipients)) < 2:
        raise UsageError(
            "needs several sizes, or several numbers of recipients",
            field="out",
            value=str(file),
            hint="give --sizes 4B,64KiB,1MiB or --recipients 1,3,7",
        )
