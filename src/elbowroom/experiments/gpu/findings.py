"""What a run of `gpu` says: copies and cores over n, copies and messages, all three, nodes, and sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.experiments.common.sentences import (
    Values,
    cores_text,
    grouped,
    kept_text,
    kernel_name,
    level_of,
    nothing,
    onset_values,
    size_text,
    suffers,
)
from elbowroom.experiments.gpu.rows import PHASES, CopyRow, beside_cores, rows, sources
from elbowroom.machine.topology import Machine
from elbowroom.results.curves import affected, onset
from elbowroom.results.result import Finding, PointResult

KEY = "gpu"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """Of each kernel and direction over n; messages; all three streams; the nodes of buffers; sources."""
    table = rows(results)
    if not table:
        return (nothing(KEY, "Copies between host and GPU"),)
    cases = grouped(beside_cores(table), lambda row: (row.kernel, row.direction, row.node, row.bytes))
    largest = max((row.bytes for row in table), default=0)
    over_n = [_over_n(group) for case, group in cases.items() if case[-1] == largest]
    found = [finding for finding in over_n if finding.level != "quiet"]
    found += _unaffected([finding for finding in over_n if finding.level == "quiet"])
    sending = grouped([row for row in table if _beside_messages(row)], lambda row: row.kernel)
    found += [_streams(group) for group in sending.values()]
    found.sort(key=lambda finding: finding.level != "interference")
    return (*found, *_nodes(table), *_sources(results))


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
        f"In {len(quiet)} cases (kernel, direction, node) neither side suffers: copies keep at least "
        f"{least['copies']:.2f}, cores {least['cores']:.2f} ({listed})."
    )
    values: Values = {"cases": len(quiet), **{f"{side}_worst": worst for side, worst in least.items()}}
    points = tuple(point for finding in quiet for point in finding.points)
    yield Finding(key=f"{KEY}-unaffected", level="quiet", text=text, values=values, points=points)


def _beside_messages(row: CopyRow) -> bool:
    """Whether copies were measured beside messages."""
    return any(row.of("copies", phase) is not None for phase in ("BC", "ABC"))


def _streams(group: Sequence[CopyRow]) -> Finding:
    """Copies beside messages, or all three streams: where copies keep least."""
    kernel = group[0].kernel
    all_three = any(row.of("copies", "ABC") is not None for row in group)
    phase = "ABC" if all_three else "BC"
    worst = min(group, key=lambda row: kept.value if (kept := row.of("copies", phase)) else 2.0)
    streams = [name for name in PHASES if worst.of(name, phase) is not None]
    kepts = [f"{name} keep {kept_text(worst.of(name, phase))}" for name in streams]
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
        text=f"{_first_upper(title)}, where copies keep least: {', '.join(kepts)}.",
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
