"""From the entries of a journal to the columns, flags, failures and observations that statistics work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from elbowroom.plan.kernels import find
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry
from elbowroom.results.counters import ratios, suspects
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
