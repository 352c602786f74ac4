"""Sources that have a control of their own: polling workers against paused ones, messages through a runtime
system against MPI's, two threads on one core against one each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elbowroom.explain.chain import ObservedPoint, decide, ratio
from elbowroom.explain.explanation import SIDES, Contrast, SideName, Source
from elbowroom.results.resampled import LogKept
from elbowroom.results.result import Kept

POLLING, PAUSED = "polling", "paused"


def contrasts(points: Sequence[ObservedPoint]) -> tuple[Contrast, ...]:
    """All contrasts of the points, by source; fewest cores and smallest message first."""
    ordered = sorted(points, key=lambda point: (point.item.n, point.item.size, point.run, point.item.id))
    return (*_polling(ordered), *_runtime(ordered), *_scheduling(ordered))


def _polling(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Workers that poll, against the same ones paused (Denis et al. 2021, section 5.4)."""
    for point in points:
        item = point.item
        own = item.workload.contrast
        if item.kernel == POLLING:
            control = _nearest(point, [other for other in points if other.item.kernel == PAUSED], "cursor")
            setting = f"workers that poll (backoff {item.cursor})"
            instead = "alone" if control is None else "beside paused workers"
            yield from _against("polling", point, control, setting, instead)
        elif own is not None and own.source == "polling":
            yield from _against("polling", point, None, own.setting, own.control)


def _runtime(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Messages through the runtime system, against MPI's inside the same point (section 5.2)."""
    for point in points:
        own = point.item.workload.contrast
        if own is None or own.source != "runtime overhead" or "comm" not in point.logs:
            continue
        log = point.logs["comm"]
        kept = ratio(log.value, log.draws)
        yield Contrast(
            source="runtime overhead",
            side="comm",
            setting=own.setting,
            control=own.control,
            n=point.item.n,
            size=point.item.size,
            point=point.item.id,
            reference="",
            kept=kept,
            decided=decide(kept),
            added=point.item.comm.added,
        )


def _scheduling(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Two threads on one core, against the same work with a core for each (docs/design/method.md, rule 4)."""
    apart = [point for point in points if not point.shares_core and point.item.workload.beside_messages]
    for point in points:
        if point.shares_core and point.item.workload.beside_messages:
            alike = [
                other
                for other in apart
                if (other.item.kernel, other.item.cursor) == (point.item.kernel, point.item.cursor)
            ]
            control = _nearest(point, alike, "comp_cores", "comm_core")
            if control is not None:
                setting = "two threads sharing a core,"
                yield from _against("scheduling", point, control, setting, "with a core for each thread")


def _nearest(point: ObservedPoint, controls: Sequence[ObservedPoint], *free: str) -> ObservedPoint | None:
    """A control with the same workers, messages and placement, preferably of the same run. The fields `free`
    may differ.
    """
    same = {
        "n", "comp_cores", "size", "metric", "pattern", "comp_node", "comm_node", "comm_core",
        "comm_threads", "processes", "reuse",
    } - set(free)  # fmt: skip
    alike = [
        other for other in controls if all(getattr(other.item, n) == getattr(point.item, n) for n in same)
    ]
    return min(alike, key=lambda other: (other.run != point.run, other.run, other.item.id), default=None)


def _against(
    source: Source, point: ObservedPoint, control: ObservedPoint | None, setting: str, instead: str
) -> Iterator[Contrast]:
    """One contrast for each side that both points have; without a control the point's own. The computation of
    polling workers is left out: nobody needs its results.
    """
    for side in SIDES if source != "polling" else SIDES[:1]:
        if side not in point.logs or (control is not None and side not in control.logs):
            continue
        kept = _kept(point, control, side)
        yield Contrast(
            source=source,
            side=side,
            setting=setting,
            control=instead,
            n=point.item.n,
            size=point.item.size,
            point=point.item.id,
            reference="" if control is None else control.item.id,
            kept=kept,
            decided=decide(kept),
            added=point.item.comm.added if side == "comm" and control is None else None,
        )


def _kept(point: ObservedPoint, control: ObservedPoint | None, side: SideName) -> Kept:
    own = point.logs[side]
    if control is None:
        return ratio(own.value, own.draws)
    base: LogKept = control.logs[side]
    return ratio(own.value - base.value, own.draws - base.draws)
