"""Factorizations on simulated clusters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from elbowroom.broadcast.factorizations import FactorizationRequest as FactorizationRequest
from elbowroom.broadcast.factorizations import SimulatedFactorization as SimulatedFactorization
from elbowroom.broadcast.factorizations import StepTimes as StepTimes
from elbowroom.documents import DocumentFormat
from elbowroom.launch import build, simulator
from elbowroom.launch.step_times import FIRST_GUESS, time_steps, times_command
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.points.factorizations import parse_grid as parse_grid

GIGA = 1e9


class FactorizationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast factorize --json` prints: the time of the factorization, its rate (Gflop/s of all
    processes), the share of time that workers computed, and the counts of its broadcasts; `complete_share` is
    null where there are none.
    """

    schema: str = "elbowroom/factorization"
    version: int = 1
    simulated: bool
    time_us: float
    Gflop_s: float
    busy: float
    task: str
    tree: str
    segment: int
    processes: int
    tasks: int
    data: int
    broadcasts: int
    complete_share: float | None
    messages: int
    most_recipients: int


def simulate_factorization(request: FactorizationRequest) -> SimulatedFactorization:
    """Runs the task graph of a factorization over a simulated cluster, by the libraries that do it for real;
    kernels take the given times. UsageError for what cannot be simulated.
    """
    return simulator.simulate_factorization(request)


STEP_TIMES_FORMAT = DocumentFormat(
    kind=StepTimes,
    schema="elbowroom/step-times",
    version=1,
    name="times",
    hint="factorizations-inline times prints such a file",
)


def read_step_times(file: str | Path) -> StepTimes:
    """The times that `factorizations-inline times` printed into a file. UsageError where they are none."""
    return STEP_TIMES_FORMAT.read(Path(file))


def measure_step_times(block: int) -> StepTimes:
    """The times on one core of this machine, for tiles of `block` rows. MachineError where the program cannot
    be built.
    """
    return time_steps(block)


def plan_factorization(block: int | None) -> PlannedStarts:
    """What would be built and started; `block`: rows of a tile, None where the times are given."""

    def find() -> Iterator[PlannedStart]:
        if block is not None:
            what = "the kernels of a factorization on one core; the time is a first guess"
            yield PlannedStart(what=what, commands=(shlex.join(times_command(block)),), seconds=FIRST_GUESS)
        what = "the simulator of task graphs; it measures nothing"
        yield PlannedStart(what=what, commands=(str(build.taskflow_simulator()),))

    return plan_starts(find)


def factorization_document(
    simulated: SimulatedFactorization, request: FactorizationRequest
) -> FactorizationDocument:
    """A simulated factorization and what was asked, as one document."""
    return FactorizationDocument(
        simulated=True,
        time_us=simulated.seconds * 1e6,
        Gflop_s=request.flops / simulated.seconds / GIGA,
        busy=simulated.busy,
        task=request.task,
        tree=request.tree,
        segment=request.segment,
        processes=request.processes,
        tasks=simulated.tasks,
        data=simulated.data,
        broadcasts=simulated.broadcasts,
        complete_share=simulated.complete / simulated.broadcasts if simulated.broadcasts else None,
        messages=simulated.messages,
        most_recipients=simulated.most_recipients,
    )
