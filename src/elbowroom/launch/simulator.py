"""Runs the simulators of single requests (core/simulate), broadcasts (lib/broadcast) and task graphs
(lib/taskflow): executables that are built on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.broadcast.factorizations import (
    ELEMENT,
    INNER_BLOCK,
    STEPS,
    FactorizationRequest,
    SimulatedFactorization,
)
from elbowroom.broadcast.network import Network
from elbowroom.broadcast.simulated import PLATFORMS, BroadcastRequest, SimulatedBroadcast, usual_segment
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.virtual.simulated import Observation

PATIENCE_S = 600.0
FACTORIZATION_PATIENCE_S = 7200.0


def simulate(machine: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> list[Observation]:
    """What the experiments see on that machine, in order (docs/guide/simulate.md says what both hold).

    MachineError when the simulator cannot be built, dies or refuses.
    """
    request = msgspec.json.encode({"node": machine, "experiments": list(experiments)})
    path = build.simulator()
    done = run([str(path)], field="simulator", given=request + b"\n", patience=PATIENCE_S, doing="simulating")
    lines = done.stdout.splitlines()
    if done.code == 0 and len(lines) == len(experiments):
        return [msgspec.json.decode(line, type=Observation) for line in lines]
    raise MachineError(
        f"the simulator failed (exit code {done.code}): {lines[-1] if lines else done.last_line}",
        field="simulator",
        value=str(path),
        hint="remove it, so that it is built again",
    )


class _Refused(msgspec.Struct):
    error: str


def simulate_broadcast(request: BroadcastRequest) -> SimulatedBroadcast:
    """When the recipients have the data; UsageError for a platform that SimGrid cannot use, MachineError when
    the simulator cannot be built or dies.
    """
    path = build.broadcast_simulator()
    done = run(
        [str(path), *_broadcast_words(request)],
        field="broadcast-simulator",
        patience=PATIENCE_S,
        late="try again with fewer recipients",
        doing="simulating",
    )
    try:
        if done.code == 0:
            return msgspec.json.decode(done.stdout, type=SimulatedBroadcast)
        reason = msgspec.json.decode(done.stdout, type=_Refused).error
    except msgspec.DecodeError as error:
        reason = f"the simulator of broadcasts failed (exit code {done.code}): {done.last_line}"
        if request.platform in PLATFORMS:
            raise MachineError(
                reason,
                field="broadcast-simulator",
                value=str(path),
                hint="remove it, so that it is built again",
            ) from error
    raise UsageError(
        f"cannot be used: {reason.rstrip('.')}",
        field="platform",
        value=request.platform,
        hint=f"name a platform of SimGrid, or {', '.join(PLATFORMS)}",
    )


def simulate_factorization(request: FactorizationRequest) -> SimulatedFactorization:
    """How long it takes; MachineError when the simulator cannot be built or dies."""
    path = build.taskflow_simulator()
    done = run(
        [str(path), *_factorization_words(request)],
        field="taskflow-simulator",
        patience=FACTORIZATION_PATIENCE_S,
        late="try again with fewer tiles",
        doing="simulating",
    )
    if done.code == 0:
        return msgspec.json.decode(done.stdout, type=SimulatedFactorization)
    raise MachineError(
        f"the simulator of task graphs failed (exit code {done.code}): {done.last_line}",
        field="taskflow-simulator",
        value=str(path),
        hint="remove it, so that it is built again",
    )


def _factorization_words(request: FactorizationRequest) -> Iterator[str]:
    block = request.times.block
    values = {
        "task": request.task,
        "rows": request.rows,
        "columns": request.columns,
        "grid-rows": request.grid[0],
        "grid-columns": request.grid[1],
        "tile": ELEMENT * block * block,
        "factor": ELEMENT * block * min(block, INNER_BLOCK),
        "workers": request.workers,
        "times": ",".join(str(request.times.seconds[step]) for step in STEPS),
        "bandwidth": request.bandwidth,
        "latency": request.latency,
        "overhead": request.overhead,
        "segment": request.segment or usual_segment(request.tree, ELEMENT * block * block),
    }
    yield from (f"--{name}={value}" for name, value in values.items())
    yield "--no-broadcasts" if request.tree == "none" else f"--tree={request.tree}"
    if not request.priorities:
        yield "--no-priorities"
    if not request.early:
        yield "--wait-released"


def _broadcast_words(request: BroadcastRequest) -> Iterator[str]:
    values = {
        name: getattr(request, name)
        for name in (
            "recipients", "size", "bandwidth", "latency", "overhead", "tree", "segment", "window",
        )
    }  # fmt: skip
    values["segment"] = request.segment or usual_segment(request.tree, request.size)
    if request.platform == "fat-tree":
        values |= {"racks": request.racks, "uplink": request.uplink}
    elif request.platform != "star":
        values["platform"] = request.platform
    if request.priorities:
        values["priorities"] = ",".join(map(str, request.priorities))
    yield from (f"--{name}={value}" for name, value in values.items())
    if request.order != "rank":
        yield "--shuffled"
    if request.order == "rack":
        yield "--told"


class BroadcastCase(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast whose time is to be predicted: tree `auto` for the best one, a `window` of 0 for the
    library's.
    """

    size: int
    recipients: int
    tree: str = "auto"
    segment: int = 0
    window: int = 0


class PredictedBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """The way, s until the last recipient has the data, and the bytes that the busiest recipient forwards;
    `choosing` and `predicting`: s that the model took for it.
    """

    tree: str
    segment: int
    received: float
    forwarded: int
    choosing: float
    predicting: float


def predict_broadcasts(network: Network, cases: Sequence[BroadcastCase]) -> list[PredictedBroadcast]:
    """What lib/broadcast's cost model says, in order; MachineError when it cannot be built or dies."""
    path = build.broadcast_costs()
    given = msgspec.json.encode({"network": network, "cases": cases})
    done = run(
        [str(path)],
        field="broadcast-costs",
        given=given,
        patience=PATIENCE_S,
        late="try again with fewer recipients",
        doing="simulating",
    )
    if done.code == 0:
        return msgspec.json.decode(done.stdout, type=list[PredictedBroadcast])
    raise MachineError(
        f"the cost model of broadcasts failed (exit code {done.code}): {done.last_line}",
        field="broadcast-costs",
        value=str(path),
        hint="remove it, so that it is built again",
    )
