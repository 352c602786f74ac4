"""What `elbowroom profile what-if` predicts from one profile, beside the setup that really is changed.

    python benchmarks/what_if.py --model M.json [--repeat 3]

`what_if.c` and the diffusion solver run with two computing cores and with one, and with and without overlap;
two ranks on the first two cores of this host. Profiled and changed runs alternate; medians. The prediction is
the model's (bound by memory), and for fewer cores also that of a computation that the cores bound.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import msgspec

from elbowroom.api.models import load_model
from elbowroom.api.profiles import record_profile
from elbowroom.api.what_if import WhatIf, predict_changes
from elbowroom.errors import ElbowroomError
from elbowroom.launch import recorder
from elbowroom.launch.mpi import Mpi, find_mpi

HERE = Path(__file__).parent
STEPS = 30


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A program now and changed; `cores` that compute now; `named`: which changes predict it."""

    name: str
    now: tuple[str, ...]
    then: tuple[str, ...]
    cores: int
    communication_threads: bool = False
    named: str


def cases(mpi: Mpi, folder: Path) -> list[Case]:
    program = folder / "what_if"
    compiler = Path(mpi.compiler).with_name(Path(mpi.compiler).name.replace("mpicxx", "mpicc"))
    environment = {**os.environ, "OMPI_CC": os.environ.get("CC", "cc")}
    words = [compiler, "-O2", "-ftree-vectorize", "-o", program, HERE / "what_if.c", "-lpthread"]
    subprocess.run(words, check=True, env=environment)
    large, small = ("16000000", "8000000", "1"), ("16000000", "200000", "200")

    def run(load: tuple[str, str, str], cores: int, overlap: int) -> tuple[str, ...]:
        size, doubles, flops = load
        numbers = (str(STEPS), size, doubles, flops, str(cores), str(overlap))
        return (mpi.launcher, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n", "2",
                str(program), *numbers)  # fmt: skip

    def step(cores: int, overlap: int) -> tuple[str, ...]:
        numbers = ("--cores", str(cores), "--overlap", str(overlap))
        return (sys.executable, str(HERE / "diffusion_step.py"), *numbers)

    fewer, apart = "core fewer", "without overlap"
    return [
        Case(name="memory, 1 core fewer", now=run(large, 2, 0), then=run(large, 1, 0), cores=2, named=fewer),
        Case(name="flops, 1 core fewer", now=run(small, 2, 0), then=run(small, 1, 0), cores=2, named=fewer),
        Case(name="diffusion, 1 core fewer", now=step(2, 0), then=step(1, 0), cores=2, named=fewer),
        Case(name="memory, without overlap", now=run(large, 1, 1), then=run(large, 1, 0), cores=1,
             communication_threads=True, named=apart),
        Case(name="flops, without overlap", now=run(small, 1, 1), then=run(small, 1, 0), cores=1,
             communication_threads=True, named=apart),
        Case(name="diffusion, without overlap", now=step(1, 1), then=step(1, 0), cores=1,
             communication_threads=True, named=apart),
    ]  # fmt: skip


def seconds(text: str) -> float:
    found = re.search(r"step (\S+) s", text)
    assert found is not None, text
    return float(found[1])


def measured(case: Case, repetitions: int, model: str, mpi: Mpi) -> str:
    now, then, found = [], [], None
    prefix = mpi.prefix if case.now[0] == sys.executable else None
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(repetitions):
            with tempfile.TemporaryFile() as output:
                where = Path(folder) / str(repetition)
                record_profile(case.now, where, mpi=prefix, stdout=output)
                output.seek(0)
                now.append(seconds(output.read().decode()))
            other = recorder.prepare(case.then, None)
            done = subprocess.run(other.command, env=other.env, capture_output=True, text=True, check=True)
            then.append(seconds(done.stdout))
            found = predict_changes(
                where, model, cores=case.cores, communication_threads=case.communication_threads
            )
    assert found is not None
    truth = median(then) / median(now) - 1
    return (
        f"{case.name:28} {1e3 * median(now):8.2f} ms {1e3 * median(then):8.2f} ms {truth:+8.1%}   "
        + ", ".join(predicted(found, case.named))
    )


def predicted(found: WhatIf, named: str) -> list[str]:
    """Each prediction of that change, with its interval."""
    return [
        f"{one.change.value:+.1%} ({one.change.low:+.1%} to {one.change.high:+.1%})"
        f"{' by the cores' if 'cores' in one.name.rpartition('bound')[2] else ''}"
        for one in found.changes
        if named in one.name and one.change is not None
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Predicted changes beside real ones.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    try:
        mpi = find_mpi()
        load_model(chosen.model)
        print(f"{'case':28} {'step now':>11} {'changed':>11} {'really':>8}   predicted (90 %)")
        with tempfile.TemporaryDirectory() as folder:
            for case in cases(mpi, Path(folder)):
                print(measured(case, chosen.repeat, chosen.model, mpi), flush=True)
    except ElbowroomError as error:
        print(error.sentence(), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
