"""An explanation in words: losses, their shares, where data are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from elbowroom import quantities
from elbowroom.explain.explanation import (
    SIDE_NAMES,
    ChainStep,
    Contrast,
    ExplainedPoint,
    SideLoss,
    Source,
)
from elbowroom.quantities import format_cores, format_size, percent_span, plural
from elbowroom.stats.interval import Kept

REGIMES = {
    "red": "Red: both sides lose, as they do where memory is saturated",
    "blue": "Blue: only the computation loses, although the bandwidth is far from saturated",
    "computation only": "Neither blue nor red: only the computation loses, and the bandwidth is saturated",
    "communication only": "Neither blue nor red: only the communication loses",
    "neither": "Neither blue nor red: neither side loses more than 5 %",
    "undecided": "Blue or red is undecided: a side loses more than 5 %, but its interval includes 0",
}


def lost(kept: Kept) -> Kept:
    """What is missing of all."""
    return _each_end(kept, lambda share: 1 - share)


def gained(kept: Kept) -> Kept:
    """What is kept beyond all."""
    return _each_end(kept, lambda share: share - 1)


def _each_end(kept: Kept, change: Callable[[float], float]) -> Kept:
    low, high = sorted(change(end) for end in kept.bounds) if kept.bounds else (None, None)
    return Kept(value=change(kept.value), low=low, high=high)


def percent(share: Kept) -> str:
    """`98 % (95 to 101 %)`; below 0 for a gain."""
    if share.bounds is None:
        return f"{quantities.percent(share.value, digits=0)} (no interval)"
    return percent_span(share.value, *share.bounds)


def cores_text(n: int) -> str:
    """`1 computing core`, `5 computing cores`."""
    return plural(n, "computing core")


def sources_text(sources: Sequence[Source]) -> str:
    """`cache, last-level cache or memory controller`."""
    return sources[0] if len(sources) == 1 else f"{', '.join(sources[:-1])} or {sources[-1]}"


def upper(text: str) -> str:
    """With a capital first letter; the rest stays."""
    return text[:1].upper() + text[1:]


def kernel_text(case: ExplainedPoint) -> str:
    """`triad`, `triad_cursor x8`."""
    return case.kernel if case.cursor == 1 else f"{case.kernel} x{case.cursor}"


def place_text(case: ExplainedPoint) -> str:
    """`data on node 0`, and whose data are remote."""
    same = case.comp_node == case.comm_node
    nodes = (
        f"node {case.comp_node}"
        if same
        else f"nodes {case.comp_node} (computation) and {case.comm_node} (messages)"
    )
    return f"data on {nodes}" + (f", remote for the {' and the '.join(case.remote)}" if case.remote else "")


def head(case: ExplainedPoint) -> str:
    """`triad on 17 computing cores beside 64 MB messages, data on node 0`."""
    what = f"{kernel_text(case)} on {cores_text(case.n)} beside {format_size(case.size)} messages"
    return f"{what}, {place_text(case)}"


def title(case: ExplainedPoint) -> str:
    """`triad on 17 cores, 64 MB messages, data on node 1 (remote)`."""
    cores = plural(case.n, "core")
    same = case.comp_node == case.comm_node
    nodes = f"node {case.comp_node}" if same else f"nodes {case.comp_node} and {case.comm_node}"
    far = " (remote)" if case.remote else ""
    return f"{kernel_text(case)} on {cores}, {format_size(case.size)} messages, data on {nodes}{far}"


def summary(case: ExplainedPoint) -> str:
    """What both sides lose, and the regime."""
    sides = []
    for split in case.splits:
        verb = "does not lose significantly:" if split.decided == "undecided" else "loses"
        what = f"{case.metric} of the communication" if split.side == "comm" else "computation"
        sides.append(f"the {what} {verb} {percent(lost(split.kept))}")
    text = f"For {head(case)}: {', '.join(sides)}."
    if case.regime is None or case.traffic is None or case.highest is None:
        return text
    moved = f"together they move {case.traffic:.0f} MB/s, of at most {case.highest:.0f} MB/s measured here"
    return f"{text} {REGIMES[case.regime]} ({moved})."


def largest(case: ExplainedPoint, split: SideLoss) -> str:
    """The side of the point that loses most, and how much."""
    return f"The {SIDE_NAMES[split.side]} loses most with {head(case)}: {percent(lost(split.kept))}"


def regimes(cases: Sequence[ExplainedPoint]) -> str:
    """How many of the points are of which regime; empty where no traffic is known."""
    counts: Counter[str] = Counter(case.regime for case in cases if case.regime is not None)
    if not counts:
        return ""
    order = [name for name in REGIMES if name in counts]
    listed = ", ".join(f"{counts[name]} {name}" for name in order)
    total = sum(counts.values())
    return f"Of {plural(total, 'point')} that access memory: {listed}."


def takes(split: SideLoss, step: ChainStep) -> str:
    """The loss of one side in one step."""
    side = SIDE_NAMES[split.side]
    if step.decided == "undecided":
        return f"undecided for the {side}, a loss of {percent(lost(step.kept))}"
    if step.share is None:
        why = "" if split.decided == "loses" else ", but its total loss is not significant"
        if step.decided == "loses":
            return f"the {side} loses {percent(lost(step.kept))}{why}"
        return f"the {side} gains {percent(gained(step.kept))}{why}"
    return f"{percent(step.share)} of the {side}'s loss, by itself {percent(lost(step.kept))}"


def contrast_text(case: ExplainedPoint, step: ChainStep, kernels: Mapping[str, str]) -> str:
    """`triad versus triad_llc`, `fma versus alone`."""
    if "link" in step.sources and len(step.sources) == 1:
        return f"data on node {case.comp_node} versus a local node"
    return f"{kernels[step.after]} versus {kernels.get(step.before, 'alone')}"


def shares_text(case: ExplainedPoint) -> str:
    """All steps of a point in one line, for points without a sentence for each source."""
    sides = [_shares(split) for split in case.splits if split.decided == "loses"]
    return f"{summary(case)} {upper('; '.join(sides))}." if sides else summary(case)


def _shares(split: SideLoss) -> str:
    """`the communication's loss: link 71 %, memory controller 26 %; cache undecided`."""
    shared = [step for step in split.steps if step.share is not None]
    sure = [step for step in shared if step.decided != "undecided"]
    sure.sort(key=lambda step: -(step.share.value if step.share is not None else 0.0))
    parts = [
        f"{sources_text(step.sources)} {100 * step.share.value:.0f} %"
        for step in sure
        if step.share is not None
    ]
    open_ = [sources_text(step.sources) for step in shared if step.decided == "undecided"]
    parts += [f"{', '.join(open_)} undecided"] if open_ else []
    return f"the {SIDE_NAMES[split.side]}'s loss: {', '.join(parts)}"


def added_text(contrast: Contrast) -> str:
    """The cost of a source that has a control of its own."""
    at = f"{contrast.setting} on {cores_text(contrast.n)} beside {format_size(contrast.size)} messages"
    if contrast.source == "runtime overhead" and contrast.added is not None:
        more, size = contrast.added, format_size(contrast.size)
        span = f"{more.value:.3g} {more.unit} ({more.text('.3g')})"
        text = f"messages of {size} through StarPU take {span} longer than through MPI"
        return f"{text}, a loss of {percent(lost(contrast.kept))}"
    side = SIDE_NAMES[contrast.side]
    return f"{at}: the {side} loses {percent(lost(contrast.kept))} of its speed {contrast.control}"


def command(case: ExplainedPoint, machine: str, *, virtual: bool) -> str:
    """The command line that measures every contrast of a case."""
    words = ["elbowroom run contrast", f"--sizes {format_size(case.size).replace(' ', '')}"]
    if case.kernel != "triad":
        words.append(f"--kernels fma,triad_cache,triad_llc,{case.kernel}")
    if case.comp_cores and case.comm_core >= 0:
        words.append(f"--comp-cores {format_cores(case.comp_cores)} --comm-core {case.comm_core}")
    return " ".join([*words, f"--machine {machine}"] if virtual else words)
