"""The chain of contrasts from nothing up to a point (METHOD.md, rule 20), and how much each step takes.

At the same computing cores, message size and communication core:

    nothing -> registers only -> private cache -> last-level cache -> local memory -> memory of a remote node

What a side keeps at each point, relative to the one before, is the step's factor; the factors multiply to
what the target keeps, so the logarithms add up and the shares sum to the whole. Where a point is missing, its
source stays with the next step: no contrast tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from elbowroom.explain.explanation import SIDES, Case, Decision, SideName, Source, Split, Step
from elbowroom.explain.seen import Seen, decide, ratio, remote
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import KERNELS, Kernel
from elbowroom.stats.resampled import LogKept
from elbowroom.stats.result import Kept
from elbowroom.stats.saturation import colour, highest, traffic
from elbowroom.stats.summary import interval

LEVELS: tuple[tuple[Source, tuple[str, ...]], ...] = (
    # FMA first: vector instructions draw the power, and get the frequency, of the kernels that move memory.
    ("frequency", ("fma", "fma512", "fma256", "fma128", "prime")),
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


def targets(points: Sequence[Seen]) -> list[Seen]:
    """The points that can be explained: computing kernels on the chain, in an order of their own."""
    names = {name for _, kernels in LEVELS for name in kernels}
    chosen = [
        found
        for found in points
        if found.item.program is None
        and found.item.role == "point"
        and (kernel := KERNELS.get(found.item.kernel)) is not None
        and (kernel.moves_memory or kernel.name in names)
    ]
    return sorted(chosen, key=_rank)


def _rank(found: Seen) -> tuple[object, ...]:
    item, kernel = found.item, found.item.kernel
    place = PREFERRED.index(kernel) if kernel in PREFERRED else len(PREFERRED)
    return place, kernel, item.cursor, -item.n, -item.size, item.comp_node, item.comm_node, found.run, item.id


def cases(points: Sequence[Seen], machine: Machine) -> tuple[Case, ...]:
    """Every target split, kernels that move memory first, with most cores and the largest message first."""
    peaks = highest([found.item for found in points if found.item.program is None])
    return tuple(_case(target, points, machine, peaks) for target in targets(points))


def _case(target: Seen, points: Sequence[Seen], machine: Machine, peaks: dict[int, float]) -> Case:
    item = target.item
    peers = [found for found in points if _alike(found, target)]
    moved = traffic(item, "together")
    return Case(
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


def _alike(found: Seen, target: Seen) -> bool:
    """Measured with the same cores, messages and threads: what differs is what is computed, and where data
    are.
    """
    mine, its = found.item, target.item
    same = (
        "n", "comp_cores", "size", "metric", "pattern", "comm_core", "comm_threads", "processes", "reuse",
        "core_khz", "uncore_khz", "program",
    )  # fmt: skip
    alike = all(getattr(mine, name) == getattr(its, name) for name in same)
    return alike and found.shares_core == target.shares_core


def _split(target: Seen, peers: Sequence[Seen], machine: Machine, side: SideName) -> Split:
    total = target.logs[side]
    kept = ratio(total.value, total.draws)
    decided = decide(kept)
    before: LogKept = LogKept(value=0.0, draws=np.zeros_like(total.draws))
    name, steps = "", []
    for sources, after in _chain(target, [found for found in peers if side in found.logs], machine):
        own = after.logs[side]
        step = LogKept(value=own.value - before.value, draws=own.draws - before.draws)
        steps.append(_step(sources, name, after.item.id, step, total, decided))
        before, name = own, after.item.id
    return Split(side=side, kept=kept, decided=decided, steps=tuple(steps))


def _step(
    sources: tuple[Source, ...], before: str, after: str, step: LogKept, total: LogKept, lost: Decision
) -> Step:
    kept = ratio(step.value, step.draws)
    share = None
    if lost == "loses":
        value = step.value / total.value
        # A few draws of the whole may be 0 or a gain: their shares are far out, beyond the interval's ends.
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(step.draws / total.draws, nan=value)
        low, high = interval(shares)
        share = Kept(value=value, low=min(low, value), high=max(high, value))
    return Step(sources=sources, before=before, after=after, kept=kept, share=share, decided=decide(kept))


def _chain(
    target: Seen, peers: Sequence[Seen], machine: Machine
) -> Iterator[tuple[tuple[Source, ...], Seen]]:
    """The contrasts up to the target, each with the sources that its point adds to the one before."""
    item = target.item
    level = level_of(KERNELS[item.kernel])
    far = remote(item, machine)
    home = _home(target, peers, machine) if far and item.comp_node == item.comm_node else None
    waiting: list[Source] = []
    for source, kernels in LEVELS[:level]:
        waiting.append(source)
        found = _best(kernels, home or target, peers)
        if found is not None:
            yield tuple(waiting), found
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


def _best(kernels: Sequence[str], near: Seen, peers: Sequence[Seen]) -> Seen | None:
    """The point of one of these kernels, rather of the same run and placement as `near`."""

    def key(found: Seen) -> tuple[object, ...]:
        item = found.item
        moved = item.comm_node != near.item.comm_node, item.comp_node != near.item.comp_node
        return found.run != near.run, kernels.index(item.kernel), *moved, found.run, item.id

    return min((found for found in peers if found.item.kernel in kernels), key=key, default=None)


def _home(target: Seen, peers: Sequence[Seen], machine: Machine) -> Seen | None:
    """The same kernel with all data on one node that nobody crosses the link for."""
    local = [
        found
        for found in peers
        if (found.item.kernel, found.item.cursor) == (target.item.kernel, target.item.cursor)
        and found.item.comp_node == found.item.comm_node
        and not remote(found.item, machine)
    ]
    return min(local, key=lambda found: (found.run != target.run, found.run, found.item.id), default=None)
