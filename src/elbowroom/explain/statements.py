"""A sentence for each source of a loss, the largest share first; a command for what was not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from elbowroom.explain import words
from elbowroom.explain.explanation import (
    ChainStep,
    Contrast,
    ExplainedPoint,
    SideLoss,
    Source,
    SourceStatement,
    Status,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import KERNELS

STATUSES: tuple[Status, ...] = ("measured", "not told apart", "not measured", "n/a")
OWN_PLANS: dict[Source, str] = {"polling": "polling", "runtime overhead": "runtime-overhead"}
DISTURBED = {
    "scheduling": "two threads took turns on one core",
    "migrated": "a thread moved to another core",
    "steal": "the hypervisor took time away",
}
"""Flags of points whose losses are partly due to the scheduler."""


def source_statements(
    shown: Sequence[ExplainedPoint],
    contrasts: Sequence[Contrast],
    kernels: Mapping[str, str],
    machine: Machine,
    frequency: str,
    *,
    trusted: bool = True,
) -> tuple[SourceStatement, ...]:
    """A sentence for each source. `shown`: the local point, and the remote one if there is one; `kernels` by
    point id; `frequency`: a clause on the cores' frequencies; `trusted`: the machine was quiet.
    """
    statements: list[SourceStatement] = []
    for case in shown[:1]:
        statements += _of_chain(case, kernels, machine, _beside(frequency, trusted))
    statements += _link(shown, kernels, machine)
    for source, plan in OWN_PLANS.items():
        statements.append(_of_controls(source, contrasts) or _not_measured(source, plan, machine))
    statements.append(_of_controls("scheduling", contrasts) or _scheduling(shown))
    return tuple(sorted(statements, key=_rank))


def _rank(item: SourceStatement) -> tuple[float, int]:
    return -(item.share if item.share is not None else -1e9), STATUSES.index(item.status)


def _of_chain(
    case: ExplainedPoint, kernels: Mapping[str, str], machine: Machine, frequency: str
) -> Iterator[SourceStatement]:
    """A sentence for each step of the chain, about both sides."""
    groups: dict[tuple[Source, ...], list[tuple[SideLoss, ChainStep]]] = {}
    for split in case.splits:
        for step in split.steps:
            groups.setdefault(step.sources, []).append((split, step))
    for sources, steps in groups.items():
        shares = "; ".join(words.takes(split, step) for split, step in steps)
        by = words.contrast_text(case, steps[0][1], kernels)
        text = f"{words.upper(words.sources_text(sources))}: {shares}; contrast: {by}."
        if "everything but memory" in sources and frequency:
            text = f"{text} {frequency}"
        hint = ""
        if len(sources) > 1 and "on-chip network" not in sources:
            hint = words.command(case, machine.name, virtual=machine.virtual)
            text = f"{text} No point separates these sources; to measure one: {hint}"
        status: Status = "measured" if len(sources) == 1 else "not told apart"
        yield SourceStatement(sources=sources, status=status, text=text, share=_share(steps), hint=hint)


def _beside(frequency: str, trusted: bool) -> str:
    """What else is known about a loss in registers alone."""
    clause = f"Frequencies {frequency}." if frequency else ""
    noisy = "" if trusted else " The machine was not quiet: other work on it causes part of this loss."
    return f"{clause}{noisy}".strip()


def _share(steps: Sequence[tuple[SideLoss, ChainStep]]) -> float | None:
    """The larger share of both sides, if one is significant."""
    sure = [step.share.value for _, step in steps if step.share is not None and step.decided != "undecided"]
    return max(sure, default=None)


def _link(
    shown: Sequence[ExplainedPoint], kernels: Mapping[str, str], machine: Machine
) -> Iterator[SourceStatement]:
    """The link between sockets, from the remote point; or why it is unknown."""
    if any("link" in step.sources for case in shown[:1] for split in case.splits for step in split.steps):
        return
    if shown and not KERNELS[shown[0].kernel].moves_memory:
        return  # nothing of it crosses a link, wherever its pages are
    if machine.packages < 2:
        text = "Link: n/a, this machine has one socket."
        yield SourceStatement(sources=("link",), status="n/a", text=text)
        return
    for case in shown[1:]:
        steps = [(split, step) for split in case.splits for step in split.steps if step.sources == ("link",)]
        shares = "; ".join(words.takes(split, step) for split, step in steps)
        by = words.contrast_text(case, steps[0][1], kernels)
        text = f"Link, with {words.place_text(case)}: {shares}; contrast: {by}."
        yield SourceStatement(sources=("link",), status="measured", text=text, share=_share(steps))
        return
    hint = words.command(shown[0], machine.name, virtual=machine.virtual) if shown else ""
    yield SourceStatement(
        sources=("link",),
        status="not measured",
        text=f"Link: not measured, because no point has remote data; to measure it: {hint}",
        hint=hint,
    )


def _of_controls(source: Source, contrasts: Sequence[Contrast]) -> SourceStatement | None:
    """The contrast of that source with the largest loss, in a sentence."""
    of = [item for item in contrasts if item.source == source]
    if not of:
        return None
    sure = [item for item in of if item.decided == "loses"]
    worst = min(sure or of, key=lambda item: (item.kept.value, item.point))
    cost = words.added_text(worst)
    count = f" (the largest loss of {len(of)})" if len(of) > 1 else ""
    undecided = "" if sure else " undecided:"
    text = f"{words.upper(source)}:{undecided} {cost}{count}."
    return SourceStatement(sources=(source,), status="measured", text=text)


def _not_measured(source: Source, plan: str, machine: Machine) -> SourceStatement:
    if machine.virtual:
        text = f"{words.upper(source)}: n/a on a virtual machine."
        return SourceStatement(sources=(source,), status="n/a", text=text)
    hint = f"elbowroom run {plan}"
    text = f"{words.upper(source)}: not measured; to measure it: {hint}"
    return SourceStatement(sources=(source,), status="not measured", text=text, hint=hint)


def _scheduling(shown: Sequence[ExplainedPoint]) -> SourceStatement:
    """Without a contrast: whether the points' flags show an effect of the scheduler."""
    flags = {flag for case in shown for flag in case.flags}
    disturbances = [what for flag, what in DISTURBED.items() if flag in flags]
    if disturbances:
        text = (
            f"Scheduling: {', '.join(disturbances)} while these points were measured. Part of every share is "
            "due to the scheduler; no undisturbed point shows how much."
        )
        return SourceStatement(sources=("scheduling",), status="not told apart", text=text)
    text = "Scheduling: n/a, every thread of these points had a core of its own and stayed on it"
    if "shared_comm_core" in flags:
        text = (
            "Scheduling: n/a, every computing thread had a core of its own; the communicating ranks share "
            "one, both alone and together"
        )
    return SourceStatement(sources=("scheduling",), status="n/a", text=f"{text}.")
