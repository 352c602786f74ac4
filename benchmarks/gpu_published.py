"""A virtual GPU beside published figures of the device that it resembles (docs/reference/virtual-gpu.md).

    python benchmarks/gpu_published.py [--machine h200-nvl] [--table]

The figures are those of tests/data/gpu_published.csv: medians of one H200 NVL. As there, blocks that hold SMs
take them in pairs, and a product beside held SMs is planned for the others. Prints the mean and the largest
difference in points by victim and mover, with --table every cell. No result depends on this host.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from command import Command

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from elbowroom.virtual.answers import VirtualMachine  # noqa: E402
from elbowroom.virtual.gpu import Gpu, sides_of  # noqa: E402
from elbowroom.virtual.gpu_answers import gpu_rates  # noqa: E402
from elbowroom.virtual.machines import MACHINES  # noqa: E402

PUBLISHED = ROOT / "tests" / "data" / "gpu_published.csv"
COPY_BYTES = 64 << 20


def case_of(row: Mapping[str, str]) -> dict[str, Any]:
    """The case of a row."""
    victim: dict[str, Any] = {"kind": row["victim"]}
    if row["shape"]:
        victim |= dict(zip("mnk", map(int, row["shape"].split("x")), strict=True))
    mover: dict[str, Any] = {"kind": row["mover"]}
    if row["direction"]:
        mover |= {"direction": row["direction"], "bytes": COPY_BYTES}
    if row["pace_mb_s"]:
        mover["pace_mb_s"] = float(row["pace_mb_s"])
    if row["sms"]:
        mover["sms"] = int(row["sms"])
    if row["mover"] in ("sm_idle", "sm_copy"):
        mover |= {"pairs": True, "plan_others": victim["kind"] == "gemm"}
    return {"a": victim, "b": mover}


def kept(machine: VirtualMachine, gpu: Gpu, row: Mapping[str, str]) -> float:
    """What the victim of a row keeps."""
    host = machine.gpu_host()
    sides = sides_of(case_of(row))
    before = gpu_rates(gpu, host, [sides["a"]])[0]
    together = gpu_rates(gpu, host, list(sides.values()))[0]
    assert before is not None
    assert together is not None
    return together.value / before.value


def main() -> int:
    """Prints the differences."""
    parser = Command(__doc__.partition("\n")[0], smoke="")
    parser.add_argument("--machine", default="h200-nvl")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    definition = MACHINES.get(asked.machine)
    if isinstance(definition.gpu, msgspec.UnsetType):
        parser.error(f"{asked.machine} has no GPU")
    gpu = definition.gpu
    machine = VirtualMachine(definition)
    rows = list(csv.DictReader(PUBLISHED.read_text(encoding="ascii").splitlines()))
    points = defaultdict(list)
    for row in rows:
        mine, theirs = 100 * kept(machine, gpu, row), 100 * float(row["kept"])
        pace = f"{float(row['pace_mb_s']) / 1e3:g} GB/s" if row["pace_mb_s"] else ""
        name = " ".join(filter(None, (row["victim"], row["shape"], row["mover"], row["direction"], pace)))
        points[name].append((row["sms"], theirs, mine))
    print(f"{'victim and mover':<44} {'mean':>6} {'most':>6}  (points)")
    for name, cells in points.items():
        apart = [abs(mine - theirs) for _, theirs, mine in cells]
        print(f"{name:<44} {sum(apart) / len(apart):6.1f} {max(apart):6.1f}")
        for sms, theirs, mine in cells if asked.table else ():
            print(f"    {f'k = {sms}' if sms else 'copy engine':<12} {theirs:6.1f} {mine:6.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
