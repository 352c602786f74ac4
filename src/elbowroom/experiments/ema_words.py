"""What extraneous accesses do, in words: rises of the floor, the side that hurts more, the observations of
Tan and Jarvis (2012), misses.
"""

from __future__ import annotations

from typing import Literal

from elbowroom.draw.numbers import number
from elbowroom.experiments.ema_cases import Case, kind_text, region_text, who_text
from elbowroom.experiments.wording import Values, size_text
from elbowroom.stats import sides
from elbowroom.stats.floors import Estimate, Region
from elbowroom.stats.result import Finding
from elbowroom.stats.sides import never_below

RISEN = 0.05
"""A floor that lies so far above that without accesses shows interference: as what keeps less than 0.95."""

LIMITS = (1.0, 2.0)
"""us; the paper tells from how many bytes on the average never falls below them (section 3.1)."""


def share(found: Estimate) -> str:
    """`+45.1 % (44.0 to 46.2)`."""
    return f"{found.value:+.1%} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def nanoseconds(found: Estimate) -> str:
    """`+12 ns (10 to 14)`, of us."""
    return f"{1e3 * found.value:+.3g} ns ({1e3 * found.low:+.3g} to {1e3 * found.high:+.3g})"


def rises(case: Case) -> Finding:
    """By how much the floor rises past each cache, and what that without accesses does meanwhile."""
    without, *after = case.regions
    parts = [_rise_text(case, row) for row in after]
    values: Values = {"who": case.who, "floor_without_us": without.floor}
    for row in after:
        values |= _rise_values(row)
    missing = [level for level in case.levels if not any(row.name == f"past L{level}" for row in after)]
    parts += [f"{region_text(case, f'past L{level}')} nothing was accessed" for level in missing]
    if not case.levels:
        parts.append("hwloc reports no cache that the accesses share with the messages")
    text = (
        f"{who_text(case)}, {kind_text(case)}: floor of the one-way time {number(without.floor)} us without "
        f"accesses; {', '.join(parts)}.{_control_text(after)}"
    )
    risen = [row for row in after if row.over is not None and row.over.low > 0 and row.over.value > RISEN]
    return Finding(
        key=f"rise-{case.key}",
        level="interference" if risen and case.who != "none" else "quiet",
        text=text,
        values=values,
        points=tuple(item.id for item in case.windows),
    )


def _rise_text(case: Case, row: Region) -> str:
    """Of the first region how far it lies over no accesses, of the others how far over the one before."""
    assert row.rise is not None
    return f"{region_text(case, row.name)} {share(row.rise)}"


def _rise_values(row: Region) -> Values:
    name = row.name.replace(" ", "_")
    found: Values = {f"{name}_floor_us": row.floor}
    for what, estimate in (("over", row.over), ("rise", row.rise), ("control", row.control)):
        if estimate is not None:
            found |= {
                f"{name}_{what}": estimate.value,
                f"{name}_{what}_low": estimate.low,
                f"{name}_{what}_high": estimate.high,
            }
    return found


def _control_text(after: list[Region]) -> str:
    """What the floor of the control did from region to region."""
    controls = [(row.name, row.control) for row in after if row.control is not None]
    if not controls:
        return ""
    said = ", ".join(f"{name} {share(control)}" for name, control in controls)
    return f" The control among them, without accesses: {said}."


def which_side(sender: Case, receiver: Case) -> Finding:
    """Which side's accesses delay a message more, by medians over windows of the same sizes."""
    found = sides.difference(sender.windows, receiver.windows, sender.levels)
    key = f"side-{receiver.key}"
    if found is None:
        text = "Which side hurts more: no sizes were accessed by both sides."
        return Finding(key=key, level="n/a", text=text)
    said = {
        "confirmed": "The receiver's accesses hurt more here",
        "refuted": "The sender's accesses hurt more here",
        "undecided": "Neither side's accesses surely hurt more here",
    }[sides.sign(found.median)]
    where = ", ".join(f"{name} {nanoseconds(one)}" for name, one in found.regions.items())
    text = (
        f"{said} ({kind_text(sender)}): what the receiver's add to the median one-way time, less what as "
        f"many bytes of the sender's add, is {nanoseconds(found.median)} over {found.windows} windows "
        f"({where}); lower bounds of averages differ by {nanoseconds(found.lower)}, upper ones by "
        f"{nanoseconds(found.upper)}. "
        f"Variance of {_scatter_text(sender)}; of {_scatter_text(receiver)}."
    )
    values: Values = {"windows": found.windows}
    for name in ("median", "lower", "upper", "average"):
        estimate: Estimate = getattr(found, name)
        values |= {
            f"{name}_us": estimate.value,
            f"{name}_low_us": estimate.low,
            f"{name}_high_us": estimate.high,
        }
    ids = tuple(item.id for case in (sender, receiver) for item in case.windows)
    return Finding(key=key, level="note", text=text, values=values | _scatters(sender, receiver), points=ids)


def _scatter_text(case: Case) -> str:
    found = case.scatter
    if found is None:
        return f"{case.who}: one size only"
    return (
        f"averages after the {case.who}'s ({number(found.average.value)} us): {variance(found.variance)}, "
        f"{variance(found.within)} inside a window"
    )


def variance(found: Estimate) -> str:
    """`0.6 us² (0.5 to 0.7)`."""
    return f"{number(found.value, 3)} us² ({number(found.low, 3)} to {number(found.high, 3)})"


def _scatters(*both: Case) -> Values:
    values: Values = {}
    for case in both:
        if case.scatter is not None:
            values |= {
                f"{case.who}_average_us": case.scatter.average.value,
                f"{case.who}_variance_us2": case.scatter.variance.value,
                f"{case.who}_variance_within_us2": case.scatter.within.value,
            }
    return values


def first_observation(case: Case) -> Finding:
    """`the lower bound rises with the bytes accessed`: confirmed, refuted or undecided."""
    found = sides.first_observation(case.windows, case.regions)
    trend = "too few windows for a trend" if found.trend is None else _tau(found.trend)
    rise = "" if found.rise is None else f"; the floor lies {share(found.rise)} over that without accesses"
    control = "" if found.control is None else f", which itself changes by {share(found.control)}"
    text = (
        "First observation of Tan and Jarvis, the lower bound rises with the bytes accessed: "
        f"{found.verdict} for {who_text(case).lower()} ({kind_text(case)}): {trend}{rise} where "
        f"most is accessed{control}."
    )
    if found.moved:
        text += " The floor without accesses moved too far for a verdict."
    values: Values = {"who": case.who, "verdict": found.verdict}
    if found.trend is not None:
        values["tau"] = found.trend.value
    for limit in LIMITS:
        values[f"bytes_beyond_which_never_below_{limit:g}_us"] = never_below(case.windows, limit)
    ids = tuple(item.id for item in case.windows)
    return Finding(key=f"first-{case.key}", level="note", text=text, values=values, points=ids)


def _tau(trend: Estimate) -> str:
    return f"Kendall's tau {trend.value:.2f} ({trend.low:.2f} to {trend.high:.2f})"


def second_observation(sender: Case, receiver: Case) -> Finding:
    """`the receiver's accesses are more harmful, at the very least less predictable`, each part apart."""
    found = sides.difference(sender.windows, receiver.windows)
    key = f"second-{receiver.key}"
    if found is None:
        text = "Second observation of Tan and Jarvis: n/a, no sizes were accessed by both sides."
        return Finding(key=key, level="n/a", text=text)
    harm, scatter = sides.sign(found.median), sides.sign(found.within)
    text = (
        f"Second observation of Tan and Jarvis ({kind_text(sender)}): that the receiver's accesses are more "
        f"harmful is {harm} ({nanoseconds(found.median)}), that they make the one-way time less predictable "
        f"is {scatter} (variance of averages inside a window {_times(found.within)} the sender's, over all "
        f"sizes {_times(found.variances)})."
    )
    values: Values = {"more_harmful": harm, "less_predictable": scatter}
    ids = tuple(item.id for case in (sender, receiver) for item in case.windows)
    return Finding(key=key, level="note", text=text, values=values, points=ids)


def _times(one: Estimate) -> str:
    return f"{1 + one.value:.3g} ({1 + one.low:.3g} to {1 + one.high:.3g}) times"


def open_question(case: Case) -> Finding:
    """The source that the paper could not test: processes that are not of the pair, at the same time."""
    last = case.regions[-1]
    text = "The paper's open question, accesses of processes beside the pair: "
    if last.over is None:
        return Finding(key=f"open-{case.key}", level="n/a", text=f"{text}nothing was measured.")
    hurt = last.over.low > 0 and last.over.value > RISEN
    said = "they raise" if hurt else "they do not raise"
    text += (
        f"{said} the floor ({share(last.over)} with {size_text(last.low)} or more by {case.n} of them, "
        f"{kind_text(case)})."
    )
    level: Literal["interference", "quiet"] = "interference" if hurt else "quiet"
    ids = tuple(item.id for item in case.windows)
    return Finding(key=f"open-{case.key}", level=level, text=text, values={"n": case.n}, points=ids)


def misses(case: Case) -> list[Finding]:
    """Where the misses of each level stop rising, and whether the one-way time follows those of the last."""
    found = []
    for rank in ("sender", "receiver"):
        lines = sides.miss_lines(case.windows, rank)
        if not lines:
            continue
        source = lines[0].source
        plateaus = ", ".join(f"{line.level} {_plateau(line)}" for line in lines)
        follows = sides.follows(case.windows, lines[-1])
        text = (
            f"Misses of a message at the {rank}, {source}, {who_text(case).lower()} ({kind_text(case)}): "
            f"they reach nine tenths of their most from: {plateaus}."
        )
        values: Values = {"source": source, "rank": rank}
        for line in lines:
            values |= {f"{line.level}_most": max(line.lower), f"{line.level}_plateau_bytes": line.plateau}
        if follows is not None:
            text += (
                f" The lower bound of the one-way time correlates with {lines[-1].level}'s by {follows:.2f}."
            )
            values["correlation"] = follows
        ids = tuple(item.id for item in case.windows)
        key = f"misses-{rank}-{case.key}"
        found.append(Finding(key=key, level="note", text=text, values=values, points=ids))
    return found


def _plateau(line: sides.MissLine) -> str:
    if line.plateau is None:
        return "none missed"
    return f"{size_text(line.plateau)} ({max(line.lower):.3g})"
