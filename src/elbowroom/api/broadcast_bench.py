"""Broadcasts measured over MPI, beside MPI's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from elbowroom.broadcast import measured
from elbowroom.broadcast.measured import MOST_RANKS
from elbowroom.broadcast.measured import BroadcastEntry as BroadcastEntry
from elbowroom.broadcast.measured import Time as Time
from elbowroom.broadcast.measured_figures import broadcast_figures as broadcast_figures
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.launch.bench import Job
from elbowroom.launch.broadcast_bench import measure_broadcasts

DEFAULT_SIZES = (4, 65536, 1048576)
DEFAULT_TREES = ("flat", "binary", "binomial", "two")


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
    count = max(2, len(cores())) if ranks is None else ranks
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
    asked = measured.cases(sizes, chosen, trees, segment=segment, repeat=repeat, rising=rising)
    job = Job(count, launcher, mpi, tuple(hosts), hostfile)
    return list(measured.entries(asked, measure_broadcasts(asked, job)))


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
