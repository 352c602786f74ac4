"""What runs measured of an accelerator, as plain samples; nothing else here reads results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import LINKS, ON_DEVICE, DeviceCase, ordered
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval, Side, Summary
from elbowroom.stats.signed_ranks import NORMAL_95

BF16_BYTES = 2
MEGA = 1e6
LEAST_SPREAD = 0.002


class GpuSample(msgspec.Struct, frozen=True, kw_only=True):
    """One measured case: rates (more is better; `unit` of the victim's, MB/s of the mover's), None where not
    measured; `spread`: relative standard errors of what the victim keeps and of the mover's rates alone and
    together, None where not known; `traffic`: MB/s that the victim moves alone if each array moves once.
    """

    case: DeviceCase
    kept: float
    victim_alone: float
    unit: str
    mover_alone: float | None = None
    mover_together: float | None = None
    spread: tuple[float | None, float | None, float | None] = (None, None, None)
    traffic: float = 0.0
    source: str = ""

    @property
    def interval(self) -> Interval | None:
        """What the victim keeps with its 95 % interval; None without a spread."""
        if self.spread[0] is None:
            return None
        half = NORMAL_95 * self.spread[0] * self.kept
        return Interval(value=self.kept, low=self.kept - half, high=self.kept + half)


@runtime_checkable
class GpuWorkload(Protocol):
    """What results of the workload `gpu` say of their case."""

    victim: str
    mover: str
    direction: str
    sms: int
    pace_mb_s: float
    node: int
    first: str
    holders: str
    plan_for: str


def samples(results: Sequence[PointResult]) -> tuple[tuple[GpuSample, ...], dict[str, int]]:
    """The cases whose victim computes on the accelerator, and how many others were left out, by reason.

    Results of other workloads are neither.
    """
    kept, left_out = [], Counter[str]()
    # Of copies of several sizes the largest ones count, which fit.py takes first.
    for item in sorted(results, key=lambda item: -getattr(item.workload, "bytes", 0)):
        workload: Any = item.workload
        if not isinstance(workload, GpuWorkload) or workload.victim not in ON_DEVICE:
            continue
        reason = _why_not(item) or _unsupported(workload)
        if reason:
            left_out[reason] += 1
        else:
            kept.append(_sample(item, workload))
    return tuple(kept), dict(left_out)


class LinkRate(msgspec.Struct, frozen=True, kw_only=True):
    """Copies between host and device alone, MB/s with a relative standard error; `node` of the pinned buffer,
    -1: not known which.
    """

    direction: str
    node: int
    rate: float
    spread: float


def links(results: Sequence[PointResult]) -> tuple[LinkRate, ...]:
    """The links whose copies were measured alone beside cores or messages: the largest copies of each."""
    rates: dict[tuple[str, int], LinkRate] = {}
    for item in sorted(results, key=lambda item: -getattr(item.workload, "bytes", 0)):
        workload: Any = item.workload
        if not isinstance(workload, GpuWorkload) or workload.victim in ON_DEVICE or item.status != "ok":
            continue
        side = item.comp if workload.victim == "copy" else item.comm
        rate = _rate(side.alone)
        if rate is None or workload.direction not in LINKS or workload.mover not in ("copy", "messages"):
            continue
        link = LinkRate(
            direction=workload.direction,
            node=workload.node,
            rate=rate,
            spread=max(_spread(side.alone) or 0.0, LEAST_SPREAD),
        )
        rates.setdefault((link.direction, link.node), link)
    return tuple(rates.values())


def _why_not(item: PointResult) -> str:
    if item.role != "point":
        return "control"
    if item.status != "ok":
        return f"status {item.status}"
    if item.comp.alone is None or item.comp.together is None:
        return "not measured alone and together"
    if not (item.comp.alone.median > 0 and item.comp.together.median > 0):
        return "a rate of 0"
    return ""


def _unsupported(workload: GpuWorkload) -> str:
    """A model has one way of holding SMs: one by one, beside a product that is planned for all SMs."""
    if workload.holders != "single":
        return "SMs are held in pairs"
    return "the product is planned for the SMs that are not held" if workload.plan_for != "all" else ""


def _sample(item: PointResult, workload: GpuWorkload) -> GpuSample:
    case = case_of(workload)
    alone, together = _rate(item.comp.alone), _rate(item.comp.together)
    assert alone is not None
    assert together is not None
    assert item.comp.alone is not None
    kept = item.comp.kept.value if item.comp.kept is not None else together / alone
    moved = _rate(item.comm.alone), _rate(item.comm.together)
    return GpuSample(
        case=case,
        kept=kept,
        victim_alone=alone,
        unit=item.comp.alone.unit if not _is_time(item.comp.alone) else f"1/{item.comp.alone.unit}",
        mover_alone=moved[0],
        mover_together=moved[1],
        spread=(_kept_spread(item.comp), _spread(item.comm.alone), _spread(item.comm.together)),
        traffic=traffic(case, alone, item.comp.alone.unit),
        source=item.id,
    )


def case_of(workload: GpuWorkload) -> DeviceCase:
    """The case of a workload; `shape` where it has one."""
    fields = {name: getattr(workload, name) for name in ("victim", "mover", "direction", "sms", "node")}
    fields |= {"pace_mb_s": float(workload.pace_mb_s), "first": workload.first or "mover"}
    shape = tuple(getattr(workload, "shape", ())) if workload.victim == "gemm" else ()
    return ordered(msgspec.convert(fields | {"shape": shape}, DeviceCase))


def traffic(case: DeviceCase, alone: float, unit: str) -> float:
    """MB/s to and from the device's memory: of a triad its own rate, of a product its three BF16 matrices
    once for each product; 0 where the rate is in a unit that does not tell.
    """
    if case.victim == "triad" and unit == "MB/s":
        return alone
    flops_per_unit = {"tflop/s": 1e12, "gflop/s": 1e9, "mflop/s": 1e6}.get(unit.lower())
    if case.victim != "gemm" or len(case.shape) != 3 or flops_per_unit is None:
        return 0.0
    m, n, k = case.shape
    products = alone * flops_per_unit / (2.0 * m * n * k)
    return products * BF16_BYTES * (m * k + k * n + m * n) / MEGA


def _is_time(summary: Summary) -> bool:
    return summary.unit in ("us", "ms", "s", "ns")


def _rate(summary: Summary | None) -> float | None:
    """More is better: of a duration its inverse."""
    if summary is None or not summary.median > 0:
        return None
    return 1 / summary.median if _is_time(summary) else summary.median


def _kept_spread(side: Side) -> float | None:
    if side.kept is None or side.kept.width is None or not side.kept.value > 0:
        return None
    return side.kept.width / (2 * NORMAL_95 * side.kept.value)


def _spread(summary: Summary | None) -> float | None:
    if summary is None or summary.width is None or not summary.median > 0:
        return None
    return summary.width / (2 * NORMAL_95 * summary.median)


class AcceleratorRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What runs measured of one accelerator with `sms` SMs, and how many points were left out, by reason."""

    device: str
    sms: int
    samples: tuple[GpuSample, ...]
    links: tuple[LinkRate, ...]
    left_out: dict[str, int] = {}


def accelerator_runs(
    runs: Sequence[tuple[Sequence[PointResult], Mapping[str, Any]]], sms: int | None = None
) -> AcceleratorRuns | None:
    """The cases and links of these runs, each with what its program said of the accelerator; None where they
    measured none. `sms`: its multiprocessors, where the runs do not say it.

    UsageError where the number of SMs is not known, and where `sms` is given without such runs.
    """
    results = [item for points, _ in runs for item in points]
    measured, left_out = samples(results)
    rates = links(results)
    if not measured and not rates:
        if sms is not None:
            raise UsageError(
                "is only valid with runs of an accelerator", field="sms", value=sms, hint="leave it out"
            )
        return None
    devices = [_device(points, facts) for points, facts in runs]
    known = {device["sms"] for device in devices if device.get("sms")}
    if sms is not None and sms < 2:
        raise UsageError("is not a valid number of SMs", field="sms", value=sms, hint="give 2 or more")
    if len(known) > 1:
        raise UsageError(
            f"the runs are of accelerators with {' and '.join(map(str, sorted(known)))} SMs",
            field="run",
            hint="fit the runs of one accelerator together, others apart",
        )
    if sms is None and not known:
        raise UsageError(
            "the runs do not record the number of SMs of the accelerator", field="sms", hint="add --sms N"
        )
    return AcceleratorRuns(
        device=str(devices[0].get("name", "")),
        sms=sms if sms is not None else int(known.pop()),
        samples=measured,
        links=rates,
        left_out=left_out,
    )


def _device(results: Sequence[PointResult], facts: Mapping[str, Any]) -> dict[str, Any]:
    """`name` and `sms` of a run's accelerator, as far as it says them."""
    device = dict(facts.get("device") or facts)
    if "sms" not in device:
        counts = {item.payload.facts["sms"] for item in results if "sms" in item.payload.facts}
        device |= {"sms": int(counts.pop())} if len(counts) == 1 else {}
    return device
