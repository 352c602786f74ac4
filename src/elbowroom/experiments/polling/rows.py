"""Polling workers: results by whose they are and how long they wait between two polls, and whether what the
paper claims holds of them (Denis et al. 2021, section 5.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.experiments.common.claims import Claim
from elbowroom.experiments.common.sentences import grouped, usable
from elbowroom.points import RuntimeProgram, running
from elbowroom.quantities import plural
from elbowroom.results.judgement import Judgement, larger, suffers
from elbowroom.results.result import Added, PointResult
from elbowroom.stats.interval import apart

Source = Literal["pool", "starpu"]

POLLING, PAUSED = "polling", "paused"
PAPER = "both are true on henri; polling has no effect on billy and pyxis"
RARE = 1000
"""Nops between two polls from which the paper's second claim, of 10000, can be judged."""

OWNERS: dict[Source, str] = {"pool": "Workers of one shared list", "starpu": "StarPU's workers"}


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One point: whose workers, and how many nops lie between two of their polls at most (None: paused)."""

    item: PointResult
    source: Source
    nops: int | None

    @property
    def n(self) -> int:
        """Workers."""
        return self.item.n

    @property
    def added(self) -> Added | None:
        """By how much the latency is longer beside them, us."""
        return self.item.comm.added

    @property
    def name(self) -> str:
        """`back-off 32`, `paused`."""
        return "paused" if self.nops is None else f"back-off {self.nops}"

    @property
    def polls(self) -> float | None:
        """Million polls per second and worker, undisturbed; None where nobody counted."""
        alone = self.item.comp.alone
        if self.nops is None or alone is None or alone.unit != "M/s":
            return None
        return alone.median / max(self.n, 1)


class PollingCase(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one source, message size and placement, most frequent polls first, paused last; fewest
    workers first. `register`: what a register-only kernel does on as many cores as there are most workers.
    """

    source: Source
    size: int
    rows: tuple[WorkerRow, ...]
    register: PointResult | None = None

    @property
    def most(self) -> int:
        """The most workers."""
        return max(row.n for row in self.rows)

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of workers, rising."""
        return tuple(sorted({row.n for row in self.rows}))

    @property
    def key(self) -> str:
        """Part of names of findings and figures: different for different cases."""
        first = self.rows[0].item
        return f"{self.source}-{self.size}-{first.comp_node}-{first.comm_node}-{first.comm_core}"

    def at(self, n: int) -> tuple[WorkerRow, ...]:
        """The rows of so many workers."""
        return tuple(row for row in self.rows if row.n == n)

    def waits(self) -> dict[int | None, list[WorkerRow]]:
        """Rows by how long workers wait."""
        return grouped(self.rows, lambda row: row.nops)


def row_of(item: PointResult) -> WorkerRow | None:
    """The row of a point, None of one that has no workers of a pool."""
    for _, program in running((item,), RuntimeProgram):
        if program.task != POLLING or program.backoff is None:
            return None
        return WorkerRow(item=item, source="starpu", nops=program.backoff or None)
    if item.kernel not in (POLLING, PAUSED):
        return None
    return WorkerRow(item=item, source="pool", nops=item.cursor if item.kernel == POLLING else None)


def cases(results: Sequence[PointResult]) -> tuple[PollingCase, ...]:
    """Every case of the results, the shared list's before StarPU's."""
    controls = [item for item in results if item.kernel == "prime" and item.status != "failed"]
    every = []
    groups = grouped(usable(results), lambda item: (_source(item), item.size, *_place(item)))
    for (source, size, *place), group in groups.items():
        rows = sorted(
            (row for row in map(row_of, group) if row is not None),
            key=lambda row: (row.nops is None, row.nops or 0, row.n),
        )
        if rows and source is not None:
            most = max(row.n for row in rows)
            beside = [
                item
                for item in controls
                if (item.size, item.n, *_place(item)) == (size, most, *place) and source == "pool"
            ]
            register = beside[0] if beside else None
            every.append(PollingCase(source=source, size=size, rows=tuple(rows), register=register))
    return tuple(sorted(every, key=lambda case: case.source))


def _source(item: PointResult) -> Source | None:
    row = row_of(item)
    return None if row is None else row.source


def _place(item: PointResult) -> tuple[int, int, int]:
    return item.comp_node, item.comm_node, item.comm_core


def claims(case: PollingCase) -> tuple[Claim, Claim]:
    """What the most workers of a case say of the paper's claims on frequent polls and on rare ones."""
    rows = case.at(case.most)
    polling = [row for row in rows if row.nops is not None and row.item.comm.kept is not None]
    judgement, why = _frequent(polling, case)
    paused = next((row for row in rows if row.nops is None), None)
    frequent = Claim(
        statement="the latency is higher the more often workers poll",
        judgement=judgement,
        why=why,
    )
    rare = _like_paused(polling, paused, case.source) if polling else "not tested"
    statement = "rare polls cost no more than paused workers"
    return frequent, Claim(statement=statement, judgement=rare, paper=PAPER)


def _frequent(polling: Sequence[WorkerRow], case: PollingCase) -> tuple[Judgement, str]:
    """The judgement on frequent polls, and why it is not plain; rows from the most frequent polls on."""
    if not polling:
        return "not tested", "no polling worker was measured"
    raised = suffers(polling[0].item.comm.kept)
    if raised == "refuted" and case.most < 2:
        return "undecided", "one worker has the list to itself: no line of it travels between cores"
    if raised == "refuted":
        return "refuted", ""
    if raised == "undecided":
        return "undecided", "the interval is too wide; repeat more often"
    if _also_beside_registers(polling[0], case.register):
        return "undecided", "a kernel that touches no list raises it as much: it is not the polling"
    if any(larger(later.added, earlier.added) == "confirmed" for earlier, later in pairwise(polling)):
        return "refuted", ""
    if len(polling) < 2 or larger(polling[0].added, polling[-1].added) != "confirmed":
        return "undecided", "no back-off is significantly better than another"
    return "confirmed", ""


def _like_paused(polling: Sequence[WorkerRow], paused: WorkerRow | None, source: Source) -> Judgement:
    """Whether the rarest polls are as paused workers, which StarPU's are in the phases alone. Where even
    frequent polls do not raise the latency, rare ones cannot show that they raise it less.
    """
    rarest, frequent = polling[-1], suffers(polling[0].item.comm.kept)
    if rarest.nops is None or rarest.nops < RARE or (paused is None and source == "pool"):
        return "not tested"
    raised = suffers(rarest.item.comm.kept)
    if raised == "refuted":
        return "confirmed" if frequent == "confirmed" else "undecided"
    longer = paused is None or larger(rarest.added, paused.added) == "confirmed"
    return "refuted" if raised == "confirmed" and longer else "undecided"


def _also_beside_registers(row: WorkerRow, register: PointResult | None) -> bool:
    if register is None or register.comm.added is None or row.added is None:
        return False
    return register.comm.added.above(0.0) and not apart(register.comm.added, row.added)


def workers_text(n: int) -> str:
    """`1 worker`, `35 workers`."""
    return plural(n, "worker")
