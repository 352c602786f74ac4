"""What calls beside a computation show: whether they progress, by which policy, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.experiments.common.calls.rows import CallRow, rows
from elbowroom.experiments.common.sentences import Values, grouped, kernel_name, nothing, size_text
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Finding, PointResult

SUFFERS = 0.95
"""What a side keeps at most if it suffers, and its whole interval is below 1."""

LOSSES = {
    "contention": "most of what is lost is lost to contention",
    "no_progress": "most of what is lost is lost because it does not progress",
    "late": "most of what is lost is lost to a rank that starts late",
    "tail": "most of what is lost is the part of the call that is longer than the computation",
}


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:  # noqa: ARG001
    """For each call that does not block: whether its largest size progresses, what each policy changes."""
    table = [row for row in rows(results) if row.measured is not None and row.call.form != "blocking"]
    if not table:
        return (nothing("overlap", "The overlap of calls with a computation"),)
    found = []
    for family in grouped(table, lambda row: row.family).values():
        largest = max(row.item.size for row in family)
        found.append(_finding([row for row in family if row.item.size == largest]))
    return tuple(sorted(found, key=lambda finding: finding.level != "interference"))


def _finding(policies: Sequence[CallRow]) -> Finding:
    """`policies`: rows of one call and size."""
    plain = next((row for row in policies if row.call.progress == "none"), policies[0])
    others = [row for row in policies if row is not plain]
    best = max(policies, key=_overlap)
    values: Values = {f"{row.call.policy_id}_overlap": _overlap(row) for row in policies}
    values |= {"best": best.call.policy_id, "kept_comp": _kept(best), "reason": _reason(best)}
    sentence = f"{_how(plain)}: overlap {_overlap(plain):.2f}"
    sentence += "".join(f"; with {row.policy}, {_overlap(row):.2f}" for row in others)
    kernel = kernel_name(best.item.kernel)
    with_best = f" with {best.policy}" if others and best is not plain else ""
    sentence += f". {kernel} keeps {_kept(best):.2f}{with_best}"
    sentence += f", and {LOSSES[_reason(best)]}." if _reason(best) in LOSSES else "."
    return Finding(
        key=f"overlap-{plain.call.operation}-{plain.call.form}-{plain.call.neighbours}-{plain.item.kernel}"
        f"-{plain.item.n}-{plain.call.ranks}-{plain.item.size}",
        level="interference" if _suffers(best) else "quiet",
        text=sentence,
        values=values,
        points=tuple(row.item.id for row in policies),
    )


def _how(row: CallRow) -> str:
    """`MPI_Iallreduce of 1 MiB progresses only inside MPI calls here`."""
    of = "" if row.call.operation == "barrier" else f" of {size_text(row.item.size)}"
    call = f"{row.call.call}{of} between {row.call.ranks} ranks"
    call = call[0].upper() + call[1:]
    if row.call.progress != "none":
        return f"{call}, with {row.policy}"
    return f"{call} progresses {'while they compute' if row.progresses else 'only inside MPI calls here'}"


def _overlap(row: CallRow) -> float:
    assert row.measured is not None
    return row.measured.overlap.value


def _kept(row: CallRow) -> float:
    assert row.measured is not None
    return row.measured.kept_comp.value


def _reason(row: CallRow) -> str:
    assert row.measured is not None
    return row.measured.reason


def _suffers(row: CallRow) -> bool:
    assert row.measured is not None
    kept = row.measured.kept_comp
    return kept.value < SUFFERS and kept.below(1.0)
