"""Runs of one machine, explained: every point split by source, and a sentence for each source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from elbowroom.errors import UsageError, closest
from elbowroom.explain import words
from elbowroom.explain.chain import Logs, ObservedPoint, observed_points
from elbowroom.explain.chain import cases as split_cases
from elbowroom.explain.contrasts import contrasts as controlled
from elbowroom.explain.explanation import ExplainedPoint, Explanation
from elbowroom.explain.statements import source_statements
from elbowroom.machine.topology import Machine
from elbowroom.quantities import format_size
from elbowroom.results.result import PointResult
from elbowroom.results.stores import of_one_machine
from elbowroom.version import __version__


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
    every, others = split_cases(points, machine), controlled(points)
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
    if any(item.workload.needs_gpu for item in measured):
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
