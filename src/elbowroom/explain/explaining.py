"""Runs of one machine, explained: every case, those that are told, and a sentence for each source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elbowroom.errors import UsageError
from elbowroom.explain import words
from elbowroom.explain.chain import cases as split_cases
from elbowroom.explain.contrasts import contrasts as controlled
from elbowroom.explain.explanation import Case, Explanation
from elbowroom.explain.seen import Logs, Seen, seen
from elbowroom.explain.telling import told
from elbowroom.machine.topology import Machine
from elbowroom.plan.kernels import closest
from elbowroom.plan.sizes import format_size
from elbowroom.stats.result import PointResult


@dataclass(frozen=True)
class Observed:
    """One run: its name and results, logarithms from its samples (None: intervals must do), whether it is to
    be trusted, and what is known of the frequencies of its cores (a clause, may be empty).
    """

    run: str
    results: Sequence[PointResult]
    logs: Logs | None = None
    trusted: bool = True
    reasons: tuple[str, ...] = ()
    frequency: str = ""


def explain(
    runs: Sequence[Observed],
    machine: Machine,
    *,
    kernel: str | None = None,
    n: int | None = None,
    size: int | None = None,
) -> Explanation:
    """Where the losses of these runs come from; all of them of this machine.

    `kernel`, `n`, `size` (bytes) choose among the points. UsageError where none is left, or none tells of a
    loss.
    """
    points = [found for number, run in enumerate(runs) for found in seen(run.results, number, run.logs)]
    every, others = split_cases(points, machine), controlled(points)
    if not every and not others:
        raise UsageError(
            "holds no point with a side both alone and together",
            field="run",
            value=", ".join(run.run for run in runs),
            mend="measure one: elbowroom run contrast",
        )
    chosen = _chosen(every, kernel=kernel, n=n, size=size)
    shown = _shown(chosen)
    frequency = "; ".join(dict.fromkeys(run.frequency for run in runs if run.frequency))
    return Explanation(
        runs=tuple(run.run for run in runs),
        machine=machine.name,
        virtual=machine.virtual,
        trusted=all(run.trusted for run in runs),
        reasons=_reasons(runs),
        estimate=(
            "intervals of the points"
            if any(run.logs is None for run in runs)
            else "bootstrap over repetitions"
        ),
        summary=_summary(shown, chosen),
        told=told(shown, others, _kernels(points), machine, frequency),
        shown=shown,
        cases=chosen,
        contrasts=others,
    )


def of_results(results: Sequence[PointResult], machine: Machine) -> Explanation | None:
    """Results of one run as its page explains them, from the intervals of its points; None where they tell
    of no loss.
    """
    try:
        return explain([Observed(run="", results=results)], machine)
    except UsageError:
        return None


def _chosen(
    every: tuple[Case, ...], *, kernel: str | None, n: int | None, size: int | None
) -> tuple[Case, ...]:
    """The cases asked for. UsageError names the first choice that leaves none, and what was measured."""
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
    mend = f"measured: {', '.join(known) or 'nothing that computes'}"
    if isinstance(wanted, str) and known:
        mend = closest(wanted, known).replace("known:", "measured:")
    name = "cores" if field == "n" else field
    raise UsageError("was not measured alone and together", field=name, value=text(wanted), mend=mend)


def _shown(chosen: Sequence[Case]) -> tuple[Case, ...]:
    """The first case with all data local (or the first there is), and with it the same on a remote node."""
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


def _tells_the_link(case: Case) -> bool:
    return any(step.sources == ("link",) for split in case.splits for step in split.steps)


def _summary(shown: Sequence[Case], chosen: Sequence[Case]) -> tuple[str, ...]:
    found = [words.summary(case) for case in shown]
    if shown and not any(split.decided == "loses" for split in shown[0].splits):
        found.append("Neither side surely loses there: there is nothing to attribute.")
    counted = words.regimes(chosen)
    return (*found, counted) if counted else tuple(found)


def _reasons(runs: Sequence[Observed]) -> tuple[str, ...]:
    several = len(runs) > 1
    return tuple(
        f"{run.run}: {reason}" if several else reason
        for run in runs
        if not run.trusted
        for reason in run.reasons
    )


def _kernels(points: Sequence[Seen]) -> dict[str, str]:
    return {found.item.id: found.item.kernel for found in points}
