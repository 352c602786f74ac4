"""What `show --json` prints for a point, and what experiments find in it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Literal

import msgspec

from elbowroom.plan.kernels import arithmetic_intensity, names
from elbowroom.points.payload import Payload
from elbowroom.points.point import WORKLOADS, Point, stored
from elbowroom.stats.interval import Side, WithInterval


class PointResult(Point, frozen=True, kw_only=True):
    """A point measured: both sides alone and together, both ratios (docs/design/method.md, rule 19), and what
    else its workload measured.

    Of an application, `comp` is its interior and `comm` its exchange, durations in us. Of extraneous accesses
    `comm` is the one-way time, alone without them and together after them. Where several processes compute,
    or form a ring, `comp` and `comm` are means over them. Of a case of an accelerator, `comp` is the victim
    and `comm` the mover. Of a call beside a computation both are durations.
    `store_factor`: bytes on the memory bus for a byte of a plain store, if the run measured it (stores.py).
    """

    id: str
    status: str
    flags: tuple[str, ...]
    comp: Side
    comm: Side
    reason: str = ""
    payload: Payload = Payload()
    store_factor: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def arithmetic_intensity(self) -> float | None:
        """Flop of the kernel for a byte; None if it has none, or is a kernel of another release."""
        return arithmetic_intensity(self.kernel, self.cursor) if self.kernel in names() else None

    @property
    def processes_of_node(self) -> int:
        """How many processes share the `n` computing cores of a node."""
        if not self.comp_cores or self.processes == "node":
            return 1
        return max(1, round(self.n / len(self.comp_cores)))

    def plain(self) -> dict[str, Any]:
        """Plain data, as `show --json` prints it. Documents have the reason of a call's loss as `reason`."""
        fields = stored(self, self.workload)
        payload = fields.pop("payload")
        computed = {"comm_threads": self.comm_threads, "arithmetic_intensity": self.arithmetic_intensity}
        plain = {key: (fields | computed | payload)[key] for key in _FIRST_KEYS}
        plain |= {key: value for key, value in payload.items() if key not in _ORDERED}
        point = {*Point.__struct_fields__, *_ORDERED}
        plain |= {key: value for key, value in fields.items() if key not in point}
        plain |= {key: (fields | {"series": None} | payload)[key] for key in _LAST_KEYS}
        if payload.get("overlapped"):
            plain["reason"] = payload["overlapped"]["reason"]
        return plain


_FIRST_KEYS = (
    "id", "plan", "kernel", "n", "size", "comp_node", "comm_node", "comm_core", "metric", "status", "flags",
    "comp", "comm", "reason", "role", "pattern", "cursor", "comm_threads", "processes", "reuse",
    "arithmetic_intensity", "core_khz", "uncore_khz", "turbo", "governor", "traces", "n_other", "comp_cores",
)  # fmt: skip
_LAST_KEYS = ("application", "steps", "extraneous", "series", "program", "facts")
_ORDERED = frozenset((*_FIRST_KEYS, *_LAST_KEYS))


def documented_point() -> type[msgspec.Struct]:
    """The type of a point in documents, with the payloads of all workloads."""
    kinds: list[type[msgspec.Struct]] = [
        PointResult,
        Payload,
        *(workload.payload for workload in WORKLOADS.all()),
    ]
    types: dict[str, Any] = {"comm_threads": (int, 1), "arithmetic_intensity": (float | None, None)}
    for field in [field for kind in kinds for field in msgspec.structs.fields(kind)]:
        if field.name in _ORDERED or field.name not in {*Point.__struct_fields__, "payload"} - {"workload"}:
            factory = field.default_factory
            default = field.default if factory is msgspec.NODEFAULT else factory()
            types[field.name] = (field.type,) if default is msgspec.NODEFAULT else (field.type, default)
    namespace = {"__doc__": PointResult.__doc__}
    order = {name: place for place, name in enumerate(_FIRST_KEYS)}
    names = sorted(types, key=lambda name: order.get(name, len(order)))
    fields = [(name, *types[name]) for name in names]
    return msgspec.defstruct("PointResult", fields, namespace=namespace, kw_only=True)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found in the data, in words and in numbers. `level` colours it, `points` says from where."""

    key: str
    level: Literal["quiet", "interference", "n/a", "note"]
    text: str
    values: dict[str, float | int | str | None] = {}
    points: tuple[str, ...] = ()


Grade = Literal["yes", "likely", "no", "at most", "cannot say"]
"""How sure a run is of interference (results/grades.py): `no` where it is certainly below the smallest effect
that the run could see, `at most` where only a bound is known.
"""


class LostShare(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """1 - kept, as a share, with its 95 % interval; a negative loss is a gain."""

    loss: float
    low: float | None = None
    high: float | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the machine was quiet enough to believe the run, and what the run says.

    `trusted` false means exit code 3; `reasons` then says why, one plain sentence each. `comp` and `comm`:
    what each side of `point` loses, the point that the grade rests on; None of a side that was not measured.
    `visible`: the smallest loss there that a run like this one reports as `yes` in four of five cases.
    """

    trusted: bool
    text: str
    reasons: tuple[str, ...] = ()
    interference: bool | None = None
    findings: tuple[Finding, ...] = ()
    grade: Grade = "cannot say"
    comp: LostShare | None = None
    comm: LostShare | None = None
    visible: float | None = None
    point: str = ""

    @property
    def further_reasons(self) -> tuple[str, ...]:
        """The reasons that `text` does not give already."""
        return tuple(reason for reason in self.reasons if reason not in self.text)


def mean_mhz(items: Sequence[PointResult], phase: str, role: str) -> float | None:
    """Mean frequency of the cores that play a role during a phase, MHz; None where none was readable."""
    traces = [
        trace
        for item in items
        for trace in item.payload.traces
        if trace.phase == phase and trace.role == role
    ]
    values = [khz / 1000 for trace in traces for khz in trace.khz]
    return fmean(values) if values else None
