"""The jobs that `elbowroom diagnose` writes, beside jobs written by hand from what the programs print.

    python benchmarks/diagnose.py [--repeat 3] [--model M.json] [--json]

Programs: the diffusion solver in two setups; mini-kernels with two ranks that compute, and on two emulated
nodes with two ranks each that sleep. The hand-written job never sees a profile: bytes and computation are
those that the program itself counts and prints, or follow from its sources. Medians of all runs count. Both
jobs then go to `advise`, for the published machines and `--model`. Exit code 1: an error above 5 %, another
setup or advice, or a profile without a job.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from command import Command, status

from elbowroom.api import record_profile
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch.build import application, trace_libraries
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.models import published
from elbowroom.profile.job import profiled_steps
from elbowroom.verbs.model_file import Model, advise, load_job, load_model
from elbowroom.verbs.profiled_job import job_of_profile
from elbowroom.verbs.run_options import ProfiledProgram

GOAL = 0.05
HERE = Path(__file__).parent
ON_TWO_NODES = {"ELBOW_NIC_RANKS_PER_NODE": "2"}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A program: its command; `mpi` of a script that starts it; `node_bytes`: what one node receives in a
    step, where that is not what all ranks send; `inner`: how many steps of the pattern of calls are in a
    step that the program counts.
    """

    name: str
    command: tuple[str, ...]
    mpi: str | None = None
    environment: dict[str, str] = {}
    cores: int | None = None
    communication_threads: bool = False
    node_bytes: float | None = None
    inner: int = 1


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """By hand and diagnosed: bytes and seconds of a step, and the machines whose advice is the same; `setup`:
    how the diagnosed setup differs from that of the run.
    """

    name: str
    steps: str
    hand_bytes: float
    diagnosed_bytes: float
    hand_seconds: float
    diagnosed_seconds: float
    same_advice: int
    machines: int
    different: tuple[str, ...]
    setup: tuple[str, ...]

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of bytes and seconds."""
        return (
            self.diagnosed_bytes / self.hand_bytes - 1,
            self.diagnosed_seconds / self.hand_seconds - 1,
        )


def cases(mpi: Mpi, cells: int) -> list[Case]:
    kernel = str(application("elbow_minikernel", mpi))
    step = (sys.executable, str(HERE / "diffusion_step.py"))
    found = [
        Case(
            name=f"diffusion, {name}",
            command=(*step, "--cores", "1", "--cells", str(cells), "--overlap", overlap),
            mpi=mpi.prefix,
            cores=1,
            communication_threads=overlap == "1",
        )
        for name, overlap in (("one after the other", "0"), ("overlapping", "1"))
    ]
    work = ("--compute", "work", "--steps", "20", "--seconds-per-step", "0.04")
    sleep = ("--steps", "12", "--seconds-per-step", "0.1")
    for name, more, inner in (
        ("cg", (), 25),
        ("cg", ("--marks",), 1),
        ("ft", (), 1),
        ("mg", (), 1),
        ("bt", ("--marks",), 1),
    ):
        words = (mpi.launcher, "-n", "2", kernel, name, *work, *more)
        found.append(Case(name=" ".join((name, *more)), command=words, inner=inner))
    for name, received in two_nodes():
        words = (mpi.launcher, "--oversubscribe", "-n", "4", kernel, name, *sleep, "--marks")
        found.append(
            Case(name=f"{name}, two nodes", command=words, environment=ON_TWO_NODES, node_bytes=received)
        )
    return found


def two_nodes() -> Iterator[tuple[str, float]]:
    """What one of two nodes with two ranks each receives from the other in a step, from the sources: messages
    to ranks of the other node. A sum of a few values is one exchange of the values for each rank.
    """
    size = {"cg": 262144, "ft": 2097152, "mg": 196608}
    yield "cg", 2 * 25 * (size["cg"] + 2 * 8)
    yield "ft", 2 * 2 * size["ft"] + 2 * 16
    # The box is 2 x 2 x 1; its first direction is between the nodes: two messages, on five levels, twice.
    levels = sum(size["mg"] >> (2 * level) for level in range(5))
    yield "mg", 2 * 2 * 2 * levels + 2 * 8


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def printed(text: str) -> tuple[float, float]:
    """Bytes of all ranks and seconds of computation in a step, as the program prints them."""
    if not text.startswith("{"):
        numbers = [
            re.search(expression, text) for expression in (r"messages of (\d+) B", r"computes (\S+) s")
        ]
        return (float(numbers[0][1]), float(numbers[1][1])) if all(numbers) else (0.0, 0.0)
    record = json.loads(text)
    return record["bytes"] / record["steps"], record["compute_s"] / record["steps"]


def measured(case: Case, repetitions: int, models: list[Model]) -> Outcome:
    hand: list[tuple[float, float]] = []
    jobs: list[dict[str, Any]] = []
    options = ProfiledProgram(name="job", cores=case.cores, communication_threads=case.communication_threads)
    found = None
    with tempfile.TemporaryDirectory() as folder, environment(case.environment):
        for repetition in range(repetitions):
            where = Path(folder) / str(repetition)
            with tempfile.TemporaryFile() as output:
                record_profile(case.command, where, mpi=case.mpi, stdout=output)
                output.seek(0)
                hand.append(printed(output.read().decode()))
            found = profiled_steps(where, communication_threads=case.communication_threads)
            jobs.append(job_of_profile(found, options).data)
    assert found is not None
    size, seconds = (median(values) / case.inner for values in zip(*hand, strict=True))
    size = size if case.node_bytes is None else case.node_bytes
    diagnosed = jobs[0] | {"step": dict(jobs[0]["step"])}
    step = diagnosed["step"]
    step["comm_bytes"] = median(job["step"]["comm_bytes"] for job in jobs)
    step["t_comp"] = step["t_comp"] | {"seconds": median(job["step"]["t_comp"]["seconds"] for job in jobs)}
    # By hand: what is known of the setup, and the printed numbers.
    now = {"cores": case.cores or 2, "comp_node": 0, "comm_node": 0, "overlap": case.communication_threads}
    by_hand = diagnosed | {
        "now": now,
        "step": step | {"comm_bytes": size, "t_comp": step["t_comp"] | {"seconds": seconds}},
    }
    different = [
        model.machine.name for model in models if changes(model, by_hand) != changes(model, diagnosed)
    ]
    return Outcome(
        name=case.name,
        steps=f"{found.steps.count} by {found.steps.recognised_by}",
        hand_bytes=size,
        diagnosed_bytes=step["comm_bytes"],
        hand_seconds=seconds,
        diagnosed_seconds=step["t_comp"]["seconds"],
        same_advice=len(models) - len(different),
        machines=len(models),
        different=tuple(different),
        setup=tuple(
            f"{key} {diagnosed['now'].get(key)} instead of {now.get(key)}"
            for key in sorted(now.keys() | diagnosed["now"].keys())
            if diagnosed["now"].get(key) != now.get(key)
        ),
    )


def changes(model: Model, job: dict[str, Any]) -> list[tuple[str, Any]]:
    """What the advice changes, and to what."""
    return [(choice.axis, choice.advised) for choice in advise(model, load_job(job)).changes]


def print_table(outcomes: list[Outcome]) -> None:
    head = (
        "program",
        "steps",
        "bytes by hand",
        "diagnosed",
        "error",
        "T_M by hand",
        "diagnosed",
        "error",
        "advice",
    )
    print("{:30} {:>14} {:>13} {:>11} {:>7} {:>12} {:>10} {:>7} {:>8}".format(*head))
    for one in outcomes:
        size, time = one.errors
        print(
            f"{one.name:30} {one.steps:>14} {one.hand_bytes:13.0f} {one.diagnosed_bytes:11.0f} {size:+7.2%} "
            f"{1e3 * one.hand_seconds:9.3f} ms {1e3 * one.diagnosed_seconds:7.3f} ms {time:+7.2%} "
            f"{one.same_advice}/{one.machines} {' '.join((*one.different, *one.setup))}"
        )


def main() -> int:
    parser = Command(
        "Diagnosed jobs beside hand-written ones.",
        smoke="--repeat 1 --only ft --machines henri --cells 20000",
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--model", help="M.json of this machine, beside the published machines")
    parser.add_argument("--machines", default=",".join(published.names()), help="published ones")
    parser.add_argument("--cells", type=int, default=2_000_000, help="of the diffusion solver")
    parser.add_argument("--only", help="cases whose name has this")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    try:
        mpi = find_mpi()
        trace_libraries(mpi)
        models = [
            load_model(name)
            for name in (*chosen.machines.split(","), *([chosen.model] if chosen.model else []))
        ]
        outcomes, without_job = [], {}
        for case in cases(mpi, chosen.cells):
            if chosen.only is not None and chosen.only not in case.name:
                continue
            try:
                outcomes.append(measured(case, chosen.repeat, models))
            except UsageError as error:  # a profile in which no steps or no communication are recognised
                without_job[case.name] = error.sentence()
    except ElbowroomError as error:
        print(error.sentence(), file=sys.stderr)
        return error.exit_code
    if chosen.json:
        print(json.dumps({"programs": msgspec.to_builtins(outcomes), "without_job": without_job}))
    else:
        print_table(outcomes)
        for name, reason in without_job.items():
            print(f"{name:30} no job: {reason}")
    missed = [one for one in outcomes if max(map(abs, one.errors)) > GOAL or one.different or one.setup]
    return status(chosen, missed or without_job)


if __name__ == "__main__":
    sys.exit(main())
