"""A sentence for each source of a loss, the largest share first; what was not measured with its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from elbowroom.explain import words
from elbowroom.explain.explanation import Case, Contrast, Source, Split, Status, Step, Told
from elbowroom.machine.topology import Machine

STATUSES: tuple[Status, ...] = ("measured", "not told apart", "not measured", "n/a")
OWN_PLANS: dict[Source, str] = {"polling": "polling", "runtime overhead": "runtime-overhead"}
DISTURBED = {
    "scheduling": "two threads took turns on one core",
    "migrated": "a thread moved to another core",
    "steal": "the hypervisor took time away",
}
"""Flags of points whose losses are partly the scheduler's."""


def told(
    shown: Sequence[Case],
    contrasts: Sequence[Contrast],
    kernels: Mapping[str, str],
    machine: Machine,
    frequency: str,
) -> tuple[Told, ...]:
    """What is told of each source. `shown`: the local case, and the remote one where there is one; `kernels`
    by point id; `frequency`: what is known of the cores' frequencies.
    """
    found: list[Told] = []
    for case in shown[:1]:
        found += _of_chain(case, kernels, machine, frequency)
    found += _link(shown, kernels, machine)
    for source, plan in OWN_PLANS.items():
        found.append(_of_controls(source, contrasts) or _not_measured(source, plan, machine))
    found.append(_of_controls("scheduling", contrasts) or _scheduling(shown))
    return tuple(sorted(found, key=_rank))


def _rank(item: Told) -> tuple[float, int]:
    return -(item.share if item.share is not None else -1e9), STATUSES.index(item.status)


def _of_chain(case: Case, kernels: Mapping[str, str], machine: Machine, frequency: str) -> Iterator[Told]:
    """A sentence for each step of the chain, about both sides."""
    groups: dict[tuple[Source, ...], list[tuple[Split, Step]]] = {}
    for split in case.splits:
        for step in split.steps:
            groups.setdefault(step.sources, []).append((split, step))
    for sources, steps in groups.items():
        said = "; ".join(words.takes(split, step) for split, step in steps)
        by = words.contrast_text(case, steps[0][1], kernels)
        text = f"{words.upper(words.sources_text(sources))}: {said}; contrast: {by}."
        if "frequency" in sources and frequency:
            text = f"{text} Frequencies {frequency}."
        mend = ""
        if len(sources) > 1 and "on-chip network" not in sources:
            mend = words.command(case, machine.name, virtual=machine.virtual)
            text = f"{text} No point between tells them apart; measure: {mend}"
        status: Status = "measured" if len(sources) == 1 else "not told apart"
        yield Told(sources=sources, status=status, text=text, share=_share(steps), mend=mend)


def _share(steps: Sequence[tuple[Split, Step]]) -> float | None:
    """The larger share of both sides, where one is sure."""
    sure = [step.share.value for _, step in steps if step.share is not None and step.decided != "undecided"]
    return max(sure, default=None)


def _link(shown: Sequence[Case], kernels: Mapping[str, str], machine: Machine) -> Iterator[Told]:
    """The link between sockets, from the remote case; or why nothing tells of it."""
    if any("link" in step.sources for case in shown[:1] for split in case.splits for step in split.steps):
        return
    if machine.packages < 2:
        text = "Link: n/a, this machine has one socket."
        yield Told(sources=("link",), status="n/a", text=text)
        return
    for case in shown[1:]:
        steps = [(split, step) for split in case.splits for step in split.steps if step.sources == ("link",)]
        said = "; ".join(words.takes(split, step) for split, step in steps)
        by = words.contrast_text(case, steps[0][1], kernels)
        text = f"Link, with {words.place_text(case)}: {said}; contrast: {by}."
        yield Told(sources=("link",), status="measured", text=text, share=_share(steps))
        return
    mend = words.command(shown[0], machine.name, virtual=machine.virtual) if shown else ""
    yield Told(
        sources=("link",),
        status="not measured",
        text=f"Link: not measured, no point has its data on a remote node; measure: {mend}",
        mend=mend,
    )


def _of_controls(source: Source, contrasts: Sequence[Contrast]) -> Told | None:
    """The contrast of that source which costs most, in a sentence."""
    of = [item for item in contrasts if item.source == source]
    if not of:
        return None
    sure = [item for item in of if item.decided == "loses"]
    worst = min(sure or of, key=lambda item: (item.kept.value, item.point))
    said = words.added_text(worst)
    count = f" (the worst of {len(of)})" if len(of) > 1 else ""
    undecided = "" if sure else " undecided:"
    text = f"{words.upper(source)}:{undecided} {said}{count}."
    return Told(sources=(source,), status="measured", text=text)


def _not_measured(source: Source, plan: str, machine: Machine) -> Told:
    if machine.virtual:
        text = f"{words.upper(source)}: n/a, a virtual machine has none."
        return Told(sources=(source,), status="n/a", text=text)
    mend = f"elbowroom run {plan}"
    text = f"{words.upper(source)}: not measured; measure: {mend}"
    return Told(sources=(source,), status="not measured", text=text, mend=mend)


def _scheduling(shown: Sequence[Case]) -> Told:
    """Without a contrast: whether the flags of the points tell of the scheduler."""
    flags = {flag for case in shown for flag in case.flags}
    seen = [what for flag, what in DISTURBED.items() if flag in flags]
    if seen:
        text = (
            f"Scheduling: {', '.join(seen)} while these points were measured; part of every share is the "
            "scheduler's, and no point without tells how much."
        )
        return Told(sources=("scheduling",), status="not told apart", text=text)
    text = "Scheduling: n/a, every thread of these points had a core of its own and stayed there"
    if "shared_comm_core" in flags:
        text = (
            "Scheduling: n/a, computing threads had cores of their own; the communicating ranks yield to "
            "each other, alone as together"
        )
    return Told(sources=("scheduling",), status="n/a", text=f"{text}.")
