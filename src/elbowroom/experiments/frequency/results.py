"""What changed with frequencies: beside computation, and at constant frequencies; frequencies over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from operator import attrgetter
from statistics import fmean
from typing import Literal, NamedTuple

from elbowroom.draw.figure import RULE, Axis, Figure, Series
from elbowroom.experiments.common.panels import (
    CORES,
    SIZES,
    Transform,
    as_bandwidth,
    cores_of,
    curve,
    in_microseconds,
    per_core,
    side_by_side,
    size_of,
    with_durations,
)
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    hit,
    lost_text,
    nothing,
    onset_over,
    size_text,
    usable,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import kernel_name
from elbowroom.points.payload import Trace
from elbowroom.results.result import Finding, PointResult, mean_mhz

CaseKey = tuple[str, int, int, int, bool | None, str | None]


def case_of(item: PointResult) -> CaseKey:
    """What points of one curve over the number of cores share."""
    return item.kernel, item.size, item.comm_node, item.comm_core, item.turbo, item.governor


def spread(group: Sequence[PointResult]) -> list[PointResult]:
    """Of the points of one curve those with the fewest, the middle and the most cores: what is said and drawn
    point by point.
    """
    counts = sorted({item.n for item in group})
    chosen = {counts[0], counts[(len(counts) - 1) // 2], counts[-1]} if counts else set()
    return [item for item in group if item.n in chosen]


def is_constant(item: PointResult) -> bool:
    """Whether communication was measured alone at constant frequencies."""
    return item.core_khz is not None or item.uncore_khz is not None


def condition_text(item: PointResult) -> str:
    """`, without turbo, governor powersave`; empty as the machine is."""
    turbo = "" if item.turbo is None else f", {'with' if item.turbo else 'without'} turbo"
    return turbo + ("" if item.governor is None else f", governor {item.governor}")


MOVED = 0.02  # docs/design/method.md, rule 14: more than 2 % is a change of frequency
GAINED = 0.02  # the paper's "slightly better" is 1.7 to 1.52 us; less than this is called unchanged
SIDES = {"core": "core_khz", "uncore": "uncore_khz"}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """What communication kept with few, half, all cores and where a side suffers, by kernel and size; whether
    computation slows down at the communicating socket; then the frequencies, if they were readable.
    """
    findings = []
    points = usable(results)
    for group in grouped([item for item in points if item.n], case_of).values():
        shown = [item for item in group if item in spread(group) or hit(item, "comm") or hit(item, "comp")]
        findings += [_effect(item) for item in sorted(shown, key=cores_of)]
        findings += list(_boundary(group, machine))
        findings += list(_frequencies(group))
    constants = [item for item in points if is_constant(item)]
    findings += list(_constants(constants))
    findings += list(_not_held(constants))
    if points and not any(item.payload.traces for item in points):
        text = "Frequencies of the cores: n/a, this machine does not allow reading them."
        findings.append(Finding(key="frequencies", level="n/a", text=text))
    return tuple(findings) or (nothing("frequency", "Frequencies"),)


def _effect(item: PointResult) -> Finding:
    comm, comp = hit(item, "comm"), hit(item, "comp")
    kept = item.comm.kept
    better = kept is not None and kept.above(1.0) and kept.value > 1 + GAINED
    change = "suffers" if comm else ("gains" if better else "is unchanged")
    level: Literal["quiet", "interference"] = "interference" if comm or comp else "quiet"
    text = (
        f"{kernel_name(item.kernel)} on {cores_text(item.n)}{condition_text(item)}: the {item.metric} of "
        f"{size_text(item.size)} messages {change}: it loses {lost_text(kept)}; "
        f"the computation {'suffers' if comp else 'is unchanged'}: it loses {lost_text(item.comp.kept)}."
    )
    values: Values = {
        "n": item.n,
        "comm_kept": kept.value if kept else None,
        "comp_kept": item.comp.kept.value if item.comp.kept else None,
    }
    return Finding(key=f"effect-{item.id}", level=level, text=text, values=values, points=(item.id,))


def _boundary(group: Sequence[PointResult], machine: Machine) -> Iterator[Finding]:
    """From how many cores on computation slows down, and whether its cores then include some of the
    communicating socket for the first time (Swartvagher 2022, Fig. 5.3: bora).
    """
    sockets = {core.number: core.package for core in machine.cores}
    first = group[0]
    communicating = sockets.get(first.comm_core)
    inside = [item.n for item in group if communicating in {sockets.get(core) for core in item.comp_cores}]
    boundary = min(inside, default=None)
    if communicating is None or boundary is None or boundary == min(item.n for item in group):
        return
    onset = onset_over(group, "comp", cores_of)
    where = f"its cores include some of socket {communicating}, which communicates"
    what = f"{kernel_name(first.kernel)} beside {size_text(first.size)} messages{condition_text(first)}"
    text = f"{what} does not slow down, though from {cores_text(boundary)} on {where}."
    if onset.x is not None:
        how = f" {onset.manner}" if onset.manner else ""
        text = f"{what} slows down{how} from {cores_text(int(onset.x))} on"
        text += (
            f": from there on {where}."
            if onset.x == boundary
            else f"; from {cores_text(boundary)} on {where}."
        )
    case = case_key("boundary", [part for part in case_of(first) if part is not None])
    values: Values = {"boundary": boundary, "from": onset.x, "worst": onset.worst}
    ids = tuple(item.id for item in group)
    level: Literal["quiet", "interference"] = "quiet" if onset.x is None else "interference"
    yield Finding(key=case, level=level, text=text, values=values, points=ids)


def _frequencies(group: Sequence[PointResult]) -> Iterator[Finding]:
    """Whether the communication core's frequency moves when others compute."""
    for item in sorted(spread(group), key=cores_of):
        alone, together = mean_mhz([item], "B", "communication"), mean_mhz([item], "AB", "communication")
        if alone is None or together is None:
            continue
        computing, idle = mean_mhz([item], "AB", "computing"), mean_mhz([item], "S", "idle")
        moved = abs(together / alone - 1) > MOVED
        text = (
            f"{kernel_name(item.kernel)} on {cores_text(item.n)}{condition_text(item)}, "
            f"{size_text(item.size)} messages: the frequency of the communication core "
            f"is {alone:.0f} MHz alone and {together:.0f} MHz beside computation "
            f"(it {'changes' if moved else 'does not change'})"
        )
        text += "" if computing is None else f"; that of computing cores is {computing:.0f} MHz"
        text += "." if idle is None else f"; that of idle cores, while all sleep, is {idle:.0f} MHz."
        values: Values = {
            "comm_alone": alone,
            "comm_together": together,
            "computing": computing,
            "asleep": idle,
        }
        yield Finding(key=f"mhz-{item.id}", level="note", text=text, values=values, points=(item.id,))


def _constants(points: Sequence[PointResult]) -> Iterator[Finding]:
    """What constant frequencies change, between the lowest and the highest set, the other one unchanged."""
    for (what, key), (other, fixed) in permutations(SIDES.items(), 2):
        chosen = [item for item in points if getattr(item, key) and item.comm.alone is not None]
        groups: dict[tuple[int, int | None], list[PointResult]] = {}
        for item in sorted(chosen, key=attrgetter(key)):
            groups.setdefault((item.size, getattr(item, fixed)), []).append(item)
        for (size, held), group in groups.items():
            low, high = group[0], group[-1]
            if low is high or low.comm.alone is None or high.comm.alone is None:
                continue
            at = "" if held is None else f" at an {other} frequency of {held / 1000:.0f} MHz"
            change = high.comm.alone.median / low.comm.alone.median - 1
            text = (
                f"Raising the constant {what} frequency from {getattr(low, key) / 1000:.0f} to "
                f"{getattr(high, key) / 1000:.0f} MHz{at} changes the {low.metric} of "
                f"{size_text(size)} messages from {low.comm.alone.median:.4g} to "
                f"{high.comm.alone.median:.4g} {low.comm.alone.unit} ({change:+.0%})."
            )
            name = f"constant-{what}-{size}" + ("" if held is None else f"-{other}{held}")
            values: Values = {"size": size, "change": change, f"{other}_khz": held}
            ids = tuple(item.id for item in group)
            yield Finding(key=name, level="note", text=text, values=values, points=ids)


def _not_held(points: Sequence[PointResult]) -> Iterator[Finding]:
    """Frequencies that the driver accepted and the cores did not keep."""
    for item in points:
        measured = mean_mhz([item], "B", "communication")
        if item.core_khz is None or measured is None:
            continue
        wanted = item.core_khz / 1000
        if abs(measured / wanted - 1) > MOVED:
            text = (
                f"The communication core ran at {measured:.0f} MHz while its frequency was set to "
                f"{wanted:.0f} MHz ({size_text(item.size)} messages): the processor does not hold it."
            )
            values: Values = {"set": wanted, "measured": measured}
            yield Finding(key=f"not-held-{item.id}", level="n/a", text=text, values=values, points=(item.id,))


PHASES = {"A": "computation alone", "B": "communication alone", "S": "sleep", "AB": "both together"}
MOST_LINES = 4
"""Cores of a role that get a line each; more are drawn as their mean, and a band from lowest to highest."""


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Latency and bandwidth over the size at constant frequencies (Figures 1a, 1b); network and computation
    over n (Figure 3a), by rates and by durations; frequencies over time, phase after phase, with the fewest,
    the middle and the most cores (Figures 2, 3b, 3c).
    """
    points = usable(results)
    constants = [item for item in points if is_constant(item)]
    beside = [item for item in points if item.n]
    drawn = [figure for group in grouped(constants, _place).values() for figure in _constant(group)]
    for case, group in grouped(beside, case_of).items():
        what = f"Network {group[0].metric} ({size_text(group[0].size)}) and {kernel_name(group[0].kernel)}"
        rates = side_by_side(
            case_key("frequency", [part for part in case if part is not None]),
            what + condition_text(group[0]),
            CORES,
            group,
            cores_of,
            comm=f"network {group[0].metric}",
            comp_transform=per_core,
        )
        drawn += with_durations(rates, group, cores_of)
    traced = grouped([item for item in points if item.payload.traces], case_of)
    return (*drawn, *(_traces(item) for group in traced.values() for item in spread(group)))


def _place(item: PointResult) -> tuple[int, int, bool | None, str | None]:
    return item.comm_node, item.comm_core, item.turbo, item.governor


def _constant(group: Sequence[PointResult]) -> Iterator[Figure]:
    """Figure 1a: latency, and 1b: bandwidth; a curve for each combination of frequencies."""
    place = [part for part in _place(group[0]) if part is not None]
    for name, label, transform in (
        ("latency", "Network latency (µs)", in_microseconds),
        ("bandwidth", "Network bandwidth (MB/s)", as_bandwidth),
    ):
        yield Figure(
            name=case_key(f"constant-{name}", place),
            title=f"Network {name} alone at constant frequencies",
            x=SIZES,
            left=Axis(label=label, scale="log10"),
            series=constant_curves(group, transform),
            caption=f"{RULE} Nothing computes.",
        )


def constant_curves(points: Sequence[PointResult], transform: Transform) -> tuple[Series, ...]:
    """The network alone over the message size, a curve for each combination of constant frequencies."""
    curves = []
    for (core, uncore), group in grouped(points, lambda item: (item.core_khz, item.uncore_khz)).items():
        held = [f"{name} {khz / 1000:.0f} MHz" for name, khz in (("core", core), ("uncore", uncore)) if khz]
        label = ", ".join(held)
        curves.append(
            curve(group, "comm", "alone", size_of, name="", axis="left", transform=transform, label=label)
        )
    return tuple(line for line in curves if line is not None)


class _TraceLine(NamedTuple):
    """A curve over time: one trace, or the mean, lowest and highest of several."""

    name: str
    role: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


def _traces(item: PointResult) -> Figure:
    """One point's traces on one time axis, each phase behind the one before."""
    lines: dict[str, _TraceLine] = {}
    start, order = 0.0, []
    for phase in dict.fromkeys(trace.phase for trace in item.payload.traces):
        traces = [trace for trace in item.payload.traces if trace.phase == phase]
        for role, group in grouped(traces, lambda trace: trace.role).items():
            for name, members in _members(role, group):
                line = lines.setdefault(name, _TraceLine(name, role, [], [], [], []))
                _extend(line, members, start)
        start += max(len(trace.khz) * trace.interval_s for trace in traces)
        order.append(PHASES.get(phase, phase))
    title = f"Frequencies: {kernel_name(item.kernel)} on {cores_text(item.n)}"
    return Figure(
        name=f"trace-{item.id}",
        title=f"{title}, {size_text(item.size)} messages{condition_text(item)}",
        x=Axis(label="Time (s)"),
        left=Axis(label="Frequency (MHz)"),
        series=tuple(
            _series(line) for line in sorted(lines.values(), key=lambda line: (line.role, line.name))
        ),
        caption=f"Phases in turn: {', '.join(order)}. A band goes from the lowest to the highest core.",
    )


def _members(role: str, group: Sequence[Trace]) -> Iterator[tuple[str, Sequence[Trace]]]:
    """What is drawn of a role: each core, or all of them as one."""
    if role == "uncore" or len(group) <= MOST_LINES:
        for trace in group:
            yield (f"uncore {trace.part}" if trace.part else f"core {trace.core} ({role})"), [trace]
    else:
        yield f"{len(group)} {role} cores", group


def _extend(line: _TraceLine, members: Sequence[Trace], start: float) -> None:
    for step in range(min(len(trace.khz) for trace in members)):
        values = [trace.khz[step] / 1000 for trace in members]
        line.x.append(start + step * members[0].interval_s)
        line.y.append(fmean(values))
        line.low.append(min(values))
        line.high.append(max(values))


def _series(line: _TraceLine) -> Series:
    band = line.low != line.high
    side = {"communication": "communication", "uncore": None}.get(line.role, "computation")
    return Series(
        name=line.name,
        side="communication" if side == "communication" else "computation" if side else None,
        style="undecided" if line.role == "idle" else "line",
        x=tuple(line.x),
        y=tuple(line.y),
        low=tuple(line.low) if band else (),
        high=tuple(line.high) if band else (),
        drawn="smooth",
        value="mean",
        band="lowest to highest core",
    )
