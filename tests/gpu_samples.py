"""Samples of accelerators for tests: the published table, and samples that a known law made."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

from elbowroom.models import fit as fitting
from elbowroom.models.base import Provenance
from elbowroom.models.curves import Shape
from elbowroom.models.document import Document
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.fit import fit
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.gpu.samples import GpuSample, LinkRate, traffic

PUBLISHED = Path(__file__).parent / "data" / "gpu_published.csv"
SMS = 132
PRODUCT, OTHER_PRODUCT = (8192, 4096, 7168), (8192, 7168, 2048)
MOVED = {("sm_copy", "host"): 27000.0, ("copy", "d2h"): 29000.0}
"""MB/s of movers without a pace, printed beside the table; those inside the device are not."""
ALONE = {"gemm": (811.6, "TFLOP/s"), "triad": (3991e3, "MB/s")}
"""Rates of victims alone, printed beside the table: of the first product, which stands for the other one."""
SPREAD = 0.0015
"""Relative standard error: the spread of the published medians is 0.2 to 0.3 %."""


def published() -> list[GpuSample]:
    """The table of tests/data/gpu_published.csv as samples."""
    with PUBLISHED.open(encoding="utf-8", newline="") as lines:
        return [_sample(row) for row in csv.DictReader(lines)]


def of_first_product() -> list[GpuSample]:
    """The same without the second product."""
    return [item for item in published() if item.case.shape != OTHER_PRODUCT]


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
    alone, unit = ALONE[case.victim]
    return GpuSample(
        case=case,
        kept=float(row["kept"]),
        victim_alone=alone,
        unit=unit,
        mover_alone=pace or MOVED.get((case.mover, case.direction)),
        spread=(SPREAD, None, None),
        traffic=traffic(case, alone, unit),
    )


LINKS = (
    LinkRate(direction="d2h", node=0, rate=28000.0, spread=0.003),
    LinkRate(direction="d2h", node=1, rate=21000.0, spread=0.003),
    LinkRate(direction="h2d", node=0, rate=30000.0, spread=0.003),
)
"""Made up: the table has one node only."""


@cache
def published_part() -> GpuPart:
    """The model of the table without the second product, fitted once."""
    return fit(of_first_product(), SMS, device="H200 NVL")


@cache
def two_node_part() -> GpuPart:
    """A part of the same, with links to two nodes."""
    samples = [
        item for item in of_first_product() if item.case.sms in (0, 8, 32) and item.case.direction != "d2h"
    ]
    return fit(samples, SMS, links=LINKS, device="made")


def document(part: GpuPart) -> Document:
    """A model file of an accelerator alone."""
    shape = Shape(name="made", cores_first_socket=16, numa_per_socket=1, sockets=2)
    return fitting.accelerator_document(
        part, shape, Provenance(run="r"), "none.", created="2026-01-01T00:00:00"
    )
