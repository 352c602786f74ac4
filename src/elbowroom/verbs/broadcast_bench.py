"""`elbowroom broadcast bench`: broadcasts measured over MPI, beside MPI's own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import FIGURE, REPEAT
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import format_size, number, parse_cores, parse_size, plural
from elbowroom.verbs.declaration import Verb, dry_run_option, function_of, included, option
from elbowroom.verbs.run_options import Launching, launcher_help, out_option, split_list

if TYPE_CHECKING:
    from elbowroom.broadcast.measured import BenchCase, BroadcastEntry, Time
    from elbowroom.launch.executables import JobLaunch

WAYS = 4
"""A tree, and MPI's three ways beside it."""
GUESSED_RATE = 1e9
"""B/s that a rank sends, for the first guess of the time."""
GUESSED_TURN = 1e-3
"""Seconds of a repetition besides."""


def _words(text: str, field: str) -> tuple[str, ...]:
    words = split_list(text)
    if not all(words):
        raise UsageError("has an empty part", field=field, value=text, hint="write a,b")
    return tuple(dict.fromkeys(words))


def _sizes(text: str, field: str) -> tuple[int, ...]:
    return tuple(parse_size(word, field) for word in _words(text, field))


class BenchBroadcasts(Verb):
    """Compare broadcasts with MPI_Bcast, MPI_Ibcast and a loop of sends.

    Prints the time until the last recipient has the data. All take turns, repetition by repetition.
    """

    name = "broadcast bench"
    has_tables = True
    saves = True

    ranks: int | None = option(
        "Number of ranks; default: one per core, at least 2.", "N", type=click.IntRange(min=2)
    )
    sizes: tuple[int, ...] = option("Size of the data.", "S,S", default="4B,64KiB,1MiB", positional=True)
    recipients: tuple[int, ...] | None = option(
        "How many ranks receive: 1,3,7; default: all but the root.", "LIST", parse=parse_cores
    )
    trees: tuple[str, ...] = option(
        "flat, chain, binary, binomial, 4-ary, 8-nomial, two; with delegate- or split3- before it.",
        "LIST",
        default="flat,binary,binomial,two",
        parse=_words,
        positional=True,
    )
    segment: int | None = option("Segments that ranks forward one by one; default: whole.", "SIZE")
    repeat: int = option("Number of repetitions.", "N", default=15, type=REPEAT)
    rising: bool = option("Priorities rise with the rank (thesis, Fig. 4.5).")
    launching: Launching = included(Launching, own={"launcher": launcher_help()})
    out: Path | str | None = out_option(FIGURE, "Draw latency and bandwidth: .svg or .png.")
    dry_run: bool = dry_run_option()

    def do(self) -> list[BroadcastEntry]:
        """Sends data from rank 0 to others by each tree, and by MPI_Bcast, MPI_Ibcast and a loop of sends,
        all in turns: one entry for each size (bytes), number of recipients and tree. `ranks`: default one for
        each core, at least 2; `recipients`: how many of them receive (default: all others). `segment`: bytes,
        default whole messages. `rising`: priorities rise with the rank. UsageError for what cannot be
        measured, MachineError where the program cannot be built or dies.
        """
        from elbowroom.broadcast.measured import entries
        from elbowroom.launch.executables import measure_broadcasts

        cases, job = self._cases()
        return list(entries(cases, measure_broadcasts(cases, job)))

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program; the time is a guess: that of a network in which a rank sends GUESSED_RATE."""
        from elbowroom.launch.executables import BROADCAST_BENCH, bench_launch

        cases, job = self._cases()
        turns = sum(case.repeat for case in cases)
        sent = sum(case.repeat * case.size * case.recipients for case in cases)
        yield PlannedStart(
            what=f"broadcasts: {len(cases)} cases, {turns} repetitions in all, MPI's own ones beside them; "
            "the time is a first guess",
            commands=(bench_launch(BROADCAST_BENCH, job).line(),),
            seconds=WAYS * sent / GUESSED_RATE + turns * GUESSED_TURN,
        )

    def _cases(self) -> tuple[list[BenchCase], JobLaunch]:
        """What is measured, and the job whose ranks measure it."""
        from elbowroom.broadcast.measured import MOST_RANKS, cases
        from elbowroom.launch.executables import JobLaunch

        if self.out is not None:
            _check_drawable(self.sizes, self.recipients or (), self.out)
        count = max(2, len(cores())) if self.ranks is None else self.ranks
        if not 2 <= count <= MOST_RANKS:
            raise UsageError(f"is not between 2 and {MOST_RANKS}", field="ranks", value=count, hint="give 8")
        chosen = (count - 1,) if self.recipients is None else self.recipients
        for one in chosen:
            if not 1 <= one < count:
                raise UsageError(
                    f"is not between 1 and {count - 1}, the ranks but the root",
                    field="recipients",
                    value=one,
                    hint="give more --ranks",
                )
        launching = self.launching
        job = JobLaunch(count, launching.launcher, launching.mpi, tuple(launching.hosts), launching.hostfile)
        options = {"segment": self.segment or 0, "repeat": self.repeat}
        return cases(self.sizes, chosen, self.trees, rising=self.rising, **options), job

    def print(self, result: list[BroadcastEntry]) -> None:
        """A line for each size, number of recipients and tree."""
        first = result[0]
        print_wrapped(f"Time until the last recipient has the data, µs ({first.mpi})", style="bold")
        table = new_table(
            ">size", ">recipients", "tree", ">time", ">95 % interval", ">MPI_Bcast", ">MPI_Ibcast", ">sends"
        )
        for entry in result:
            beside = entry.beside
            table.add_row(
                format_size(entry.size),
                str(entry.ranks - 1),
                entry.tree,
                number(entry.time.median),
                _interval(entry.time),
                *(number(time.median) for time in (beside.bcast, beside.ibcast, beside.sends)),
            )
        print_table(table)

    def answer(self, result: list[BroadcastEntry]) -> Answer:
        """The fastest tree of the largest case, beside MPI's broadcast."""
        size, ranks = max((entry.size, entry.ranks) for entry in result)
        largest = [entry for entry in result if (entry.size, entry.ranks) == (size, ranks)]
        best = min(largest, key=lambda entry: entry.time.median)
        mpi = best.beside.bcast.median
        beside = f"{number(mpi / best.time.median, 3)} times as long" if best.time.median else "longer"
        shared = (
            " Ranks shared cores: these times depend on when the system let each rank run, and say little "
            "about a network."
        )
        return Answer(
            f"{format_size(size)} reach {plural(ranks - 1, 'recipient')} soonest by the tree {best.tree}, in "
            f"{number(best.time.median)} µs.",
            f"MPI_Bcast takes {beside}: {number(mpi)} µs.{shared if best.oversubscribed else ''}",
            command_line(
                "broadcast", "simulate", "--tree", best.tree, "--size", size, "--recipients", ranks - 1
            ),
            "yellow" if best.oversubscribed else "",
        )


bench_broadcasts = function_of(BenchBroadcasts, "bench_broadcasts")


def cores() -> set[int]:
    """The cores that ranks on this host may use."""
    return os.sched_getaffinity(0)


def _interval(time: Time) -> str:
    return "n/a" if time.low is None or time.high is None else f"{number(time.low)} - {number(time.high)}"


def save(entries: list[BroadcastEntry], path: Path) -> None:
    """Draws latency over recipients and bandwidth over size as .svg or .png; UsageError where there is only
    one of each.
    """
    from elbowroom.broadcast.measured import broadcast_figures

    _check_drawable([entry.size for entry in entries], [entry.ranks for entry in entries], path)
    figures = broadcast_figures(entries)
    save_panels(figures, path, columns=min(2, len(figures)), title="Broadcasts over trees", shared=False)


def _check_drawable(sizes: Sequence[int], recipients: Sequence[int], file: str | Path) -> None:
    """UsageError where a figure of these has one point."""
    if len(set(sizes)) < 2 and len(set(recipients)) < 2:
        raise UsageError(
            "needs several sizes, or several numbers of recipients",
            field="out",
            value=str(file),
            hint="give --sizes 4B,64KiB,1MiB or --recipients 1,3,7",
        )
