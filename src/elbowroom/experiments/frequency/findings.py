"""What changed with frequencies: beside computation, and at constant frequencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from operator import attrgetter
from typing import Literal

from elbowroom.experiments.common.panels import cores_of
from elbowroom.experiments.common.sentences import (
    Values,
    cores_text,
    grouped,
    hit,
    kept_text,
    kernel_name,
    nothing,
    size_text,
    usable,
)
from elbowroom.experiments.frequency.cases import case_of, condition_text, is_constant, spread
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Finding, PointResult, mean_mhz

MOVED = 0.02  # docs/design/method.md, rule 14: more than 2 % is a change of frequency
GAINED = 0.02  # the paper's "slightly better" is 1.7 to 1.52 us; less than this is called unchanged
SIDES = {"core": "core_khz", "uncore": "uncore_khz"}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """What communication kept with few, half, all cores and where a side suffers, by kernel and size; then
    the frequencies, if they were readable.
    """
    findings = []
    points = usable(results)
    for group in grouped([item for item in points if item.n], case_of).values():
        told = [item for item in group if item in spread(group) or hit(item, "comm") or hit(item, "comp")]
        findings += [_effect(item) for item in sorted(told, key=cores_of)]
        findings += list(_frequencies(group))
    constants = [item for item in points if is_constant(item)]
    findings += list(_constants(constants))
    findings += list(_not_held(constants))
    if points and not any(item.traces for item in points):
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
        f"{size_text(item.size)} messages {change}: it keeps {kept_text(kept)}; "
        f"the computation {'suffers' if comp else 'is unchanged'}: it keeps {kept_text(item.comp.kept)}."
    )
    values: Values = {
        "n": item.n,
        "comm_kept": kept.value if kept else None,
        "comp_kept": item.comp.kept.value if item.comp.kept else None,
    }
    return Finding(key=f"effect-{item.id}", level=level, text=text, values=values, points=(item.id,))


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
