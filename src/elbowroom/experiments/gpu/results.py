"""What a run of `gpu` shows: copies beside cores and messages, all three streams, nodes of pinned buffers,
and sources of loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series, Side, TextTable
from elbowroom.experiments.common.accelerators import (
    KEPT_LEGEND,
    STAND_IN_SENTENCE,
    ContrastSource,
    difference,
    kept_column,
    loss,
    source_table,
)
from elbowroom.experiments.common.panels import CORES, interval_line
from elbowroom.experiments.common.sentences import (
    Values,
    at_most_text,
    cores_text,
    grouped,
    level_of,
    lost_text,
    nothing,
    onset_values,
    size_text,
    suffers,
)
from elbowroom.experiments.common.tables import Column, rounded, table
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import NONE, find, kernel_name
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import running
from elbowroom.points.streams import stream_of
from elbowroom.quantities import format_size
from elbowroom.results.curves import affected, onset
from elbowroom.results.quiet import STAND_IN
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept

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
        streams = [stream_of(item.payload, name) for name in STREAMS]
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
    named: list[ContrastSource | None] = []
    most = grouped(beside_cores(rows(results)), lambda row: (row.direction, row.node))
    for group in most.values():
        largest = max(row.bytes for row in group)
        n = max(row.n for row in group)
        of_kernel = {row.kernel: row for row in group if (row.bytes, row.n) == (largest, n)}
        named += _of_kernels(of_kernel, items)
    return tuple(item for item in named if item is not None)


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


KEY = "gpu"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """Of each kernel and direction over n; messages; all three streams; the nodes of buffers; sources."""
    table = rows(results)
    if not table:
        return (nothing(KEY, "Copies between host and GPU"),)
    cases = grouped(beside_cores(table), lambda row: (row.kernel, row.direction, row.node, row.bytes))
    largest = max((row.bytes for row in table), default=0)
    over_n = [_over_n(group) for case, group in cases.items() if case[-1] == largest]
    findings = [finding for finding in over_n if finding.level != "quiet"]
    findings += _unaffected([finding for finding in over_n if finding.level == "quiet"])
    sending = grouped([row for row in table if _beside_messages(row)], lambda row: row.kernel)
    findings += [_streams(group) for group in sending.values()]
    findings.sort(key=lambda finding: finding.level != "interference")
    return (*findings, *_nodes(table), *_sources(results))


WAYS = {"h2d": "copies to the device", "d2h": "copies to the host", "both": "copies in both directions"}


def _copies(row: CopyRow) -> str:
    place = f" (buffer on node {row.node})" if row.node >= 0 else ""
    return f"{WAYS[row.direction]} of {size_text(row.bytes)}{place}"


def _over_n(group: Sequence[CopyRow]) -> Finding:
    """One kernel beside one kind of copies, over the number of computing cores."""
    first = group[0]
    ns = [float(row.n) for row in group]
    copies, cores = (onset(ns, [row.of(stream, "AB") for row in group]) for stream in ("copies", "cores"))
    name = _first_upper(kernel_name(first.kernel))
    text = (
        f"{name} beside {_copies(first)}. {suffers('The rate of copies', copies, cores_text)} "
        f"{suffers(name, cores, cores_text)}"
    )
    values: Values = {"kernel": first.kernel, "direction": first.direction, "node": first.node}
    return Finding(
        key=f"{KEY}-{first.kernel}-{first.direction}-{first.node}",
        level=level_of(copies, cores),
        text=text,
        values=values | onset_values("copies", copies) | onset_values("cores", cores),
        points=tuple(row.point for row in group),
    )


def _unaffected(quiet: Sequence[Finding]) -> Iterator[Finding]:
    """All cases in which neither side suffers, as one."""
    if not quiet:
        return
    kernels = dict.fromkeys(str(finding.values["kernel"]) for finding in quiet)
    least = {
        side: min(float(worst) for finding in quiet if (worst := finding.values[f"{side}_worst"]) is not None)
        for side in ("copies", "cores")
    }
    listed = ", ".join(map(kernel_name, kernels))
    text = (
        f"In {len(quiet)} cases (kernel, direction, node) neither side suffers: copies lose "
        f"{at_most_text(least['copies'])}, cores {at_most_text(least['cores'])} ({listed})."
    )
    values: Values = {"cases": len(quiet), **{f"{side}_worst": worst for side, worst in least.items()}}
    points = tuple(point for finding in quiet for point in finding.points)
    yield Finding(key=f"{KEY}-unaffected", level="quiet", text=text, values=values, points=points)


def _beside_messages(row: CopyRow) -> bool:
    """Whether copies were measured beside messages."""
    return any(row.of("copies", phase) is not None for phase in ("BC", "ABC"))


def _streams(group: Sequence[CopyRow]) -> Finding:
    """Copies beside messages, or all three streams: where copies lose most."""
    kernel = group[0].kernel
    all_three = any(row.of("copies", "ABC") is not None for row in group)
    phase = "ABC" if all_three else "BC"
    worst = min(group, key=lambda row: kept.value if (kept := row.of("copies", phase)) else 2.0)
    streams = [name for name in PHASES if worst.of(name, phase) is not None]
    kepts = [f"{name} lose {lost_text(worst.of(name, phase))}" for name in streams]
    beside = f", {kernel_name(kernel)} on {cores_text(worst.n)}" if worst.n else ""
    title = f"{_copies(worst)} and messages of {size_text(worst.message_bytes)}{beside} at once"
    hit = any(kept is not None and affected(kept) for kept in (worst.of(name, phase) for name in streams))
    values: Values = {"kernel": kernel, "n": worst.n, "direction": worst.direction}
    for name in streams:
        kept = worst.of(name, phase)
        values[name] = None if kept is None else kept.value
    return Finding(
        key=f"{KEY}-messages-{kernel}",
        level="interference" if hit else "quiet",
        text=f"{_first_upper(title)}, where copies lose most: {', '.join(kepts)}.",
        values=values,
        points=tuple(row.point for row in group),
    )


def _nodes(table: Sequence[CopyRow]) -> Iterator[Finding]:
    """Which node's pinned buffer is copied fastest, alone, of each direction."""
    largest = max(row.bytes for row in table)
    for direction, group in grouped(table, lambda row: row.direction).items():
        rates = {
            row.node: row.copies_alone
            for row in group
            if row.bytes == largest and row.copies_alone is not None
        }
        if len(rates) < 2:
            continue
        listed = ", ".join(f"node {node} {rate / 1e3:.3g} GB/s" for node, rate in sorted(rates.items()))
        best = max(rates, key=lambda node: rates[node])
        yield Finding(
            key=f"{KEY}-node-{direction}",
            level="note",
            text=f"{_first_upper(WAYS[direction])} alone, by the node of the pinned buffer: {listed}.",
            values={"best": best, **{f"node{node}_mb_s": rate for node, rate in rates.items()}},
        )


def _sources(results: Sequence[PointResult]) -> Iterator[Finding]:
    """The largest of each source."""
    for name, group in grouped(sources(results), lambda item: item.name).items():
        largest = max(group, key=lambda item: item.value)
        yield Finding(
            key=f"{KEY}-source-{name.replace(' ', '-')}",
            level="note",
            text=f"{_first_upper(largest.sentence)}.",
            values={"source": name, "lost": largest.value},
            points=largest.points,
        )


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """One for each kernel, direction and size: lines of copies and cores for each node."""
    cases = grouped(beside_cores(rows(results)), lambda row: (row.kernel, row.direction, row.bytes))
    return tuple(_figure(group) for group in cases.values())


def _figure(group: Sequence[CopyRow]) -> Figure:
    first = group[0]
    stand_in = " (stand-in)" * first.stand_in
    copies = f"{first.direction} copies of {size_text(first.bytes)}"
    lines = [
        _line(stream, node, of_node)
        for stream in ("copies", "cores")
        for node, of_node in grouped(group, lambda row: row.node).items()
    ]
    return Figure(
        name=f"gpu-{first.kernel}-{first.direction}-{first.bytes}",
        title=f"{kernel_name(first.kernel)} beside {copies}{stand_in}",
        x=CORES,
        left=Axis(label="Kept (1 = undisturbed)", reference=1.0),
        series=tuple(line for line in lines if line is not None),
        caption="Bands are 95 % intervals; node: of the pinned buffer.",
    )


def _line(stream: str, node: int, group: Sequence[CopyRow]) -> Series | None:
    known = [(float(row.n), kept, row.point) for row in group if (kept := row.of(stream, "AB")) is not None]
    known.sort(key=lambda row: row[0])
    side: Side = "computation" if stream == "cores" else "communication"
    name = f"{stream}, node {node}" if node >= 0 else stream
    return interval_line(name, known, side=side, value="kept") if known else None


class CopyTable(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` adds: all rows, and sources of loss by contrast."""

    rows: tuple[CopyRow, ...]
    sources: tuple[ContrastSource, ...]


LETTERS = {"cores": "A", "copies": "B", "messages": "C"}
"""How phases call the streams."""

TYPES = {"gpu_copies": CopyTable}
"""The types of `data`, by key."""


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:  # noqa: ARG001
    """The rows and sources of a run; empty where nothing was measured."""
    table = rows(results)
    return {"gpu_copies": CopyTable(rows=table, sources=sources(results))} if table else {}


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """Copies beside cores with most cores, copies beside messages and all three streams, sources."""
    table = rows(results)
    cores = beside_cores(table)
    most = max((row.n for row in cores), default=0)
    with_messages = [row for row in table if row.message_bytes]
    drawn = [
        _cores_table(most, [row for row in cores if row.n == most]) if cores else None,
        _stream_table(with_messages) if with_messages else None,
        source_table(sources(results)),
    ]
    below = (STAND_IN_SENTENCE,) * any(row.stand_in for row in table)
    return tuple(
        msgspec.structs.replace(item, below=(*item.below, *below)) for item in drawn if item is not None
    )


HEAD: tuple[Column[CopyRow], ...] = (
    Column("kernel", lambda row: kernel_name(row.kernel) if row.n else None, left=True),
    Column("copies", lambda row: row.direction, left=True),
    Column("size", lambda row: format_size(row.bytes)),
    Column("node", lambda row: str(row.node) if row.node >= 0 else None),
)
NODE_LEGEND = f"{KEPT_LEGEND} node: of the pinned buffer."


def _cores_table(n: int, group: Sequence[CopyRow]) -> TextTable:
    columns: tuple[Column[CopyRow], ...] = (
        *HEAD,
        Column("GB/s alone", lambda row: rounded(row.copies_alone, unit=1e3)),
        kept_column("copies keep", lambda row: row.of("copies", "AB")),
        kept_column("cores keep", lambda row: row.of("cores", "AB")),
    )
    title = f"Copies beside {n} computing core{'s' * (n > 1)}: percent kept"
    return table(title, group, columns, legend=NODE_LEGEND)


def _stream_table(group: Sequence[CopyRow]) -> TextTable:
    """A line for each stream: what it keeps beside each other one, and beside all."""
    lines = [
        (row, stream)
        for row in group
        for stream, phases in PHASES.items()
        if any(row.of(stream, phase) for phase in phases)
    ]

    def beside(other: str) -> Callable[[tuple[CopyRow, str]], Kept | None]:
        return lambda line: line[0].of(line[1], _phase(LETTERS[line[1]], other))

    columns: tuple[Column[tuple[CopyRow, str]], ...] = (
        *(Column(column.name, _of_line(column), left=column.left) for column in HEAD),
        Column("n", lambda line: str(line[0].n or "-")),
        Column("stream", lambda line: line[1], left=True),
        kept_column("+cores", beside("A")),
        kept_column("+copies", beside("B")),
        kept_column("+msgs", beside("C")),
        kept_column("all", lambda line: line[0].of(line[1], "ABC")),
    )
    title = "Copies, messages and cores: percent that a stream keeps beside others"
    return table(title, lines, columns, legend=NODE_LEGEND, points=tuple(row.point for row in group))


def _of_line(column: Column[CopyRow]) -> Callable[[tuple[CopyRow, str]], str | None]:
    return lambda line: column.text(line[0])


def _phase(one: str, other: str) -> str:
    return "".join(sorted((one, other)))
