"""An explanation in words: shares, what keeps what, where data are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elbowroom.explain.explanation import SIDE_NAMES, Case, Contrast, Source, Split, Step
from elbowroom.plan.sizes import format_cores, format_size
from elbowroom.stats.result import Kept

REGIMES = {
    "red": "Red: both slow, as where memory saturates",
    "blue": "Blue: only the computation slows, while the bandwidth is far from saturated",
    "computation only": "Neither blue nor red: only the computation slows, but the bandwidth is saturated",
    "communication only": "Neither blue nor red: only the communication slows",
    "neither": "Neither blue nor red: no side loses more than 5 %",
    "undecided": "Blue or red is undecided: a side keeps less than 0.95, but its interval reaches 1",
}


def kept_text(kept: Kept) -> str:
    """`0.64 (0.62 to 0.66)`."""
    return f"{kept.value:.2f} ({kept.low:.2f} to {kept.high:.2f})"


def span_text(kept: Kept) -> str:
    """The same between other brackets: `0.64, 0.62 to 0.66`."""
    return f"{kept.value:.2f}, {kept.low:.2f} to {kept.high:.2f}"


def percent(share: Kept) -> str:
    """`98 % (95 to 101 %)`; below 0 for a gain."""
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def cores_text(n: int) -> str:
    """`1 computing core`, `5 computing cores`."""
    return f"{n} computing core{'' if n == 1 else 's'}"


def sources_text(sources: Sequence[Source]) -> str:
    """`cache, last-level cache or memory controller`."""
    return sources[0] if len(sources) == 1 else f"{', '.join(sources[:-1])} or {sources[-1]}"


def upper(text: str) -> str:
    """With a capital first letter; the rest stays."""
    return text[:1].upper() + text[1:]


def kernel_text(case: Case) -> str:
    """`triad`, `triad_cursor x8`."""
    return case.kernel if case.cursor == 1 else f"{case.kernel} x{case.cursor}"


def place_text(case: Case) -> str:
    """`data on node 0`, and whose data are remote."""
    same = case.comp_node == case.comm_node
    nodes = (
        f"node {case.comp_node}"
        if same
        else f"nodes {case.comp_node} (computation) and {case.comm_node} (messages)"
    )
    return f"data on {nodes}" + (f", remote for the {' and the '.join(case.remote)}" if case.remote else "")


def head(case: Case) -> str:
    """`triad on 17 computing cores beside 64 MB messages, data on node 0`."""
    what = f"{kernel_text(case)} on {cores_text(case.n)} beside {format_size(case.size)} messages"
    return f"{what}, {place_text(case)}"


def title(case: Case) -> str:
    """`triad on 17 cores, 64 MB messages, data on node 1 (remote)`."""
    cores = f"{case.n} core{'' if case.n == 1 else 's'}"
    same = case.comp_node == case.comm_node
    nodes = f"node {case.comp_node}" if same else f"nodes {case.comp_node} and {case.comm_node}"
    far = " (remote)" if case.remote else ""
    return f"{kernel_text(case)} on {cores}, {format_size(case.size)} messages, data on {nodes}{far}"


def summary(case: Case) -> str:
    """What both sides keep, and the regime."""
    sides = []
    for split in case.splits:
        said = "does not surely lose: it keeps" if split.decided == "undecided" else "keeps"
        what = f"{case.metric} of the communication" if split.side == "comm" else "computation"
        sides.append(f"the {what} {said} {kept_text(split.kept)}")
    found = f"For {head(case)}: {', '.join(sides)}."
    if case.regime is None or case.traffic is None or case.highest is None:
        return found
    moved = f"together they move {case.traffic:.0f} of the {case.highest:.0f} MB/s seen here"
    return f"{found} {REGIMES[case.regime]} ({moved})."


def regimes(cases: Sequence[Case]) -> str:
    """How many of the points are of which regime; empty where no traffic is known."""
    counts: dict[str, int] = {}
    for case in cases:
        if case.regime is not None:
            counts[case.regime] = counts.get(case.regime, 0) + 1
    if not counts:
        return ""
    order = [name for name in REGIMES if name in counts]
    said = ", ".join(f"{counts[name]} {name}" for name in order)
    total = sum(counts.values())
    return f"Of {total} point{'s' if total > 1 else ''} that move memory: {said}."


def takes(split: Split, step: Step) -> str:
    """What one step takes from one side."""
    side = SIDE_NAMES[split.side]
    if step.decided == "undecided":
        return f"undecided for the {side} (keeps {span_text(step.kept)})"
    if step.share is None:
        verb = "loses" if step.decided == "loses" else "gains"
        return f"the {side} {verb} (keeps {span_text(step.kept)}), though it does not surely lose in all"
    if step.decided == "gains":
        return f"the {side} gains (keeps {span_text(step.kept)}; {percent(step.share)} of its loss)"
    return f"{percent(step.share)} of what the {side} loses (keeps {span_text(step.kept)})"


def contrast_text(case: Case, step: Step, kernels: Mapping[str, str]) -> str:
    """`triad after triad_llc`, `fma after nothing`."""
    if "link" in step.sources and len(step.sources) == 1:
        return f"data on node {case.comp_node} instead of a local one"
    return f"{kernels[step.after]} after {kernels.get(step.before, 'nothing')}"


def shares_text(case: Case) -> str:
    """All steps of a case in one line: for cases that are not told source by source."""
    sides = []
    for split in case.splits:
        if split.decided != "loses":
            continue
        parts = [
            f"{sources_text(step.sources)} "
            + ("undecided" if step.decided == "undecided" else f"{100 * step.share.value:.0f} %")
            for step in split.steps
            if step.share is not None
        ]
        sides.append(f"of what the {SIDE_NAMES[split.side]} loses: {', '.join(parts)}")
    return f"{summary(case)} {upper('; '.join(sides))}." if sides else summary(case)


def added_text(contrast: Contrast) -> str:
    """What a source with a control of its own costs."""
    at = f"{contrast.setting} on {cores_text(contrast.n)} beside {format_size(contrast.size)} messages"
    if contrast.source == "runtime overhead" and contrast.added is not None:
        more, size = contrast.added, format_size(contrast.size)
        span = f"{more.value:.3g} {more.unit} ({more.low:.3g} to {more.high:.3g})"
        told = f"messages of {size} through StarPU take {span} longer than through MPI"
        return f"{told} (the latency keeps {span_text(contrast.kept)})"
    than = "than alone" if not contrast.reference else "than without"
    sure = {"loses": "less", "gains": "more", "undecided": "undecided whether less or more"}
    side = SIDE_NAMES[contrast.side]
    return f"{at}: the {side} keeps {sure[contrast.decided]} {than}, {kept_text(contrast.kept)}"


def command(case: Case, machine: str, *, virtual: bool) -> str:
    """The command line that measures every contrast of a case."""
    words = ["elbowroom run contrast", f"--sizes {format_size(case.size).replace(' ', '')}"]
    if case.kernel != "triad":
        words.append(f"--kernels fma,triad_cache,triad_llc,{case.kernel}")
    if case.comp_cores and case.comm_core >= 0:
        words.append(f"--comp-cores {format_cores(case.comp_cores)} --comm-core {case.comm_core}")
    return " ".join([*words, f"--machine {machine}"] if virtual else words)
