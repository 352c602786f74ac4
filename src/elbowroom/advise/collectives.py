"""A collective operation of a step: how it is called, who makes it proceed, and what of it is exposed.

What a form and a progress policy hide cannot be predicted from bandwidths: it is a property of the MPI
library. It is measured (`run collectives`), and carried over: a measured overlap o of an operation that takes
T alone saves o min(T, T_M) of a step that computes for T_M (models/overlap; the measurement's computation is
as long as the operation).

What a run of `collectives` says of a job's collective: time alone and overlap of each form and policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.models.flow.law import Array
from elbowroom.points.calls import overlap_of
from elbowroom.quantities import format_size, parse_size
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import NORMAL_95

Form = Literal["blocking", "nonblocking", "persistent"]
Progress = Literal["none", "test", "thread", "library"]
Way = tuple[Form, Progress]
Choices = tuple[tuple[Form, ...] | Literal["every"] | None, tuple[Progress, ...] | Literal["every"] | None]
"""What a job may choose of each field of WAY; None: what it has now."""
WAY = ("form", "progress")
"""The fields of a setup that say how its collective is called."""

FORMS: dict[str, str] = {
    "blocking": "a blocking call",
    "nonblocking": "a non-blocking call",
    "persistent": "a persistent request",
}
POLICIES: dict[str, str] = {
    "none": "progress only in the final wait",
    "test": "MPI_Test from the computing thread",
    "thread": "a progress thread",
    "library": "the library's own progress",
}
"""How each value is called in sentences."""


class MeasuredCollective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One form and progress policy as measured: time alone in s, and overlap, with 95 % intervals.

    `overlap` None: nothing can overlap, as in the blocking form.
    """

    form: Form
    progress: Progress = "none"
    seconds: Interval
    overlap: Interval | None = None

    @property
    def way(self) -> Way:
        return self.form, self.progress


class Collective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The collective of a step: `operation` of `size` bytes, `count` times; how long it takes each way."""

    operation: str
    size: Annotated[int, Meta(ge=0)]
    count: Annotated[int, Meta(ge=1)] = 1
    measured: tuple[MeasuredCollective, ...] = ()

    def find(self, way: Way) -> MeasuredCollective | None:
        """What was measured of a form and policy."""
        return next((one for one in self.measured if one.way == way), None)


def check_collective(given: Collective | None, now: Way, may: Choices) -> None:
    """Refuses choices without a collective, and a collective without or with contradictory measurements."""
    if given is None:
        for table, values, usual in (("now", now, ("blocking", "none")), ("may", may, (None, None))):
            for axis, value, default in zip(WAY, values, usual, strict=True):
                if value != default:
                    hint = "add [collective] with operation and size"
                    raise UsageError(
                        "no collective is described", field=f"{table}.{axis}", value=value, hint=hint
                    )
        return
    if not given.measured:
        raise UsageError(
            "has no measurements",
            field="collective",
            value=given.operation,
            hint="measure it: elbowroom run collectives --out RUN; elbowroom advise ... --collectives RUN",
        )
    for one in given.measured:
        if [other.way for other in given.measured].count(one.way) > 1:
            raise UsageError(
                "is listed twice",
                field="collective.measured",
                value="/".join(one.way),
                hint="keep one of them",
            )
        if not one.seconds.low > 0:
            hint = "give the time of the operation alone, in s"
            raise UsageError("is not a time", field="collective.measured", value=one.seconds.low, hint=hint)
    _check_measured(given, now, may)


def _check_measured(given: Collective, now: Way, may: Choices) -> None:
    known = ", ".join("/".join(one.way) for one in given.measured)
    if given.find(now) is None:
        raise UsageError("was not measured", field="now.form", value="/".join(now), hint=f"measured: {known}")
    for position, (axis, values) in enumerate(zip(WAY, may, strict=True)):
        for value in () if values is None or values == "every" else values:
            if value not in {one.way[position] for one in given.measured}:
                raise UsageError(
                    "was not measured", field=f"may.{axis}", value=value, hint=f"measured: {known}"
                )


def exposed(given: Collective | None, ways: Sequence[Way], t_comp: Array) -> Array:
    """What the collective, called in one of S ways, adds to each step (s), like `t_comp` (1 + D, S), the
    computation alone: its time alone less what the computation hides. 0 without a collective.
    """
    if given is None:
        return np.zeros_like(t_comp)
    alone, overlap, _ = _columns(given, ways)
    hidable = np.minimum(alone, t_comp / given.count)
    added: Array = given.count * (alone - overlap * hidable)
    return added


def spread(given: Collective | None, ways: Sequence[Way], t_comp: Array) -> Array:
    """Standard deviation (s) of what `exposed` adds, from the measured intervals: (S,) of (S,)."""
    if given is None:
        return np.zeros_like(t_comp)
    alone, overlap, errors = _columns(given, ways)
    hidable = np.minimum(alone, t_comp / given.count)
    whole = np.where(alone < t_comp / given.count, 1 - overlap, 1.0)
    deviation: Array = given.count * np.hypot(whole * errors[0], hidable * errors[1])
    return deviation


def _columns(given: Collective, ways: Sequence[Way]) -> tuple[Array, Array, Array]:
    """Time alone and overlap of each way (S,), and the standard deviations of both (2, S)."""
    table = {one.way: _row(one) for one in given.measured}
    rows = np.array([table[way] for way in ways]).T
    return rows[0], rows[1], rows[2:]


def _row(one: MeasuredCollective) -> tuple[float, float, float, float]:
    seconds, overlap = one.seconds, one.overlap
    error = (seconds.high - seconds.low) / 2 / NORMAL_95
    if overlap is None:
        return seconds.value, 0.0, error, 0.0
    return seconds.value, overlap.value, error, (overlap.high - overlap.low) / 2 / NORMAL_95


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
