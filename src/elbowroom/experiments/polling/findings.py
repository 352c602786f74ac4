"""What polling workers add to latencies, finding by finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from elbowroom.experiments.common.sentences import (
    Values,
    level_of,
    nothing,
    onset_over,
    place_text,
    size_text,
    suffers,
)
from elbowroom.experiments.polling.rows import OWNERS, PollingCase, WorkerRow, cases, claims, workers_text
from elbowroom.machine.topology import Machine
from elbowroom.results.curves import Onset
from elbowroom.results.result import Finding, PointResult


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """Per source, size and placement: what each back-off adds to the latency, from how many workers it
    suffers; then what that says of the paper's claim.
    """
    findings = []
    for case in cases(results):
        findings.append(_added(case, machine))
        if any(row.nops is not None for row in case.rows):
            findings.append(_claimed(case))
    return tuple(findings) or (nothing("polling", "Polling workers"),)


def _added(case: PollingCase, machine: Machine) -> Finding:
    rows = case.at(case.most)
    onsets = {
        waits[0].name: onset_over([row.item for row in waits], "comm", lambda item: float(item.n))
        for nops, waits in case.waits().items()
        if nops is not None
    }
    values: Values = {"source": case.source, "size": case.size, "n": case.most}
    for row in rows:
        values |= _values(row)
    values |= {f"from_{name.removeprefix('back-off ')}": onset.x for name, onset in onsets.items()}
    return Finding(
        key=f"polling-{case.key}",
        level=level_of(*onsets.values()) if onsets else "note",
        text=(
            f"{OWNERS[case.source]}, {place_text(rows[0].item, machine)}: beside {workers_text(case.most)} "
            f"the {size_text(case.size)} latency{_alone_text(rows)} changes by "
            f"{', '.join(added_text(row) for row in rows)}.{_suffers_text(case, onsets)}{_polls_text(rows)}"
        ),
        values=values,
        points=tuple(row.item.id for row in case.rows),
    )


def _values(row: WorkerRow) -> Values:
    """Numbers of one row by its back-off: added_32, polls_32 (per second and worker)."""
    word = "paused" if row.nops is None else str(row.nops)
    values: Values = {}
    if row.added is not None:
        values |= {
            f"added_{word}": row.added.value,
            f"added_{word}_low": row.added.low,
            f"added_{word}_high": row.added.high,
        }
    if row.item.comm.kept is not None:
        values[f"kept_{word}"] = row.item.comm.kept.value
    if row.polls is not None:
        values[f"polls_{word}"] = row.polls * 1e6
    return values


def _suffers_text(case: PollingCase, onsets: Mapping[str, Onset]) -> str:
    """From how many workers the latency suffers with each back-off; with one number of them, with which."""
    if len(case.counts) > 1:
        sentences = [
            suffers(f"With {name} it", onset, lambda n: workers_text(int(n)), times=True)
            for name, onset in onsets.items()
        ]
        return "".join(f" {sentence}" for sentence in sentences)
    hurt = [name for name, onset in onsets.items() if onset.first is not None]
    if hurt:
        return f" It suffers with {', '.join(hurt)}."
    worst = min((onset.worst for onset in onsets.values() if onset.worst is not None), default=None)
    return (
        "" if worst is None else f" It does not suffer: it is at most {1 / worst:.2f} times its value alone."
    )


def added_text(row: WorkerRow) -> str:
    """`+0.52 us (0.50 to 0.55) with back-off 2`."""
    added = row.added
    change = "an unknown time" if added is None else f"{added.value:+.3f} us ({added.text('.3f')})"
    return f"{change} with {row.name}" if row.nops is not None else f"{change} with paused ones"


def _alone_text(rows: Sequence[WorkerRow]) -> str:
    alone = [row.item.comm.alone.median for row in rows if row.item.comm.alone is not None]
    return f" ({median(alone):.3f} us alone)" if alone else ""


def _polls_text(rows: Sequence[WorkerRow]) -> str:
    rates = [f"{row.polls:.3g} million times with {row.name}" for row in rows if row.polls is not None]
    return f" In a second a worker polls {', '.join(rates)}." if rates else ""


def _claimed(case: PollingCase) -> Finding:
    frequent, rare = claims(case)
    values: Values = {"source": case.source, "n": case.most, "rare": rare.judgement}
    points = (row.item.id for row in case.at(case.most))
    owners = f"{OWNERS[case.source]}:"
    key = f"polling-claim-{case.key}"
    return frequent.finding(key, before=owners, after=rare.text, values=values, points=points)
