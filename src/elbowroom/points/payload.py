"""What a point measures besides its two sides: the payload that a workload makes of its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.points.unit import Entry
from elbowroom.stats.interval import Side, Summary

Role = Literal["computing", "communication", "idle"]


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Frequency of one core during one phase, in kHz every `interval_s` seconds, and the core's role; of a
    part of the uncore, `part` is its name and `core` -1.
    """

    phase: str
    core: int
    role: Role | Literal["uncore"]
    interval_s: float
    khz: tuple[float, ...]
    part: str = ""


class MeasuredSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Whole steps of an application (the slowest process), and the part before anything can be sent, in us;
    its `facts` on its mesh and messages.
    """

    total: Summary
    separator: Summary | None = None
    facts: dict[str, float] = {}


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """One process of several: medians of what it computed and communicated, alone and together, in the units
    of the point's sides; None where it did not.
    """

    rank: int
    comp_alone: float | None = None
    comp_together: float | None = None
    comm_alone: float | None = None
    comm_together: float | None = None


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What any answer may hold: frequency `traces`, whole `steps`, a program's `facts` on its work, and what
    each of several processes did.

    A workload that measures more declares a payload of its own. Its fields are keys of the point in
    documents; a field that is unset is left out.
    """

    traces: tuple[Trace, ...] = ()
    steps: MeasuredSteps | None = None
    facts: dict[str, float] = {}
    by_process: tuple[ProcessResult, ...] | msgspec.UnsetType = msgspec.UNSET


class Records(NamedTuple):
    """What a run measured of a point: the `entries` of its journal, and its `sides`, summed up by name.

    `seed`: of resamples; `starts`: the run has several starts of the program, and intervals hold for others.
    """

    entries: Sequence[Entry]
    sides: Mapping[str, Side]
    seed: int = 0
    starts: bool = False

    def phases(self) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
        """The phases that count, each with its entry: not void, and of no closing baseline."""
        for entry in self.entries:
            for phase in () if entry.closing else entry.record.get("phases", ()):
                if phase.get("status") != "void":
                    yield entry, phase


class Collected(NamedTuple):
    """What a workload makes of its records: the payload; `comm` in place of the side of that name; `failure`:
    why the records are no answer to what was asked.
    """

    payload: Payload
    comm: Side | None = None
    failure: str = ""


class MeasuredSide(NamedTuple):
    """Where a phase of a record has the value of a side, and what the table of samples calls the side."""

    value: str
    column: str


SIDES: dict[str, MeasuredSide] = {
    "comp": MeasuredSide("rate", "computation"),
    "comm": MeasuredSide("value", "communication"),
    "total": MeasuredSide("value", "step"),
    "separator": MeasuredSide("value", "separator"),
}
"""The sides of a phase; the last two of an application's steps."""

SHARES = ("stalled_measured", "complete_share")
"""Facts that statements are judged by: NAME_low and NAME_high are their least and greatest over repetitions,
an interval of what they are (of six repetitions or more one of 95 %)."""


def common_fields(records: Records, role: Callable[[int], Role]) -> dict[str, Any]:
    """The fields of every payload; `role` is what a core does."""
    facts = _facts(records)
    sides = {name: records.sides.get(name, Side()) for name in ("total", "separator")}
    # Of an application the one there is, since a step is alone or together; of a program the whole of it.
    whole, separator = (side.together or side.alone for side in sides.values())
    return {
        "traces": _traces(records, role),
        "steps": None if whole is None else MeasuredSteps(total=whole, separator=separator, facts=facts),
        "facts": facts,
        "by_process": _processes(records) or msgspec.UNSET,
    }


def _facts(records: Records) -> dict[str, float]:
    """The facts of the first repetition, and the range of those in SHARES."""
    facts: dict[str, float] = {}
    for entry in records.entries:
        for name, value in entry.record.get("facts", {}).items():
            facts.setdefault(name, value)
            if name in SHARES:
                facts[f"{name}_low"] = min(value, facts.get(f"{name}_low", value))
                facts[f"{name}_high"] = max(value, facts.get(f"{name}_high", value))
    return facts


def _processes(records: Records) -> tuple[ProcessResult, ...]:
    """The median of each process, of all phases of its kind."""
    values: dict[int, dict[str, list[float]]] = {}
    for _, phase in records.phases():
        style = "together" if phase["phase"] == "AB" else "alone"
        for rank in phase.get("ranks", ()):
            for side in ("comp", "comm"):
                value = rank.get(side, {}).get(SIDES[side].value)
                if value is not None:
                    of_rank = values.setdefault(int(rank["rank"]), {})
                    of_rank.setdefault(f"{side}_{style}", []).append(float(value))
    return tuple(
        ProcessResult(rank=rank, **{name: median(several) for name, several in of_rank.items()})
        for rank, of_rank in sorted(values.items())
    )


def _traces(records: Records, role: Callable[[int], Role]) -> tuple[Trace, ...]:
    """Frequency traces of the first repetition: of the first phase of each kind."""
    first = [entry for entry in records.entries if entry.repetition == 0 and not entry.closing]
    traces: dict[str, tuple[Trace, ...]] = {}
    for phase in first[-1].record.get("phases", ()) if first else ():
        trace = phase.get("observed", {}).get("frequency_trace")
        if trace and phase["phase"] not in traces:
            traces[phase["phase"]] = tuple(_traces_of_phase(phase["phase"], trace, role))
    return tuple(trace for of_phase in traces.values() for trace in of_phase)


def _traces_of_phase(phase: str, trace: Mapping[str, Any], role: Callable[[int], Role]) -> Iterator[Trace]:
    """The cores' traces, then those of the uncore."""
    interval = float(trace["interval_ns"]) * 1e-9
    for core, khz in trace.items():
        if core.isdigit():
            values = tuple(float(value) for value in khz)
            yield Trace(phase=phase, core=int(core), role=role(int(core)), interval_s=interval, khz=values)
    for part, khz in trace.get("uncore", {}).items():
        values = tuple(float(value) for value in khz)
        yield Trace(phase=phase, core=-1, role="uncore", interval_s=interval, khz=values, part=part)
