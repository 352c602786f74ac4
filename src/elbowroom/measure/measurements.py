"""From the entries of a journal to the columns, flags, failures and observations that statistics work on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Literal

import msgspec

from elbowroom.plan.kernels import find
from elbowroom.points.point import Point
from elbowroom.results import series
from elbowroom.results.counters import ratios, suspects
from elbowroom.results.quiet import Observations
from elbowroom.results.result import ProcessResult, Trace
from elbowroom.results.series import WindowTimes
from elbowroom.results.streams import StreamSample, samples_of
from elbowroom.results.summary import Samples
from elbowroom.store.journal import Entry

SIDES = {"comp": "rate", "comm": "value", "total": "value", "separator": "value"}
"""What a phase may tell, and where in it the value is; the last two of an application's steps."""


class Measurements(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal says: samples; by point id flags, failures, frequency traces, facts of
    applications, one-way times of windows of extraneous accesses, what each of several processes did,
    the times of calls beside computations, one mapping for each repetition, and samples of other streams.
    """

    samples: Samples
    flags: dict[str, tuple[str, ...]]
    failures: dict[str, str]
    traces: dict[str, tuple[Trace, ...]]
    facts: dict[str, dict[str, float]]
    times: dict[str, WindowTimes] = {}
    processes: dict[str, tuple[ProcessResult, ...]] = {}
    calls: dict[str, list[Mapping[str, Any]]] = {}
    streams: dict[str, list[StreamSample]] = {}


def collect(entries: Sequence[Entry], points: Sequence[Point]) -> Measurements:
    """Sorts the entries out. A point is a failure as soon as one of its repetitions got no answer."""
    index = {point.id: number for number, point in enumerate(points)}
    by_id = {point.id: point for point in points}
    columns: dict[str, list[Any]] = {name: [] for name in Samples.__dataclass_fields__}
    flags: dict[str, dict[str, None]] = {}
    failures: dict[str, str] = {}
    traces: dict[str, tuple[Trace, ...]] = {}
    facts: dict[str, dict[str, float]] = {}
    agreement: dict[str, dict[str, list[float]]] = {}
    times: dict[str, WindowTimes] = {}
    ranks: dict[str, RankValues] = {}
    calls: dict[str, list[Mapping[str, Any]]] = {}
    streams: dict[str, list[StreamSample]] = {}
    for entry in entries:
        if entry.point not in index:
            continue
        record = entry.record
        of_point = flags.setdefault(entry.point, {})
        of_point.update(dict.fromkeys(record.get("flags", ())))
        if record.get("status") == "failed":
            failures.setdefault(entry.point, str(record.get("reason", "")) or "no reason was given")
        for phase in record.get("phases", ()):
            of_point.update(dict.fromkeys(phase.get("flags", ())))
            _rows(columns, index[entry.point], entry, phase)
            if not entry.closing:
                found = samples_of(phase, entry.repetition, int(record.get("start", 0)))
                streams.setdefault(entry.point, []).extend(found)
            if not entry.closing and phase.get("status") != "void":
                _add_ranks(ranks.setdefault(entry.point, {}), phase)
        if sizes := by_id[entry.point].workload.sizes:
            wrong = series.add(times.setdefault(entry.point, WindowTimes()), len(sizes), record)
            if wrong:
                failures.setdefault(entry.point, wrong)
        if by_id[entry.point].workload.overlaps_calls and record.get("status") != "failed":
            calls.setdefault(entry.point, []).append(record.get("overlap") or {})
        _add_facts(facts.setdefault(entry.point, {}), record.get("facts", {}))
        if entry.repetition == 0 and not entry.closing:
            traces[entry.point] = _traces(by_id[entry.point], record)
        if (kernel := find(by_id[entry.point].kernel)) is not None:
            for counter, values in ratios(kernel, record).items():
                agreement.setdefault(entry.point, {}).setdefault(counter, []).extend(values)
    for point, by_counter in agreement.items():
        flags.setdefault(point, {}).update({f"counter_suspect:{name}": None for name in suspects(by_counter)})
    return Measurements(
        samples=Samples(**columns),
        flags={point: tuple(names) for point, names in flags.items() if names},
        failures=failures,
        traces={point: several for point, several in traces.items() if several},
        facts={point: values for point, values in facts.items() if values},
        times=times,
        calls=calls,
        streams=streams,
        processes={point: _processes(values) for point, values in ranks.items() if values},
    )


SHARES = ("stalled_measured", "complete_share")
"""Facts that statements are judged by: NAME_low and NAME_high are their least and greatest over repetitions,
an interval of what they are (of six repetitions or more one of 95 %)."""


def _add_facts(facts: dict[str, float], reported: Mapping[str, float]) -> None:
    """Those of the first repetition, and the range of those in SHARES."""
    for name, value in reported.items():
        facts.setdefault(name, value)
        if name in SHARES:
            facts[f"{name}_low"] = min(value, facts.get(f"{name}_low", value))
            facts[f"{name}_high"] = max(value, facts.get(f"{name}_high", value))


RankValues = dict[tuple[int, str], list[float]]
"""By rank and what was measured of it, as a field of ProcessResult."""


def _add_ranks(values: RankValues, phase: Mapping[str, Any]) -> None:
    style = "together" if phase["phase"] == "AB" else "alone"
    for rank in phase.get("ranks", ()):
        for side in ("comp", "comm"):
            value = rank.get(side, {}).get(SIDES[side])
            if value is not None:
                values.setdefault((int(rank["rank"]), f"{side}_{style}"), []).append(float(value))


def _processes(values: RankValues) -> tuple[ProcessResult, ...]:
    by_rank: dict[int, dict[str, float]] = {}
    for (rank, name), measured in sorted(values.items()):
        by_rank.setdefault(rank, {})[name] = median(measured)
    return tuple(ProcessResult(rank=rank, **medians) for rank, medians in by_rank.items())


def _mean(phase: Mapping[str, Any], side: str, name: str) -> float | None:
    """Over all processes that report the side; of one process its own."""
    each = [rank[side][name] for rank in phase.get("ranks", ()) if rank.get(side, {}).get(name) is not None]
    own = phase[side].get(name)
    return fmean(each) if each and own is not None else own


def _rows(columns: dict[str, list[Any]], point: int, entry: Entry, phase: Mapping[str, Any]) -> None:
    for side, name in SIDES.items():
        measured = phase.get(side)
        if measured is None or (value := _mean(phase, side, name)) is None:
            continue
        row = (point, entry.repetition, entry.closing, phase["phase"], side, value, measured["unit"])
        more = (phase.get("status", "ok"), entry.record.get("start", 0))
        for column, value in zip(columns.values(), (*row, *more), strict=True):
            column.append(value)


def _traces(point: Point, record: Mapping[str, Any]) -> tuple[Trace, ...]:
    """Frequency traces of the first phase of each kind."""
    by_phase: dict[str, list[Trace]] = {}
    for phase in record.get("phases", ()):
        trace = phase.get("observed", {}).get("frequency_trace")
        if not trace or phase["phase"] in by_phase:
            continue
        by_phase[phase["phase"]] = list(_of_phase(phase["phase"], trace, point))
    return tuple(trace for traces in by_phase.values() for trace in traces)


def _of_phase(phase: str, trace: Mapping[str, Any], point: Point) -> Iterator[Trace]:
    """The cores' traces, then those of the uncore."""
    interval = float(trace["interval_ns"]) * 1e-9
    for core, khz in trace.items():
        if core.isdigit():
            values = tuple(float(value) for value in khz)
            role = _role(int(core), point)
            yield Trace(phase=phase, core=int(core), role=role, interval_s=interval, khz=values)
    for part, khz in trace.get("uncore", {}).items():
        values = tuple(float(value) for value in khz)
        yield Trace(phase=phase, core=-1, role="uncore", interval_s=interval, khz=values, part=part)


def _role(core: int, point: Point) -> Literal["computing", "communication", "idle"]:
    if core in (*point.comm_cores, *point.peer_cores, point.comm_core):
        return "communication"
    return "computing" if core in point.comp_cores else "idle"


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
