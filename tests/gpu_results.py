"""Results of cases on an accelerator for tests, as runs of the plans `gpu` and `gpu-overlap` have them."""

from __future__ import annotations

from typing import Any

import msgspec

from elbowroom.points.streams import StreamPayload
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept, Side, Summary


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """As the workload `gpu`: what samples read of it."""

    victim: str
    mover: str
    direction: str = ""
    sms: int = 0
    pace_mb_s: float = 0.0
    bytes: int = 1 << 26
    node: int = -1
    first: str = "victim"
    holders: str = "single"
    plan_for: str = "all"
    messages: bool = False
    shape: tuple[int, ...] = (8192, 4096, 7168)


def summary(median: float, unit: str = "MB/s") -> Summary:
    low, high = 0.99 * median, 1.01 * median
    return Summary(median=median, d1=low, d9=high, low=low, high=high, count=5, unit=unit)


def side(alone: float, together: float, unit: str = "MB/s") -> Side:
    ratio = alone / together if unit == "us" else together / alone
    kept = Kept(value=ratio, low=0.99 * ratio, high=1.01 * ratio)
    return Side(alone=summary(alone, unit), together=summary(together, unit), kept=kept)


def result(workload: Any, comp: Side, comm: Side, **changes: Any) -> PointResult:
    fields: dict[str, Any] = {
        "id": "p", "plan": "gpu", "kernel": "memset_nt", "n": 4, "size": 64_000_000, "comp_node": 0,
        "comm_node": 0, "comm_core": 8, "metric": "bandwidth", "status": "ok", "flags": (),
    }  # fmt: skip
    payload = {name: changes.pop(name) for name in ("facts", "streams") if name in changes}
    fields["payload"] = StreamPayload(**payload)
    return PointResult(**fields | {"workload": workload, "comp": comp, "comm": comm} | changes)
