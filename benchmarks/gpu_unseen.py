"""A model of a GPU on matrix products that it has not seen, with the virtual GPU as the truth.

    python benchmarks/gpu_unseen.py [--machine h200-nvl]              two minutes

The plan `gpu-overlap` runs twelve products beside SMs that are held, that copy inside the device, beside a
copy engine, and planned for fewer SMs. A model is fitted to six of them (`elbowroom fit`), and predicts the
other six (`evaluate`). Then `advise` chooses between a copy engine and k SMs that copy, for steps of the six
with few and many bytes. Prints mean errors, and how much longer the advised step takes than the best one, by
the truth without noise. Goals: 8 % for each product, 1 % on average. The simulation's law is not the model's.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from command import Command, status
from device_plans import FITTED, UNSEEN

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from elbowroom import cli  # noqa: E402
from elbowroom.virtual.answers import VirtualMachine  # noqa: E402
from elbowroom.virtual.gpu import GpuSide  # noqa: E402
from elbowroom.virtual.gpu_answers import gpu_rates  # noqa: E402
from elbowroom.virtual.machines import MACHINES  # noqa: E402

Shape = tuple[int, int, int]

SMS = (4, 8, 16, 20, 32)
STEP_S = 0.01
BYTES = (2.5e8, 1e9, 4e9)
COPY_BYTES = 64 << 20
PLAN = ("victims=gemm", "movers=sm_idle,sm_target,sm_hbm,d2d", "orders=mover")


def elbowroom(*words: str, check: bool = True) -> str:
    """The output of a command that this process runs; CalledProcessError where it fails, if `check`."""
    output, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = cli.run(list(words))
    if check and code != 0:
        raise subprocess.CalledProcessError(code, words, stderr=errors.getvalue())
    output.seek(0)
    return output.read()


def run(folder: Path, machine: str, number: int, shape: Shape) -> str:
    """The folder of a run with this product."""
    out = folder / str(number)
    sets = [word for key in (*PLAN, f"gemm={','.join(map(str, shape))}") for word in ("--set", key)]
    elbowroom("run", "gpu-overlap", "--machine", machine, "--seed", str(number), *sets, "--out", str(out))
    return str(out)


def step_seconds(machine: VirtualMachine, shape: Shape, moved: float, mover: GpuSide) -> float:
    """The truth."""
    gpu = machine.definition.gpu
    assert not isinstance(gpu, msgspec.UnsetType)
    host = machine.gpu_host()
    victim = GpuSide(kind="gemm", m=shape[0], n=shape[1], k=shape[2])

    def rates(*sides: GpuSide) -> list[float]:
        return [answer.value for answer in gpu_rates(gpu, host, sides) if answer is not None]

    (product,), (copy,) = rates(victim), rates(mover)
    kept, together = rates(victim, mover)
    return overlapped_seconds(STEP_S, moved, product, kept, copy, together)


def overlapped_seconds(
    seconds: float, moved: float, product: float, kept: float, copy: float, together: float
) -> float:
    """A product that takes so long alone, and bytes that are moved: both run until one has ended, then the
    other alone. Rates of both sides alone and together; those of copies in MB/s.
    """
    ends = seconds * product / kept, moved / (1e6 * together)
    first = min(ends)
    left = 1 - first / ends[0], 1 - first / ends[1]
    return first + max(left[0] * seconds, left[1] * moved / (1e6 * copy))


def mover_of(way: str, sms: int) -> GpuSide:
    """A setup of the advice as a side."""
    if way == "copy":
        return GpuSide(kind="copy", direction="d2d", bytes=COPY_BYTES)
    return GpuSide(kind="sm_copy", direction="hbm", sms=sms, bytes=COPY_BYTES)


def excess(machine: VirtualMachine, model: str, folder: Path, shape: Shape, moved: float) -> float:
    """How much longer the advised step takes than the best one."""
    job = folder / "job.toml"
    job.write_text(
        f'[gpu]\nvictim = "gemm"\nshape = {list(shape)}\nseconds = {STEP_S}\nbytes = {moved}\n'
        f'moves = "d2d"\nways = ["copy", "sm_copy"]\nsms = {list(SMS)}\n'
    )
    advised = json.loads(elbowroom("advise", model, "--job", str(job), "--json"))["advised"]["setup"]
    chosen = mover_of(advised["way"], advised["sms"])
    choices = [mover_of("copy", 0), *(mover_of("sm_copy", k) for k in SMS)]
    best = min(step_seconds(machine, shape, moved, choice) for choice in choices)
    return step_seconds(machine, shape, moved, chosen) / best - 1


def mean_errors(lines: Sequence[dict[str, Any]]) -> float:
    """Of what the product keeps, over all cases."""
    return sum(line["cases"] * line["victim"] for line in lines) / sum(line["cases"] for line in lines)


def main() -> int:
    """Prints errors and excesses."""
    parser = Command(__doc__.partition("\n")[0], smoke="--shapes 1")
    parser.add_argument("--machine", default="h200-nvl")
    parser.add_argument("--shapes", type=int, default=len(UNSEEN), help="of each kind, the first ones")
    asked = parser.parse_args()
    fitted, unseen = FITTED[: asked.shapes], UNSEEN[: asked.shapes]
    machine = VirtualMachine(MACHINES.get(asked.machine), noise=0)
    worst, excesses = 0.0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shapes = [*fitted, *unseen]
        runs = [run(folder, asked.machine, number, shape) for number, shape in enumerate(shapes)]
        model = str(folder / "model.json")
        elbowroom("fit", *runs[: len(fitted)], "-o", model)
        for shape, path in zip(unseen, runs[len(fitted) :], strict=True):
            lines = json.loads(elbowroom("evaluate", path, model, "--json"))["lines"]
            worst = max(worst, mean_errors(lines))
            more = [excess(machine, model, folder, shape, moved) for moved in BYTES]
            excesses += more
            each = ", ".join(f"{line['family'][5:]} {100 * line['victim']:.1f}" for line in lines)
            print(f"{'x'.join(map(str, shape)):<16} mean error {100 * mean_errors(lines):.1f} % ({each})")
            print(f"{'':<16} advised step longer by {', '.join(f'{100 * one:.1f}' for one in more)} %")
    mean = 100 * float(np.mean(excesses))
    print(f"advised steps: {mean:.1f} % on average, {100 * max(excesses):.1f} % at most above the best")
    return status(asked, worst > 0.08 or mean > 1)


if __name__ == "__main__":
    sys.exit(main())
