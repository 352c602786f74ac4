"""Samples of accelerators for tests: the published table, and samples that a known law made."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.samples import GpuSample, traffic

ANCHOR = Path(__file__).parent / "data" / "gpu_anchor.csv"
ANCHOR_SMS = 132
MOVED = {("sm_copy", "host"): 27000.0, ("copy", "d2h"): 29000.0}
"""MB/s of the movers of the table that have no pace."""
SPREAD = 0.0015
"""Relative standard error: the spread of the published medians is 0.2 to 0.3 %."""


def anchor() -> list[GpuSample]:
    """The table of tests/data/gpu_anchor.csv as samples."""
    with ANCHOR.open(encoding="utf-8", newline="") as lines:
        return [_sample(row) for row in csv.DictReader(lines)]


def _sample(row: dict[str, Any]) -> GpuSample:
    pace = float(row["pace_mb_s"] or 0)
    case = DeviceCase(
        victim=row["victim"],
        mover=row["mover"],
        direction=row["direction"],
        sms=int(row["sms"] or 0),
        pace_mb_s=pace,
        shape=tuple(int(number) for number in row["shape"].split("x") if number),
    )
    alone = float(row["victim_alone"])
    return GpuSample(
        case=case,
        kept=float(row["kept"]),
        victim_alone=alone,
        unit=row["unit"],
        mover_alone=pace or MOVED.get((case.mover, case.direction)),
        spread=(SPREAD, None, None),
        traffic=traffic(case, alone, row["unit"]),
    )
