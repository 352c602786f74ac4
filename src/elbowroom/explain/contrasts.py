"""Sources that have a control of their own: polling workers against paused ones, messages through a runtime
system against MPI's, two threads on one core against one each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.explain.explanation import SIDES, Contrast, SideName, Source
from elbowroom.explain.seen import Seen, decide, ratio
from elbowroom.stats.resampled import LogKept
from elbowroom.stats.result import Kept

POLLING, PAUSED = "polling", "paused"


def contrasts(points: Sequence[Seen]) -> tuple[Contrast, ...]:
    """Every one that the points hold, by source, fewest cores and smallest message first."""
    ordered = sorted(points, key=lambda found: (found.item.n, found.item.size, found.run, found.item.id))
    return (*_polling(ordered), *_runtime(ordered), *_scheduling(ordered))


def _polling(points: Sequence[Seen]) -> Iterator[Contrast]:
    """Workers that poll, against the same ones paused (Denis et al. 2021, section 5.4)."""
    for found in points:
        item = found.item
        if item.program is None and item.kernel == POLLING:
            control = _nearest(found, [other for other in points if other.item.kernel == PAUSED], "cursor")
            yield from _against("polling", found, control, f"workers poll, backoff {item.cursor}")
        elif item.program is not None and item.program.task == "polling" and item.program.backoff:
            paused = [
                other
                for other in points
                if other.item.program is not None
                and other.item.program.task == "polling"
                and other.item.program.backoff == 0
            ]
            control = _nearest(found, paused, "program")
            yield from _against(
                "polling", found, control, f"StarPU's workers poll, backoff {item.program.backoff}"
            )


def _runtime(points: Sequence[Seen]) -> Iterator[Contrast]:
    """Messages through the runtime system, against MPI's inside the same point (section 5.2)."""
    for found in points:
        program = found.item.program
        if program is None or program.task != "overhead" or "comm" not in found.logs:
            continue
        log = found.logs["comm"]
        kept = ratio(log.value, log.draws)
        yield Contrast(
            source="runtime overhead",
            side="comm",
            setting="messages through StarPU",
            n=found.item.n,
            size=found.item.size,
            point=found.item.id,
            reference="",
            kept=kept,
            decided=decide(kept),
            added=found.item.comm.added,
        )


def _scheduling(points: Sequence[Seen]) -> Iterator[Contrast]:
    """Two threads on one core, against the same work with a core for each (METHOD.md, rule 4)."""
    apart = [found for found in points if not found.shares_core and found.item.program is None]
    for found in points:
        if found.shares_core and found.item.program is None:
            alike = [
                other
                for other in apart
                if (other.item.kernel, other.item.cursor) == (found.item.kernel, found.item.cursor)
            ]
            control = _nearest(found, alike, "comp_cores", "comm_core")
            if control is not None:
                yield from _against("scheduling", found, control, "two threads on one core")


def _nearest(found: Seen, controls: Sequence[Seen], *free: str) -> Seen | None:
    """A control with the same workers, messages and places, rather of the same run; what is `free` may
    differ.
    """
    same = {
        "n", "comp_cores", "size", "metric", "pattern", "comp_node", "comm_node", "comm_core",
        "comm_threads", "processes", "reuse",
    } - set(free)  # fmt: skip
    alike = [
        other for other in controls if all(getattr(other.item, n) == getattr(found.item, n) for n in same)
    ]
    if found.item.program is not None:
        build = found.item.program.build
        alike = [other for other in alike if other.item.program and other.item.program.build == build]
    return min(alike, key=lambda other: (other.run != found.run, other.run, other.item.id), default=None)


def _against(source: Source, found: Seen, control: Seen | None, setting: str) -> Iterator[Contrast]:
    """One contrast for each side that both points have; without a control the point's own (alone)."""
    for side in SIDES:
        if side not in found.logs or (control is not None and side not in control.logs):
            continue
        if control is None and side == "comp":
            continue  # workers that poll compute nothing of their own
        kept = _kept(found, control, side)
        yield Contrast(
            source=source,
            side=side,
            setting=setting,
            n=found.item.n,
            size=found.item.size,
            point=found.item.id,
            reference="" if control is None else control.item.id,
            kept=kept,
            decided=decide(kept),
            added=found.item.comm.added if side == "comm" and control is None else None,
        )


def _kept(found: Seen, control: Seen | None, side: SideName) -> Kept:
    own = found.logs[side]
    if control is None:
        return ratio(own.value, own.draws)
    base: LogKept = control.logs[side]
    return ratio(own.value - base.value, own.draws - base.draws)
