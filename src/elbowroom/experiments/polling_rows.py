"""Polling workers: results by whose they are and how long they wait between two polls, and whether what the
paper claims holds of them (Denis et al. 2021, section 5.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.experiments.wording import grouped, usable
from elbowroom.stats.curves import TOLERANCE, affected
from elbowroom.stats.result import Added, PointResult

Source = Literal["pool", "starpu"]
Judged = Literal["confirmed", "refuted", "undecided"]

POLLING, PAUSED = "polling", "paused"
RARE = 1000
"""Nops between two polls from which the paper's second claim, of 10000, can be judged."""

OWNERS: dict[Source, str] = {"pool": "Workers of one shared list", "starpu": "StarPU's workers"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
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


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one source, message size and placement, most frequent polls first, paused last; fewest
    workers first. `register`: what a register-only kernel does on as many cores as there are most workers.
    """

    source: Source
    size: int
    rows: tuple[Row, ...]
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

    def at(self, n: int) -> tuple[Row, ...]:
        """The rows of so many workers."""
        return tuple(row for row in self.rows if row.n == n)

    def waits(self) -> dict[int | None, list[Row]]:
        """Rows by how long workers wait."""
        found: dict[int | None, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.nops, []).append(row)
        return found


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict`: the more often workers poll, the higher the latency. `rare`: the rarest polls are as paused
    workers. `why`: what leaves the first undecided.
    """

    verdict: Judged
    rare: Judged
    why: str = ""


def row_of(item: PointResult) -> Row | None:
    """The row of a point, None of one that has no workers of a pool."""
    if item.program is not None:
        if item.program.task != POLLING or item.program.backoff is None:
            return None
        return Row(item=item, source="starpu", nops=item.program.backoff or None)
    if item.kernel not in (POLLING, PAUSED):
        return None
    return Row(item=item, source="pool", nops=item.cursor if item.kernel == POLLING else None)


def cases(results: Sequence[PointResult]) -> tuple[Case, ...]:
    """Every case of the results, the shared list's before StarPU's."""
    controls = [item for item in results if item.kernel == "prime" and item.status != "failed"]
    found = []
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
            found.append(Case(source=source, size=size, rows=tuple(rows), register=register))
    return tuple(sorted(found, key=lambda case: case.source))


def _source(item: PointResult) -> Source | None:
    row = row_of(item)
    return None if row is None else row.source


def _place(item: PointResult) -> tuple[int, int, int]:
    return item.comp_node, item.comm_node, item.comm_core


def claim(case: Case) -> Claim:
    """What the most workers of a case say of the paper's claim."""
    rows = case.at(case.most)
    polling = [row for row in rows if row.nops is not None and row.item.comm.kept is not None]
    if not polling:
        return Claim(verdict="undecided", rare="undecided", why="no polling worker was measured")
    raised = _raised(polling[0])
    rare = _like_paused(polling[-1], next((row for row in rows if row.nops is None), None), case.source)
    if raised == "refuted":
        if case.most < 2:
            why = "one worker has the list to itself: no line of it travels between cores"
            return Claim(verdict="undecided", rare=rare, why=why)
        return Claim(verdict="refuted", rare=rare)
    if raised == "undecided":
        return Claim(verdict="undecided", rare=rare, why="the interval is too wide: repeat more often")
    if _also_beside_registers(polling[0], case.register):
        why = "a kernel that touches no list raises it as much: it is not the polling"
        return Claim(verdict="undecided", rare=rare, why=why)
    if any(_surely_longer(later, earlier) for earlier, later in pairwise(polling)):
        return Claim(verdict="refuted", rare=rare)
    if len(polling) < 2 or not _surely_longer(polling[0], polling[-1]):
        why = "no back-off is surely better than another"
        return Claim(verdict="undecided", rare=rare, why=why)
    return Claim(verdict="confirmed", rare=rare)


def _raised(row: Row) -> Judged:
    """Whether the latency suffers: refuted where the whole interval says it does not."""
    kept = row.item.comm.kept
    assert kept is not None
    if affected(kept):
        return "confirmed"
    return "refuted" if kept.low >= 1 - TOLERANCE else "undecided"


def _surely_longer(row: Row, than: Row) -> bool:
    return row.added is not None and than.added is not None and row.added.low > than.added.high


def _like_paused(rarest: Row, paused: Row | None, source: Source) -> Judged:
    """Whether the rarest polls are as paused workers, which StarPU's are in the phases alone."""
    if rarest.nops is None or rarest.nops < RARE or (paused is None and source == "pool"):
        return "undecided"
    raised = _raised(rarest)
    if raised == "refuted":
        return "confirmed"
    longer = paused is None or _surely_longer(rarest, paused)
    return "refuted" if raised == "confirmed" and longer else "undecided"


def _also_beside_registers(row: Row, register: PointResult | None) -> bool:
    if register is None or register.comm.added is None or row.added is None:
        return False
    return register.comm.added.low > 0 and register.comm.added.high >= row.added.low


def worst(rows: Iterable[Row]) -> Row | None:
    """The row whose latency suffers most, None where none was measured."""
    measured = [row for row in rows if row.item.comm.kept is not None]
    return min(
        measured, key=lambda row: row.item.comm.kept.value if row.item.comm.kept else 1.0, default=None
    )
