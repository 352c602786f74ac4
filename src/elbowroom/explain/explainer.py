"""Runs of one machine, explained: every point split by source, and a sentence for each source.

A sentence for each source of a loss, the largest share first; a command for what was not measured.

Sources that have a control of their own: polling workers against paused ones, messages through a runtime
system against MPI's, two threads on one core against one each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from elbowroom.errors import UsageError, closest
from elbowroom.explain import words
from elbowroom.explain.chain import Logs, ObservedPoint, decide, observed_points, ratio
from elbowroom.explain.chain import cases as split_cases
from elbowroom.explain.explanation import (
    SIDES,
    ChainStep,
    Contrast,
    ExplainedPoint,
    Explanation,
    SideLoss,
    SideName,
    Source,
    SourceStatement,
    Status,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import KERNELS
from elbowroom.quantities import format_size
from elbowroom.results.resampled import LogKept
from elbowroom.results.result import PointResult
from elbowroom.results.stores import of_one_machine
from elbowroom.stats.interval import Kept
from elbowroom.version import __version__

POLLING, PAUSED = "polling", "paused"


def contrasts(points: Sequence[ObservedPoint]) -> tuple[Contrast, ...]:
    """All contrasts of the points, by source; fewest cores and smallest message first."""
    ordered = sorted(points, key=lambda point: (point.item.n, point.item.size, point.run, point.item.id))
    return (*_polling(ordered), *_runtime(ordered), *_shared_cores(ordered))


def _polling(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Workers that poll, against the same ones paused (Denis et al. 2021, section 5.4)."""
    for point in points:
        item = point.item
        own = item.workload.facts.contrast
        if item.kernel == POLLING:
            control = _nearest(point, [other for other in points if other.item.kernel == PAUSED], "cursor")
            setting = f"workers that poll (backoff {item.cursor})"
            instead = "alone" if control is None else "beside paused workers"
            yield from _against("polling", point, control, setting, instead)
        elif own is not None and own.source == "polling":
            yield from _against("polling", point, None, own.setting, own.control)


def _runtime(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Messages through the runtime system, against MPI's inside the same point (section 5.2)."""
    for point in points:
        own = point.item.workload.facts.contrast
        if own is None or own.source != "runtime overhead" or "comm" not in point.logs:
            continue
        log = point.logs["comm"]
        kept = ratio(log.value, log.draws)
        yield Contrast(
            source="runtime overhead",
            side="comm",
            setting=own.setting,
            control=own.control,
            n=point.item.n,
            size=point.item.size,
            point=point.item.id,
            reference="",
            kept=kept,
            decided=decide(kept),
            added=point.item.comm.added,
        )


def _shared_cores(points: Sequence[ObservedPoint]) -> Iterator[Contrast]:
    """Two threads on one core, against the same work with a core for each (docs/design/method.md, rule 4)."""
    apart = [point for point in points if not point.shares_core and point.item.workload.facts.beside_messages]
    for point in points:
        if point.shares_core and point.item.workload.facts.beside_messages:
            alike = [
                other
                for other in apart
                if (other.item.kernel, other.item.cursor) == (point.item.kernel, point.item.cursor)
            ]
            control = _nearest(point, alike, "comp_cores", "comm_core")
            if control is not None:
                setting = "two threads sharing a core,"
                yield from _against("scheduling", point, control, setting, "with a core for each thread")


def _nearest(point: ObservedPoint, controls: Sequence[ObservedPoint], *free: str) -> ObservedPoint | None:
    """A control with the same workers, messages and placement, preferably of the same run. The fields `free`
    may differ.
    """
    same = {
        "n", "comp_cores", "size", "metric", "pattern", "comp_node", "comm_node", "comm_core",
        "comm_threads", "processes", "reuse",
    } - set(free)  # fmt: skip
    alike = [
        other for other in controls if all(getattr(other.item, n) == getattr(point.item, n) for n in same)
    ]
    return min(alike, key=lambda other: (other.run != point.run, other.run, other.item.id), default=None)


def _against(
    source: Source, point: ObservedPoint, control: ObservedPoint | None, setting: str, instead: str
) -> Iterator[Contrast]:
    """One contrast for each side that both points have; without a control the point's own. The computation of
    polling workers is left out: nobody needs its results.
    """
    for side in SIDES if source != "polling" else SIDES[:1]:
        if side not in point.logs or (control is not None and side not in control.logs):
            continue
        kept = _kept(point, control, side)
        yield Contrast(
            source=source,
            side=side,
            setting=setting,
            control=instead,
            n=point.item.n,
            size=point.item.size,
            point=point.item.id,
            reference="" if control is None else control.item.id,
            kept=kept,
            decided=decide(kept),
            added=point.item.comm.added if side == "comm" and control is None else None,
        )


def _kept(point: ObservedPoint, control: ObservedPoint | None, side: SideName) -> Kept:
    own = point.logs[side]
    if control is None:
        return ratio(own.value, own.draws)
    base: LogKept = control.logs[side]
    return ratio(own.value - base.value, own.draws - base.draws)


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


@dataclass(frozen=True)
class ObservedRun:
    """One run: its name and results, logarithms of its samples (None: the intervals are used instead),
    whether it is trusted, and a clause on the frequencies of its cores (may be empty).
    """

    run: str
    results: Sequence[PointResult]
    logs: Logs | None = None
    trusted: bool = True
    reasons: tuple[str, ...] = ()
    frequency: str = ""


def explain(
    runs: Sequence[ObservedRun],
    machine: Machine,
    *,
    kernel: str | None = None,
    n: int | None = None,
    size: int | None = None,
) -> Explanation:
    """Where the losses of these runs come from. All runs are of this machine.

    `kernel`, `n` and `size` (bytes) select points. UsageError if none is left, or if no point has a side
    both alone and together.
    """
    factor = of_one_machine(item for run in runs for item in run.results)
    points = [
        point
        for number, run in enumerate(runs)
        for point in observed_points(
            [replace(item, store_factor=factor) for item in run.results], number, run.logs
        )
    ]
    every, others = split_cases(points, machine), contrasts(points)
    if not every and not others:
        raise _nothing(runs)
    chosen = _chosen(every, kernel=kernel, n=n, size=size)
    shown = _shown(chosen)
    trusted = all(run.trusted for run in runs)
    frequency = "; ".join(dict.fromkeys(run.frequency for run in runs if run.frequency))
    return Explanation(
        elbowroom=__version__,
        runs=tuple(run.run for run in runs),
        machine=machine.name,
        virtual=machine.virtual,
        trusted=trusted,
        reasons=_reasons(runs),
        estimate=(
            "intervals of the points"
            if any(run.logs is None for run in runs)
            else "bootstrap over repetitions"
        ),
        summary=_summary(shown, chosen),
        statements=source_statements(shown, others, _kernels(points), machine, frequency, trusted=trusted),
        shown=shown,
        cases=chosen,
        contrasts=others,
    )


def _nothing(runs: Sequence[ObservedRun]) -> UsageError:
    """Why nothing can be explained; the tables of a run of an accelerator name sources themselves."""
    names = [run.run for run in runs]
    measured = [item for run in runs for item in run.results if item.status != "failed"]
    if any(item.workload.needs.gpu is not None for item in measured):
        return UsageError(
            "holds points of an accelerator, whose sources of loss are in its tables",
            field="run",
            value=", ".join(names),
            hint=f"print them: {', '.join(f'elbowroom show {name}' for name in names)}",
        )
    return UsageError(
        "has no point with a side both alone and together",
        field="run",
        value=", ".join(names),
        hint="measure one: elbowroom run contrast",
    )


def of_results(results: Sequence[PointResult], machine: Machine) -> Explanation | None:
    """The explanation in a run's report, from the intervals of its points; None if no point can be
    explained.
    """
    try:
        return explain([ObservedRun(run="", results=results)], machine)
    except UsageError:
        return None


def _chosen(
    every: tuple[ExplainedPoint, ...], *, kernel: str | None, n: int | None, size: int | None
) -> tuple[ExplainedPoint, ...]:
    """The selected points. UsageError names the first option that leaves none, and what was measured."""
    for field, wanted in (("kernel", kernel), ("n", n), ("size", size)):
        if wanted is None:
            continue
        values = sorted({getattr(case, field) for case in every})
        every = tuple(case for case in every if getattr(case, field) == wanted)
        if not every:
            _refuse(field, wanted, values)
    return every


def _refuse(field: str, wanted: str | int, values: Sequence[str | int]) -> None:
    def text(value: str | int) -> str:
        return format_size(value) if field == "size" and isinstance(value, int) else str(value)

    known = [text(value) for value in values]
    hint = f"measured: {', '.join(known) or 'no computation'}"
    if isinstance(wanted, str) and known:
        hint = closest(wanted, known).replace("known:", "measured:")
    raise UsageError(
        "was not measured alone and together",
        field="cores" if field == "n" else field,
        value=text(wanted) if field == "size" else wanted,
        hint=hint,
    )


def _shown(chosen: Sequence[ExplainedPoint]) -> tuple[ExplainedPoint, ...]:
    """The first point with all data local (or the first of all), and the same with remote data."""
    if not chosen:
        return ()
    first = chosen[0]
    alike = [
        case
        for case in chosen
        if (case.kernel, case.cursor, case.n, case.size) == (first.kernel, first.cursor, first.n, first.size)
    ]
    local = next((case for case in alike if not case.remote and case.comp_node == case.comm_node), first)
    far = next((case for case in alike if case is not local and _tells_the_link(case)), None)
    return (local,) if far is None else (local, far)


def _tells_the_link(case: ExplainedPoint) -> bool:
    return any(step.sources == ("link",) for split in case.splits for step in split.steps)


def _summary(shown: Sequence[ExplainedPoint], chosen: Sequence[ExplainedPoint]) -> tuple[str, ...]:
    sentences = [words.summary(case) for case in shown]
    if shown and not any(split.decided == "loses" for split in shown[0].splits):
        sentences += [
            "Neither side loses significantly there, so there is nothing to attribute.",
            *elsewhere(chosen),
        ]
    counted = words.regimes(chosen)
    return (*sentences, counted) if counted else tuple(sentences)


def elsewhere(chosen: Sequence[ExplainedPoint]) -> Iterator[str]:
    """The largest significant loss of all points, if those that are shown have none."""
    lost = [(case, split) for case in chosen for split in case.splits if split.decided == "loses"]
    if lost:
        case, split = min(lost, key=lambda pair: pair[1].kept.value)
        yield f"{words.largest(case, split)} (`explain --kernel {case.kernel}`)."


def _reasons(runs: Sequence[ObservedRun]) -> tuple[str, ...]:
    several = len(runs) > 1
    return tuple(
        f"{run.run}: {reason}" if several else reason
        for run in runs
        if not run.trusted
        for reason in run.reasons
    )


def _kernels(points: Sequence[ObservedPoint]) -> dict[str, str]:
    return {point.item.id: point.item.kernel for point in points}
