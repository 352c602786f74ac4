"""What a run of `collectives` says of a job's collective: time alone and overlap of each form and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.points.calls import overlap_of
from elbowroom.quantities import format_size, parse_size
from elbowroom.results.result import PointResult

HINT = "name a run of the plan `collectives`: elbowroom run collectives --out RUN"


def with_measurements(job: Mapping[str, Any], points: Sequence[PointResult]) -> dict[str, Any]:
    """The job's data with what a run's points say of its collective; UsageError where they say nothing.

    Of several points of one form and policy the one counts whose computing cores are nearest to the job's,
    and of these (periods of MPI_Test) the one that hides most.
    """
    given = job.get("collective")
    if not isinstance(given, Mapping) or "operation" not in given or "size" not in given:
        raise UsageError(
            "the job has none to measure",
            field="collective",
            hint="add [collective] with operation and size to the job",
        )
    operation, size = given["operation"], given["size"]
    number = parse_size(size, "collective.size") if isinstance(size, str) and size != "0" else int(size)
    verify = job.get("verify")
    kernel = verify.get("kernel") if isinstance(verify, Mapping) else None
    measured = _points(points, operation, number, kernel)
    now = job.get("now")
    cores = now.get("cores", 0) if isinstance(now, Mapping) else 0
    return {**job, "collective": {**given, "measured": _ways(measured, cores)}}


def _points(
    points: Sequence[PointResult], operation: str, size: int, kernel: str | None
) -> list[PointResult]:
    """The points of that operation, size and kernel."""
    overlapping = [point for point in points if _measured(point) is not None]
    if not overlapping:
        raise UsageError("measured no overlap", field="collectives", hint=HINT)
    of = [point for point in overlapping if _call(point).get("operation") == operation]
    if not of:
        known = sorted({str(_call(point).get("operation")) for point in overlapping})
        raise UsageError(
            "was not measured",
            field="collective.operation",
            value=operation,
            hint=f"known: {', '.join(known)}",
        )
    fitting = [point for point in of if point.size == size]
    if not fitting:
        sizes = ", ".join(format_size(known) for known in sorted({point.size for point in of}))
        raise UsageError(
            "was not measured", field="collective.size", value=format_size(size), hint=f"known: {sizes}"
        )
    kernels = sorted({point.kernel for point in fitting})
    wanted = kernels[0] if kernel is None and len(kernels) == 1 else kernel
    if wanted not in kernels:
        raise UsageError(
            "is missing" if wanted is None else "was not measured",
            field="verify.kernel",
            value=wanted,
            hint=f"name what is computed beside the collective: {', '.join(kernels)}",
        )
    return [point for point in fitting if point.kernel == wanted]


def _ways(points: Sequence[PointResult], cores: int) -> list[dict[str, Any]]:
    def order(point: PointResult) -> tuple[int, float]:
        return abs(point.n - cores), -_measured(point).overlap.value

    ways: dict[tuple[str, str], dict[str, Any]] = {}
    for point in sorted(points, key=order):
        call, measured = _call(point), _measured(point)
        form, progress = str(call["form"]), str(call["progress"])
        row = {"form": form, "progress": progress, "seconds": msgspec.to_builtins(measured.message)}
        if form != "blocking":
            row["overlap"] = msgspec.to_builtins(measured.overlap)
        ways.setdefault((form, progress), row)
    return list(ways.values())


def _measured(point: PointResult) -> Any:
    """The numbers of the point's overlap (stats/overlap/measures.py), or None."""
    return overlap_of(point.payload)


def _call(point: PointResult) -> dict[str, Any]:
    """The call that the point measures: operation, form, progress."""
    call: dict[str, Any] = {"progress": "none", **msgspec.to_builtins(point.workload)}
    return call
