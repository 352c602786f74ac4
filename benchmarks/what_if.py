"""What `elbowroom profile what-if` predicts from one profile, beside the setup that really is changed.

    python benchmarks/what_if.py --model M.json [--repeat 3]
    python benchmarks/what_if.py --virtual                 nine virtual machines, the same result everywhere

`what_if.c` and the diffusion solver run with two computing cores and with one, and with and without overlap;
two ranks on the first two cores of this host. Profiled and changed runs alternate; medians. The prediction is
the model's (bound by memory), and for fewer cores also that of a computation that the cores bound.

--virtual: programs on the nine machines as networks of credits, whose times are known with and without each
change. The models were fitted to runs with 1 % noise, as in benchmarks/advise.py.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from advise import document_of, truth_of
from command import Command

from elbowroom.advise.job import JobStep, Setup
from elbowroom.advise.setups import load_of
from elbowroom.advise.what_if import NodeTimes, WhatIf, changes_of
from elbowroom.api import predict_changes, record_profile
from elbowroom.errors import ElbowroomError
from elbowroom.launch import recorder
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.models import published
from elbowroom.models.curves import STREAMS
from elbowroom.verbs.model_file import Model, load_model
from elbowroom.virtual.credits import Credits
from elbowroom.virtual.loads import load_streams

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


def virtual(machines: list[str]) -> None:
    """Mean and worst error of each change's time, beside taking the time of now."""
    errors: dict[str, list[tuple[float, float, bool]]] = {}
    for machine in machines:
        truth = truth_of(machine)
        model = Model(document_of(machine, 0.01, 0))
        shape, far = truth.shape, truth.shape.nodes - 1
        most = shape.cores_first_socket - 1
        for n, ratio, node in itertools.product((most, most // 2), (0.5, 1.0, 2.0), (0, far)):
            now = Setup(cores=n, comp_node=0, comm_node=node, overlap=False)
            fewer = max(1, n // 4)
            work = ratio * true_streams(truth, now)[0]
            times, after = (
                true_node(truth, now, work),
                {
                    "fewer": true_node(truth, msgspec.structs.replace(now, cores=n - fewer), work).total,
                    "near": true_node(
                        truth, msgspec.structs.replace(now, comm_node=shape.nic_node or 0), work
                    ).total,
                    "without": true_node(truth, now, work, overlaps=False).total,
                },
            )
            for change in changes_of(times, now, model.document, fewer_cores=fewer):
                name = next((one for one in after if one in change.name), None)
                if name is not None and "by the cores" not in change.name and change.then_s is not None:
                    inside = change.then_s.low <= after[name] <= change.then_s.high
                    errors.setdefault(name, []).append(
                        (change.then_s.value / after[name] - 1, times.total / after[name] - 1, inside)
                    )
    print(f"{'change':10} {'programs':>8} {'mean error':>11} {'worst':>7} {'now instead':>12} {'in 90 %':>8}")
    for name, found in errors.items():
        own, none, inside = (np.abs(np.array(column, dtype=float)) for column in zip(*found, strict=True))
        figures = f"{own.mean():11.2%} {own.max():7.2%} {none.mean():12.2%} {inside.mean():8.2f}"
        print(f"{name:10} {len(found):8} {figures}")


def true_streams(truth: Credits, setup: Setup) -> tuple[float, float, float, float]:
    """Bandwidths of computation and messages, alone and together."""
    found = load_streams(truth, load_of(setup, JobStep(comm_bytes=1.0)))
    return tuple(getattr(found, stream) for stream in STREAMS)  # type: ignore[return-value]


def true_node(truth: Credits, setup: Setup, work: float, *, overlaps: bool = True) -> NodeTimes:
    """A second of messages far from the NIC, and `work`, from the same moment on; or one after the other."""
    far = true_streams(truth, msgspec.structs.replace(setup, comm_node=truth.shape.nodes - 1))
    comp_alone, comm_alone, comp, comm = true_streams(truth, setup)
    if not overlaps:
        alone = work / comp_alone, far[1] / comm_alone
        return NodeTimes(computation=alone[0], network=alone[1], both=0.0, total=sum(alone))
    both = min(work / comp, far[1] / comm)
    computation = both + (work - both * comp) / comp_alone
    network = both + (far[1] - both * comm) / comm_alone
    return NodeTimes(computation=computation, network=network, both=both, total=max(computation, network))


def main() -> int:
    parser = Command("Predicted changes beside real ones.", smoke="--virtual --machines henri")
    parser.add_argument("--model", help="M.json of this machine")
    parser.add_argument("--virtual", action="store_true")
    parser.add_argument("--machines", default=",".join(published.names()), help="virtual ones")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.virtual:
        virtual(chosen.machines.split(","))
        return 0
    if chosen.model is None:
        parser.error("give --model M.json, or --virtual")
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
