"""From the entries of a journal to the columns, flags, failures and observations that statistics work on.

Hardware counters that do not agree with the bytes that a kernel is known to move are suspect (method.md,
rule 18).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import msgspec

from elbowroom.plan.kernels import LEAST_STORE_FACTOR, MOST_STORE_FACTOR, Kernel, find
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry
from elbowroom.results.quiet import Observations
from elbowroom.stats.summary import Samples


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal says: samples; by point id flags, failures and the entries."""

    samples: Samples
    flags: dict[str, tuple[str, ...]]
    failures: dict[str, str]
    entries: dict[str, list[Entry]]


def collect(entries: Sequence[Entry], points: Sequence[Point]) -> Measurements:
    """Sorts the entries out. A point is a failure as soon as one of its repetitions got no answer."""
    index = {point.id: number for number, point in enumerate(points)}
    columns: dict[str, list[Any]] = {name: [] for name in Samples.__dataclass_fields__}
    flags: dict[str, dict[str, None]] = {}
    failures: dict[str, str] = {}
    by_point: dict[str, list[Entry]] = {}
    agreement: dict[str, dict[str, list[float]]] = {}
    for entry in entries:
        if entry.point not in index:
            continue
        record, point = entry.record, points[index[entry.point]]
        by_point.setdefault(entry.point, []).append(entry)
        of_point = flags.setdefault(entry.point, {})
        of_point.update(dict.fromkeys(record.get("flags", ())))
        if record.get("status") == "failed":
            failures.setdefault(entry.point, str(record.get("reason", "")) or "no reason was given")
        for phase in record.get("phases", ()):
            of_point.update(dict.fromkeys(phase.get("flags", ())))
            _add_rows(columns, index[entry.point], point, entry, phase)
        if (kernel := find(point.kernel)) is not None:
            for counter, values in ratios(kernel, record).items():
                agreement.setdefault(entry.point, {}).setdefault(counter, []).extend(values)
    for name, by_counter in agreement.items():
        flags.setdefault(name, {}).update({f"counter_suspect:{one}": None for one in suspects(by_counter)})
    return Measurements(
        samples=Samples(**columns),
        flags={name: tuple(names) for name, names in flags.items() if names},
        failures=failures,
        entries=by_point,
    )


def _mean(phase: Mapping[str, Any], side: str, name: str) -> float | None:
    """Over all processes that report the side; of one process its own."""
    each = [rank[side][name] for rank in phase.get("ranks", ()) if rank.get(side, {}).get(name) is not None]
    own = phase[side].get(name)
    return fmean(each) if each and own is not None else own


def _add_rows(
    columns: dict[str, list[Any]], index: int, point: Point, entry: Entry, phase: Mapping[str, Any]
) -> None:
    for side, place in point.workload.sides.items():
        measured = phase.get(side)
        if measured is None or (value := _mean(phase, side, place.value)) is None:
            continue
        row = (index, entry.repetition, entry.closing, phase["phase"], side, value, measured["unit"])
        more = (phase.get("status", "ok"), entry.record.get("start", 0))
        for column, value in zip(columns.values(), (*row, *more), strict=True):
            column.append(value)


def observations(entries: Iterable[Entry], state: Mapping[str, Mapping[str, Any]], cpus: int) -> Observations:
    """What was seen of the rest of the machine; `cpus` processing units share the steal time of a phase."""
    steal = measured = 0.0
    known = False
    for entry in entries:
        for phase in entry.record.get("phases", ()):
            taken = phase.get("observed", {}).get("steal_s")
            if isinstance(taken, int | float):
                known = True
                steal += float(taken)
                measured += float(phase.get("measured_s") or 0.0) * cpus
    return Observations(
        others_before=_others(state, "before"),
        others_during=_others(state, "during"),
        others_after=_others(state, "after"),
        steal_share=steal / measured if known and measured > 0 else None,
    )


def _others(state: Mapping[str, Mapping[str, Any]], when: str) -> float | None:
    value = state.get(when, {}).get("others_busy")
    return float(value) if isinstance(value, int | float) else None


DISAGREES = 0.2  # docs/design/method.md, rule 18
LINE = 64  # bytes of a cache line, which a miss of the last level brings


def ratios(kernel: Kernel, record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Counter over counted bytes in each phase of a repetition in which only rank 0 computes and nobody
    communicates (`record`: docs/reference/protocol.md, `repetition`), by name of the counter; nothing of a
    counter that was absent.

    Misses of the last level bring what is read and, before plain stores, what is written (write-allocate)
    unless the core avoids that. Of the byte counts that are possible, the one closest to the counter counts.
    Kernels that do not go to memory, and arrays that partly stay in the cache, say nothing about a counter.
    """
    ratios: dict[str, list[float]] = {}
    if not kernel.moves_memory or "working_set_small" in record.get("flags", ()):
        return ratios
    least, most = kernel.moved(LEAST_STORE_FACTOR), kernel.moved(MOST_STORE_FACTOR)
    read = kernel.bytes_read, most - kernel.bytes_written
    for phase in record.get("phases", ()):
        items = phase.get("comp", {}).get("items_all", 0)
        if phase["phase"] != "A" or not items:
            continue
        observed = phase.get("observed", {})
        misses = observed.get("counters", {}).get("llc_misses")
        if misses is not None and read[0] > 0:
            ratios.setdefault("llc_misses", []).append(_to_nearest(misses * LINE / items, *read))
        # The whole machine's bytes: what other ranks compute is not in rank 0's items. Rank 0 is the first.
        moved = observed.get("memory_bytes", {}).get("total")
        if moved is not None and not any("comp" in other for other in phase.get("ranks", ())[1:]):
            ratios.setdefault("memory_bytes", []).append(_to_nearest(moved / items, least, most))
    return ratios


def _to_nearest(counted: float, least: float, most: float) -> float:
    """A count over the nearest of the possible ones."""
    return counted / min(max(counted, least), most)


def suspects(by_counter: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The counters whose median ratio to the counted bytes is more than 20 % off, by name."""
    return tuple(
        name for name, values in by_counter.items() if values and abs(median(values) - 1) > DISAGREES
    )
