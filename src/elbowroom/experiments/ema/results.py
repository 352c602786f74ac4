"""What extraneous accesses did: rises of the floor, the side that hurts more, the observations of Tan and
Jarvis (2012), misses; as a table, floors between caches in place of hundreds of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from elbowroom.draw.figure import TextTable
from elbowroom.experiments.common.sentences import Claim, Values, interval_values, nothing, size_text
from elbowroom.experiments.common.tables import Column, table
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases, kind_text, region_text, who_text
from elbowroom.experiments.ema.floors import CacheRegion
from elbowroom.experiments.ema.message_model import MessageModel
from elbowroom.experiments.ema.sides import never_below
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number, span
from elbowroom.results.judgement import above
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Interval

RISEN = 0.05
"""A floor that lies so far above that without accesses shows interference: as what keeps less than 0.95."""

SECOND = "second observation of Tan and Jarvis"

LIMITS = (1.0, 2.0)
"""us; the paper gives the bytes beyond which the average never falls below them (section 3.1)."""

TIMES = (1.0, 1.1, 1.25)
"""The same as multiples of the average without accesses, for machines that are faster or slower."""


def share(estimate: Interval) -> str:
    """`+45.1% (+44.0 to +46.2)`."""
    return f"{percent(estimate.value)}% ({percent(estimate.low)} to {percent(estimate.high)})"


def percent(value: float) -> str:
    """`+45.1` of 0.451, `+1039` of 10.39, `+6.3e+06` of more than a hundredfold."""
    if abs(value) >= 100:
        return f"{100 * value:+.1e}"
    return f"{100 * value:+.0f}" if abs(value) >= 10 else f"{100 * value:+.1f}"


def nanoseconds(estimate: Interval) -> str:
    """`+12 ns (+10 to +14)`, of us; above a microsecond in us."""
    longest = max(abs(estimate.low), abs(estimate.high))
    factor, unit = (1e3, "ns") if longest < 1 else (1.0, "us")
    value, low, high = (f"{factor * end:+.3g}" for end in (estimate.value, estimate.low, estimate.high))
    return f"{value} {unit} ({low} to {high})"


def rises(case: AccessCase) -> Finding:
    """By how much the floor rises past each cache, and what that without accesses does meanwhile."""
    without, *after = case.regions
    values: Values = {"who": case.who, "floor_without_us": without.floor}
    for row in after:
        values |= _rise_values(row)
    missing = [
        region_text(case, f"past L{level}")
        for level in case.levels
        if not any(row.name == f"past L{level}" for row in after)
    ]
    changes = ", then by ".join(_rise_text(case, row) for row in after)
    text = (
        f"{who_text(case)}, {kind_text(case)}: without accesses the floor of the one-way time is "
        f"{number(without.floor)} us; it changes by {changes}."
    )
    if missing:
        text += f" Nothing was accessed {', '.join(missing)}."
    if not case.levels:
        text += " hwloc reports no cache that the accesses share with the messages."
    text += _control_text(after)
    risen = [row for row in after if row.over is not None and row.over.low > 0 and row.over.value > RISEN]
    return Finding(
        key=f"rise-{case.key}",
        level="interference" if risen and case.who != "none" else "quiet",
        text=text,
        values=values,
        points=tuple(item.id for item in case.windows),
    )


def _rise_text(case: AccessCase, row: CacheRegion) -> str:
    """Of the first region how far it lies over no accesses, of the others how far over the one before."""
    assert row.rise is not None
    return f"{share(row.rise)} {region_text(case, row.name)}"


def _rise_values(row: CacheRegion) -> Values:
    name = row.name.replace(" ", "_")
    values: Values = {f"{name}_floor_us": row.floor}
    for what, estimate in (("over", row.over), ("rise", row.rise), ("control", row.control)):
        values |= interval_values(estimate, f"{name}_{what}", f"{name}_{what}_")
    return values


def _control_text(after: list[CacheRegion]) -> str:
    """What the floor of the control did from region to region."""
    controls = [(row.name, row.control) for row in after if row.control is not None]
    if not controls:
        return ""
    changes = ", ".join(f"{name} {share(control)}" for name, control in controls)
    return f" Meanwhile the floor without accesses changes: {changes}."


def which_side(sender: AccessCase, receiver: AccessCase) -> Finding:
    """Which side's accesses delay a message more, by medians over windows of the same sizes."""
    difference = sides.difference(sender.windows, receiver.windows, sender.levels)
    key = f"side-{receiver.key}"
    if difference is None:
        text = "It is not known which side hurts more: no sizes were accessed by both sides."
        return Finding(key=key, level="n/a", text=text)
    head = {
        "confirmed": "The receiver's accesses hurt more here",
        "refuted": "The sender's accesses hurt more here",
    }.get(above(difference.median), "Neither side's accesses hurt significantly more here")
    where = ", ".join(f"{name} {nanoseconds(estimate)}" for name, estimate in difference.regions.items())
    text = (
        f"{head} ({kind_text(sender)}). Compared with as many bytes of the sender's, the receiver's accesses "
        f"change the median one-way time by {nanoseconds(difference.median)} over {difference.windows} "
        f"windows ({where}), the lower bounds of averages by {nanoseconds(difference.lower)} and the upper "
        f"bounds by {nanoseconds(difference.upper)}. {_scatter_text(sender)} {_scatter_text(receiver)}"
    )
    values: Values = {"windows": difference.windows}
    for name in ("median", "lower", "upper", "average", "spread"):
        estimate: Interval = getattr(difference, name)
        values |= {
            f"{name}_us": estimate.value,
            f"{name}_low_us": estimate.low,
            f"{name}_high_us": estimate.high,
        }
    ids = tuple(item.id for case in (sender, receiver) for item in case.windows)
    return Finding(key=key, level="note", text=text, values=values | _scatters(sender, receiver), points=ids)


def _scatter_text(case: AccessCase) -> str:
    scatter = case.scatter
    if scatter is None:
        return f"The {case.who} accessed one size only."
    return (
        f"Averages after the {case.who}'s accesses ({number(scatter.average.value)} us) have a variance of "
        f"{variance(scatter.variance)}."
    )


def variance(estimate: Interval) -> str:
    """`0.6 us² (0.5 to 0.7)`."""
    return f"{number(estimate.value, 3)} us² ({number(estimate.low, 3)} to {number(estimate.high, 3)})"


def _scatters(*both: AccessCase) -> Values:
    values: Values = {}
    for case in both:
        if case.scatter is not None:
            values |= {
                f"{case.who}_average_us": case.scatter.average.value,
                f"{case.who}_variance_us2": case.scatter.variance.value,
            }
    return values


def first_observation(case: AccessCase) -> Finding:
    """Whether the lower bound rises with the bytes accessed."""
    observation = sides.first_observation(case.windows, case.regions)
    parts = [
        "there are too few windows for a trend" if observation.trend is None else _tau(observation.trend)
    ]
    if observation.rise is not None:
        parts.append(f"where most is accessed, the floor changes by {share(observation.rise)}")
    if observation.control is not None:
        parts.append(f"without accesses it changes by {share(observation.control)}")
    if observation.moved:
        parts.append("that is too much for a verdict")
    claim = Claim(
        statement="the lower bound rises with the bytes accessed (first observation of Tan and Jarvis)",
        judgement=observation.verdict,
        why="; ".join(parts),
    )
    values: Values = {"who": case.who}
    if observation.trend is not None:
        values["tau"] = observation.trend.value
    for limit in LIMITS:
        values[f"never_below_{limit:g}_us_beyond_bytes"] = never_below(case.windows, limit)
    if case.scatter_without is not None:
        for times in TIMES:
            limit = times * case.scatter_without.average.value
            values[f"never_below_{times:g}_times_without_beyond_bytes"] = never_below(case.windows, limit)
    ids = tuple(item.id for item in case.windows)
    before = f"{who_text(case)} ({kind_text(case)}):"
    return claim.finding(f"first-{case.key}", before=before, values=values, points=ids)


def _tau(trend: Interval) -> str:
    return f"Kendall's tau is {trend.value:.2f} ({trend.low:.2f} to {trend.high:.2f})"


def second_observation(sender: AccessCase, receiver: AccessCase) -> Finding:
    """Whether the receiver's accesses are more harmful, or at least less predictable, each part apart."""
    difference = sides.difference(sender.windows, receiver.windows)
    key = f"second-{receiver.key}"
    if difference is None:
        return Claim(
            statement=f"the receiver's accesses are more harmful ({SECOND})",
            judgement="not tested",
            why="no sizes were accessed by both sides",
        ).finding(key)
    harm, scatter, paper = map(above, (difference.median, difference.spread, difference.variances))
    harmful = Claim(
        statement=f"the receiver's accesses are more harmful ({SECOND})",
        judgement=harm,
        why=f"they change the median by {nanoseconds(difference.median)}",
    )
    scattered = Claim(
        statement="they make the one-way time less predictable",
        judgement=scatter,
        why=f"d9 - d1 changes by {nanoseconds(difference.spread)}",
    )
    measure = Claim(
        statement="they do so by the paper's measure, the variance of averages,",
        judgement=paper,
        why=_times(difference.variances),
    )
    return harmful.finding(
        key,
        before=f"{kind_text(sender)[:1].upper()}{kind_text(sender)[1:]}:",
        after=f"{scattered.text} {measure.text}",
        values={"more_harmful": harm, "less_predictable": scatter, "larger_variance": paper},
        points=(item.id for case in (sender, receiver) for item in case.windows),
    )


def _times(ratio: Interval | None) -> str:
    if ratio is None:
        return ""
    return f"it is {1 + ratio.value:.3g} ({1 + ratio.low:.3g} to {1 + ratio.high:.3g}) times the sender's"


def open_question(case: AccessCase) -> Finding:
    """The source that the paper could not test: processes that are not of the pair, at the same time."""
    last = case.regions[-1]
    text = "The paper leaves open what accesses of processes beside the pair do: "
    if last.over is None:
        return Finding(key=f"open-{case.key}", level="n/a", text=f"{text}nothing was measured.")
    hurt = last.over.low > 0 and last.over.value > RISEN
    verb = "raise" if hurt else "do not raise"
    text += (
        f"{case.n} of them {verb} the floor of {kind_text(case)} ({share(last.over)} with "
        f"{size_text(last.low)} or more)."
    )
    level: Literal["interference", "quiet"] = "interference" if hurt else "quiet"
    ids = tuple(item.id for item in case.windows)
    return Finding(key=f"open-{case.key}", level=level, text=text, values={"n": case.n}, points=ids)


def message_model(case: AccessCase) -> list[Finding]:
    """What a message costs that finds its lines outside of each cache, and how well that predicts messages
    that the model was not fitted to (the outlook of the paper).
    """
    model = case.message_model
    if model is None:
        return []
    costs = ", ".join(_cost_text(case, model, level) for level in case.levels)
    better = above(model.better)
    claim = Claim(
        statement="a term for memory accesses predicts messages better (outlook of Tan and Jarvis)",
        judgement=better,
        why=(
            f"windows that it was not fitted to are off by {1e3 * model.error:.3g} ns on average, and by "
            f"{1e3 * model.constant_error:.3g} ns without the term"
        ),
    )
    values: Values = {
        "base_us": model.base,
        "error_us": model.error,
        "constant_error_us": model.constant_error,
    }
    values |= {f"{level}_us": cost for level, cost in model.costs.items()}
    before = f"{who_text(case)} ({kind_text(case)}): {number(model.base)} us, and {costs}."
    ids = tuple(item.id for item in case.windows)
    return [claim.finding(f"model-{case.key}", before=before, values=values, points=ids)]


def _cost_text(case: AccessCase, model: MessageModel, level: int) -> str:
    """Of a cache that nothing outgrew what the most bytes cost: the model may not hold beyond them."""
    cost, edge = 1e3 * model.costs[f"L{level}"], case.levels[level]
    if edge <= case.most:
        return f"{cost:.3g} ns once {size_text(edge)} outgrow L{level}"
    return (
        f"{cost * case.most / edge:.3g} ns of L{level} at {size_text(case.most)}, the most that was accessed"
    )


def misses(case: AccessCase) -> list[Finding]:
    """Where the misses of each level stop rising, and whether the one-way time follows those of the last."""
    findings = []
    for rank in ("sender", "receiver"):
        lines = sides.miss_lines(case.windows, rank)
        if not any(max(line.lower) for line in lines):
            continue
        last = [line for line in lines if max(line.lower)][-1]
        counts = ", ".join(_plateau(line) for line in lines)
        text = f"{who_text(case)} ({kind_text(case)}): a message causes {counts} at the {rank}."
        beside = [line for line in sides.miss_lines(case.windows, rank, models=True) if line not in lines]
        if beside:
            text += f" A model of the caches has {', '.join(map(_plateau, beside))}. {EVENTS}"
        values: Values = {"rank": rank} | {f"{line.level}_modelled_most": max(line.lower) for line in beside}
        for line in lines:
            values |= {f"{line.level}_source": line.source}
            values |= {f"{line.level}_most": max(line.lower), f"{line.level}_plateau_bytes": line.plateau}
        follows = sides.follows(case.windows, last)
        if follows is not None:
            text += (
                f" The lower bound of the one-way time correlates with {last.level} misses: "
                f"{follows.value:.2f} ({follows.text()})."
            )
            values["correlation"] = follows.value
        ids = tuple(item.id for item in case.windows)
        key = f"misses-{rank}-{case.key}"
        findings.append(Finding(key=key, level="note", text=text, values=values, points=ids))
    return findings


def work(case: AccessCase) -> list[Finding]:
    """Instructions, cycles and writes of a message, where they were counted: after the fewest and the most
    accesses.
    """
    findings = []
    for rank in ("sender", "receiver"):
        counts: dict[str, list[float]] = {}
        for series in sides.all_series(case.windows):
            for one in series.work:
                if one.rank == rank:
                    counts.setdefault(one.name, []).extend(one.count)
        if not counts:
            continue
        values: Values = {"rank": rank, "source": "measured"}
        parts = []
        for name, numbers in counts.items():
            values |= {f"{name}_first": numbers[0], f"{name}_last": numbers[-1]}
            parts.append(f"{number(numbers[0], 3)} to {number(numbers[-1], 3)} {name.replace('_', ' ')}")
        text = (
            f"{who_text(case)} ({kind_text(case)}): from the fewest to the most accesses, the call for a "
            f"message takes {', '.join(parts)} at the {rank} (measured)."
        )
        ids = tuple(item.id for item in case.windows)
        findings.append(
            Finding(key=f"work-{rank}-{case.key}", level="note", text=text, values=values, points=ids)
        )
    return findings


EVENTS = (
    "Lines that were prefetched in time are no misses, and where no event of this processor is known, counts "
    "of L1 are of reads only."
)
"""Why the counts may be below the model's."""


def _plateau(line: sides.MissLine) -> str:
    if line.plateau is None:
        return f"no {line.level} misses ({line.source})"
    most = f"up to {max(line.lower):.3g} {line.level} misses"
    return f"{most} ({line.source}; nine tenths of that from {size_text(line.plateau)} on)"


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Rises of the floor past each cache, the side that hurts more, the paper's claims, and misses."""
    every = cases(results, machine)
    findings = [rises(case) for case in every]
    for pair in _pairs(every):
        findings += [
            which_side(*pair),
            *(first_observation(case) for case in pair),
            second_observation(*pair),
        ]
    paired = {id(case) for pair in _pairs(every) for case in pair}
    findings += [
        first_observation(case) for case in every if case.who not in ("none",) and id(case) not in paired
    ]
    findings += [finding for case in every if case.who != "none" for finding in message_model(case)]
    findings += [open_question(case) for case in every if case.who == "bystanders"]
    findings += [finding for case in every for finding in (*misses(case), *work(case))]
    return tuple(findings) or (nothing("ema", "Extraneous accesses"),)


def _pairs(every: Sequence[AccessCase]) -> list[tuple[AccessCase, AccessCase]]:
    """The sender's and the receiver's accesses of the same kind."""
    return [
        (sender, receiver)
        for sender in every
        for receiver in every
        if (sender.who, receiver.who) == ("sender", "receiver") and sender.alike(receiver)
    ]


MEANING = (
    "One-way times in us. floor: the fastest message of a size, median over sizes; rise: of the floor over "
    "the row above; control: the same of the messages without accesses among them."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:
    """A table for each case: floors between caches in place of hundreds of windows."""
    return tuple(_table(case) for case in cases(results, machine))


def _table(case: AccessCase) -> TextTable:
    averages = _averages(case)
    columns: tuple[Column[CacheRegion], ...] = (
        Column("accesses", lambda row: region_text(case, row.name), left=True),
        Column("floor", lambda row: number(row.floor, 4)),
        Column("median", lambda row: number(row.median, 4)),
        Column("d1", lambda row: number(row.d1, 4)),
        Column("d9", lambda row: number(row.d9, 4)),
        Column("rise", lambda row: "" if row.rise is None else f"{percent(row.rise.value)}%"),
        Column("95 %", lambda row: _ends(row.rise)),
        Column("control", lambda row: _ends(row.control)),
    )
    return table(
        f"{who_text(case)}, {kind_text(case)}, {case.sizes} sizes",
        case.regions,
        columns,
        below=(averages,) if averages else (),
        legend=MEANING,
        points=tuple(item.id for item in case.windows),
    )


def _ends(estimate: Interval | None) -> str:
    """Without a plus: the table has 80 columns."""
    if estimate is None:
        return ""
    return span(percent(estimate.low).lstrip("+"), percent(estimate.high).lstrip("+"))


def _averages(case: AccessCase) -> str:
    """Averages and their variance, with and without."""
    after, without = case.scatter, case.scatter_without
    if after is None or without is None:
        return ""
    return (
        f"Averages of the sizes: {number(after.average.value, 4)} us on average, variance "
        f"{number(after.variance.value, 3)} us² ({number(after.variance.low, 3)} to "
        f"{number(after.variance.high, 3)}); without accesses {number(without.average.value, 4)} us, "
        f"{number(without.variance.value, 3)} us²."
    )
