"""The chain of contrasts up to a point, and the share of each step (docs/design/method.md, rule 20).

At the same computing cores, message size and communication core:

    alone -> registers only -> private cache -> last-level cache -> local memory -> memory of a remote node

The first step is what any computation costs: frequencies, threads, the scheduler, everything but memory.

What a side keeps at each point, relative to the one before, is the step's factor; the factors multiply to
what the target keeps, so the logarithms add up and the shares sum to the whole. Where a point is missing, its
source stays with the next step: no contrast tells the two apart.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from elbowroom.explain.explanation import (
    SIDES,
    ChainStep,
    Decision,
    ExplainedPoint,
    SideLoss,
    SideName,
    Source,
    Stream,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import KERNELS, Kernel
from elbowroom.plan.placement import nic_node
from elbowroom.results.curves import colour, highest, traffic
from elbowroom.results.resampled import LEAST, LogKept, log_of
from elbowroom.results.result import PointResult
from elbowroom.stats.bootstrap import estimate
from elbowroom.stats.interval import Kept, Side
from elbowroom.stats.signed_ranks import Floats

Logs = Mapping[tuple[str, str], LogKept]

FEWEST = 2 * LEAST
"""Samples of a phase; a repetition has two."""


@dataclass(frozen=True)
class ObservedPoint:
    """A point of run number `run`, and by side the logarithm of what it kept."""

    item: PointResult
    run: int
    logs: dict[SideName, LogKept]

    @property
    def shares_core(self) -> bool:
        """Two threads took turns on one core on purpose."""
        return "scheduling" in self.item.flags


def observed_points(
    results: Sequence[PointResult], run: int = 0, logs: Logs | None = None
) -> list[ObservedPoint]:
    """The points with a side both alone and together. `logs`: of samples, by point id and side
    (results/resampled.py); without them the draws come from the points' intervals.
    """
    points = []
    for item in results:
        if item.status == "failed" or not item.workload.facts.explainable:
            continue
        own: dict[SideName, LogKept] = {}
        for side in SIDES:
            of: Side = getattr(item, side)
            if logs is not None and (item.id, side) in logs:
                own[side] = _centred(logs[item.id, side], of.kept)
            elif logs is None and of.kept is not None and of.kept.above(0.0) and _several(of):
                own[side] = log_of(of.kept, (run, zlib.crc32(f"{item.id} {side}".encode())))
        if own:
            points.append(ObservedPoint(item, run, own))
    return points


def _centred(log: LogKept, kept: Kept | None) -> LogKept:
    """The draws around what the point kept, as `show` says it: steps multiply to that."""
    if kept is None or kept.value <= 0:
        return log
    value = math.log(kept.value)
    return LogKept(value=value, draws=log.draws + (value - log.value))


def _several(side: Side) -> bool:
    """Whether there were samples of more than one repetition: else the interval says nothing."""
    return all(summary is not None and summary.count >= FEWEST for summary in (side.alone, side.together))


def ratio(value: float, draws: Floats) -> Kept:
    """exp of a logarithm and of the ends of its interval, which holds it; nothing is clamped."""
    log = estimate(value, draws)
    return Kept(value=float(np.exp(value)), low=float(np.exp(log.low)), high=float(np.exp(log.high)))


def decide(kept: Kept) -> Decision:
    """Decided if the whole interval lies on one side of 1."""
    return "loses" if kept.below(1.0) else "gains" if kept.above(1.0) else "undecided"


def remote(item: PointResult, machine: Machine) -> tuple[Stream, ...]:
    """Whose data cross the link between sockets: those of computing cores of another socket, and messages
    whose NIC (on one host: communication thread) is of another socket than their node.
    """
    of_node = {node.number: node.package for node in machine.nodes}
    of_core = {core.number: core.package for core in machine.cores}
    computing = {of_core[core] for core in item.comp_cores if core in of_core}
    nic = nic_node(machine) if machine.hosts > 1 else None
    mover = of_core.get(item.comm_core) if nic is None else of_node.get(nic)
    streams: list[Stream] = []
    if computing - {of_node.get(item.comp_node)}:
        streams.append("computation")
    if mover is not None and mover != of_node.get(item.comm_node):
        streams.append("communication")
    return tuple(streams)


LEVELS: tuple[tuple[Source, tuple[str, ...]], ...] = (
    # FMA first: vector instructions draw the power, and get the frequency, of the kernels that move memory.
    ("everything but memory", ("fma", "fma512", "fma256", "fma128", "prime")),
    ("cache", ("triad_cache", "load_cache")),
    ("last-level cache", ("triad_llc",)),
)
PREFERRED = ("triad", "triad_nt", "copy", "copy_nt", "memset_nt", "load", "triad_cursor")
"""Which kernel stands for memory where nobody names one."""


def level_of(kernel: Kernel) -> int:
    """The place of a kernel in the chain: 0 registers, 1 and 2 caches, 3 memory."""
    if kernel.moves_memory:
        return len(LEVELS)
    return 0 if kernel.arrays == 0 else 2 if kernel.shared_cache else 1


def targets(points: Sequence[ObservedPoint]) -> list[ObservedPoint]:
    """The points that can be explained: computing kernels on the chain, in an order of their own."""
    names = {name for _, kernels in LEVELS for name in kernels}
    chosen = [
        point
        for point in points
        if point.item.role == "point"
        and (kernel := KERNELS.get(point.item.kernel)) is not None
        and (kernel.moves_memory or kernel.name in names)
    ]
    return sorted(chosen, key=_rank)


def _rank(point: ObservedPoint) -> tuple[object, ...]:
    item, kernel = point.item, point.item.kernel
    place = PREFERRED.index(kernel) if kernel in PREFERRED else len(PREFERRED)
    return place, kernel, item.cursor, -item.n, -item.size, item.comp_node, item.comm_node, point.run, item.id


def cases(points: Sequence[ObservedPoint], machine: Machine) -> tuple[ExplainedPoint, ...]:
    """Every target split, kernels that move memory first, with most cores and the largest message first."""
    peaks = highest([point.item for point in points])
    return tuple(_case(target, points, machine, peaks) for target in targets(points))


def _case(
    target: ObservedPoint, points: Sequence[ObservedPoint], machine: Machine, peaks: dict[int, float]
) -> ExplainedPoint:
    item = target.item
    peers = [point for point in points if _alike(point, target)]
    moved = traffic(item, "together")
    return ExplainedPoint(
        point=item.id,
        run=target.run,
        kernel=item.kernel,
        cursor=item.cursor,
        n=item.n,
        size=item.size,
        metric=item.metric,
        comp_node=item.comp_node,
        comm_node=item.comm_node,
        comm_core=item.comm_core,
        comp_cores=item.comp_cores,
        remote=remote(item, machine),
        regime=colour(item, peaks),
        traffic=moved,
        highest=None if moved is None else peaks[item.comp_node],
        splits=tuple(_split(target, peers, machine, side) for side in SIDES if side in target.logs),
        flags=item.flags,
    )


def _alike(point: ObservedPoint, target: ObservedPoint) -> bool:
    """Whether two points differ only in what is computed and in where the data are."""
    mine, its = point.item, target.item
    same = (
        "n", "comp_cores", "size", "metric", "pattern", "comm_core", "comm_threads", "processes", "reuse",
        "core_khz", "uncore_khz", "turbo", "governor", "workload",
    )  # fmt: skip
    alike = all(getattr(mine, name) == getattr(its, name) for name in same)
    return alike and point.shares_core == target.shares_core


def _split(
    target: ObservedPoint, peers: Sequence[ObservedPoint], machine: Machine, side: SideName
) -> SideLoss:
    total = target.logs[side]
    own_side: Side = getattr(target.item, side)
    kept = own_side.kept
    if kept is None or kept.bounds is None:
        kept = ratio(total.value, total.draws)
    decided = decide(kept)
    before: LogKept = LogKept(value=0.0, draws=np.zeros_like(total.draws))
    name, losses = "", []
    for sources, after in _chain(target, [point for point in peers if side in point.logs], machine):
        own = after.logs[side]
        step = LogKept(value=own.value - before.value, draws=own.draws - before.draws)
        ratios = ratio(step.value, step.draws)
        contrast = ChainStep(
            sources=sources,
            before=name,
            after=after.item.id,
            kept=ratios,
            share=None,
            decided=decide(ratios),
        )
        losses.append((step, contrast))
        before, name = own, after.item.id
    steps = [step for _, step in losses]
    if decided == "loses":
        steps = _shared([log for log, _ in losses], steps)
    return SideLoss(side=side, kept=kept, decided=decided, steps=tuple(steps))


def _shared(logs: Sequence[LogKept], steps: Sequence[ChainStep]) -> list[ChainStep]:
    """With the share of each step in what all steps lose: from 0 to 1, and 1 in all. A step that might be a
    small gain takes nothing, and one that significantly gains has no share.
    """
    losses = np.array([max(0.0, -log.value) for log in logs])
    drawn = np.array([np.maximum(0.0, -log.draws) for log in logs])
    values = losses / losses.sum()
    whole = drawn.sum(axis=0)
    shares = drawn[:, whole > 0] / whole[whole > 0]
    shared = []
    for step, value, draws in zip(steps, values, shares, strict=True):
        share = Kept(**msgspec.structs.asdict(estimate(float(value), draws)))
        shared.append(step if step.decided == "gains" else msgspec.structs.replace(step, share=share))
    return shared


def _chain(
    target: ObservedPoint, peers: Sequence[ObservedPoint], machine: Machine
) -> Iterator[tuple[tuple[Source, ...], ObservedPoint]]:
    """The contrasts up to the target, each with the sources that its point adds to the one before."""
    item = target.item
    level = level_of(KERNELS[item.kernel])
    far = remote(item, machine)
    home = _home(target, peers, machine) if far and item.comp_node == item.comm_node else None
    waiting: list[Source] = []
    for source, kernels in LEVELS[:level]:
        waiting.append(source)
        nearest = _best(kernels, home or target, peers)
        if nearest is not None:
            yield tuple(waiting), nearest
            waiting = []
    if level < len(LEVELS):
        waiting.append(LEVELS[level][0])
    elif item.comp_node == item.comm_node:
        waiting.append("memory controller")
        if home is not None:
            yield tuple(waiting), home
            waiting = []
        waiting += ["link"] if far else []
    else:
        # Data on two nodes have no memory controller in common.
        waiting += ["on-chip network", "link"] if far else ["on-chip network"]
    yield tuple(waiting), target


def _best(
    kernels: Sequence[str], near: ObservedPoint, peers: Sequence[ObservedPoint]
) -> ObservedPoint | None:
    """The point of one of these kernels, rather of the same run and placement as `near`."""

    def key(point: ObservedPoint) -> tuple[object, ...]:
        item = point.item
        moved = item.comm_node != near.item.comm_node, item.comp_node != near.item.comp_node
        return point.run != near.run, kernels.index(item.kernel), *moved, point.run, item.id

    return min((point for point in peers if point.item.kernel in kernels), key=key, default=None)


def _home(target: ObservedPoint, peers: Sequence[ObservedPoint], machine: Machine) -> ObservedPoint | None:
    """The same kernel with all data on one node that nobody crosses the link for."""
    local = [
        point
        for point in peers
        if (point.item.kernel, point.item.cursor) == (target.item.kernel, target.item.cursor)
        and point.item.comp_node == point.item.comm_node
        and not remote(point.item, machine)
    ]
    return min(local, key=lambda point: (point.run != target.run, point.run, point.item.id), default=None)
