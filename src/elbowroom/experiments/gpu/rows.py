"""Rows of a run of `gpu`: copies beside cores and messages, all three streams, and sources of loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from elbowroom.experiments.common.sentences import grouped, kernel_name
from elbowroom.experiments.common.sources import ContrastSource, difference, loss
from elbowroom.plan.kernels import NONE, find
from elbowroom.points import GpuCase, running
from elbowroom.results.quiet import STAND_IN
from elbowroom.results.result import Kept, PointResult

STREAMS = ("cores", "copies", "messages")
PHASES = {"cores": ("AB", "AC", "ABC"), "copies": ("AB", "BC", "ABC"), "messages": ("AC", "BC", "ABC")}
"""Phases in which each stream runs beside others: A cores, B copies, C messages."""


class CopyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Copies of `bytes` from or to pinned memory on `node`, beside `kernel` on `n` cores (or none), or beside
    messages of `message_bytes` (0: none). Rates in MB/s of copies; each `kept` by the phase, by stream
    (PHASES); None where it was not measured. `stand_in`: a stand-in answered, and nothing was measured.
    """

    point: str
    kernel: str
    n: int
    direction: str
    bytes: int
    node: int
    message_bytes: int
    copies_alone: float | None
    kept: dict[str, dict[str, Kept]]
    stand_in: bool = False

    def of(self, stream: str, phase: str) -> Kept | None:
        """What a stream kept in a phase."""
        return self.kept.get(stream, {}).get(phase)


def rows(results: Sequence[PointResult]) -> tuple[CopyRow, ...]:
    """A row for each point that was measured, in the order of the plan."""
    return tuple(
        _row(item, case)
        for item, case in running(results, GpuCase)
        if item.role == "point" and item.status != "failed" and "copy" in (case.victim, case.mover)
    )


def _row(item: PointResult, case: GpuCase) -> CopyRow:
    copies = item.comp if case.victim == "copy" else item.comm
    return CopyRow(
        point=item.id,
        kernel=item.kernel,
        n=item.n,
        direction=case.direction,
        bytes=case.bytes,
        node=case.node,
        message_bytes=item.size if case.sends else 0,
        copies_alone=copies.alone.median if copies.alone else None,
        kept=_kept(item, case),
        stand_in=STAND_IN in item.flags,
    )


def _kept(item: PointResult, case: GpuCase) -> dict[str, dict[str, Kept]]:
    """Of two streams what their sides kept; of three what each kept in each phase."""
    if case.messages:
        streams = [item.stream(name) for name in STREAMS]
        return {
            stream.name: {beside.phase: beside.kept for beside in stream.beside if beside.kept is not None}
            for stream in streams
            if stream is not None
        }
    names, phase = (("copies", "messages"), "BC") if case.victim == "copy" else (("cores", "copies"), "AB")
    sides = zip(names, (item.comp.kept, item.comm.kept), strict=True)
    return {name: {phase: kept} for name, kept in sides if kept is not None}


def beside_cores(table: Sequence[CopyRow]) -> list[CopyRow]:
    """The rows with cores and without messages."""
    return [row for row in table if row.kernel != NONE and not row.message_bytes]


def sources(results: Sequence[PointResult]) -> tuple[ContrastSource, ...]:
    """Of copies and cores with most cores and the largest copies, by direction and node: the host's memory is
    what a kernel that moves memory costs more than prime counting; the launch path is what prime counting,
    or polling, costs the copies.
    """
    items = {item.id: item for item in results}
    found: list[ContrastSource | None] = []
    most = grouped(beside_cores(rows(results)), lambda row: (row.direction, row.node))
    for group in most.values():
        largest = max(row.bytes for row in group)
        n = max(row.n for row in group)
        of_kernel = {row.kernel: row for row in group if (row.bytes, row.n) == (largest, n)}
        found += _of_kernels(of_kernel, items)
    return tuple(item for item in found if item is not None)


def _of_kernels(
    of_kernel: dict[str, CopyRow], items: dict[str, PointResult]
) -> Iterator[ContrastSource | None]:
    def lost(kernel: str, stream: str, source: str) -> ContrastSource | None:
        row = of_kernel[kernel]
        place = f", node {row.node}" if row.node >= 0 else ""
        copies, cores = f"{row.direction}{place}", kernel_name(kernel)
        victim, other = (copies, cores) if stream == "copies" else (cores, copies)
        return loss(source, victim, f"beside {other}, n = {row.n}", items[row.point], row.of(stream, "AB"))

    for kernel in of_kernel:
        fact = find(kernel)
        if fact is None or not fact.moves_memory:
            yield lost(kernel, "copies", "launch path")
            continue
        yield lost(kernel, "cores", "host memory")
        if "prime" in of_kernel:
            contrast = f"{kernel_name(kernel)}, less prime"
            memory, registers = (lost(name, "copies", "") for name in (kernel, "prime"))
            yield difference("host memory", contrast, memory, registers)
