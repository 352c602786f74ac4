"""Simulation of a node (docs/guide/simulate.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch import simulator
from elbowroom.launch.virtual import load
from elbowroom.models.curves import Shape
from elbowroom.models.load import Computing, Copy, Load, Messages, check_load
from elbowroom.virtual.request_calibration import scaled
from elbowroom.virtual.request_node import PARAMETERS as PARAMETERS
from elbowroom.virtual.request_node import Parameter, changed
from elbowroom.virtual.request_node import SimulatedNode as SimulatedNode
from elbowroom.virtual.requests import Moment, Requests, curve, experiment
from elbowroom.virtual.simulated import Curve as Curve
from elbowroom.virtual.simulated import Latency as Latency
from elbowroom.virtual.simulated import LossOnset as LossOnset
from elbowroom.virtual.simulated import SimulatedRow as SimulatedRow
from elbowroom.virtual.simulated import onset_of
from elbowroom.virtual.simulated import who as who
from elbowroom.virtual.simulated_figures import bandwidths

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.models.load import Direction
    from elbowroom.virtual.requests import Pattern


class Simulated(NamedTuple):
    """A node, and a curve over n for every message size, in order, with what it shows."""

    node: SimulatedNode
    curves: tuple[Curve, ...]
    findings: tuple[LossOnset, ...]


class CurveFinding(LossOnset, frozen=True, kw_only=True):
    """What a curve shows, and who loses `first`."""

    first: str


class ShownCurve(Curve, frozen=True, kw_only=True):
    """A curve, and what it shows."""

    finding: CurveFinding


class SimulationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `simulate --json` prints."""

    schema: str = "elbowroom/simulate"
    version: int = 1
    virtual: bool = True
    node: SimulatedNode
    curves: tuple[ShownCurve, ...]


class NodeParameter(Parameter, frozen=True, kw_only=True):
    """A parameter, and its value of a node; None: not known."""

    value: float | str | None


class NodeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `simulate --parameters --json` prints."""

    schema: str = "elbowroom/simulated-node"
    version: int = 1
    virtual: bool = True
    machine: Shape
    parameters: tuple[NodeParameter, ...]


def simulation_document(simulated: Simulated) -> SimulationDocument:
    """Simulated curves as one document."""
    curves = (
        ShownCurve(**msgspec.structs.asdict(curve), finding=_finding(finding))
        for curve, finding in zip(simulated.curves, simulated.findings, strict=True)
    )
    return SimulationDocument(node=simulated.node, curves=tuple(curves))


def node_document(node: SimulatedNode) -> NodeDocument:
    """A simulated node with the values of its parameters."""
    parameters = (
        NodeParameter(**msgspec.structs.asdict(item), value=getattr(node, item.name)) for item in PARAMETERS
    )
    return NodeDocument(machine=node.shape, parameters=tuple(parameters))


def _finding(onset: LossOnset) -> CurveFinding:
    return CurveFinding(first=onset.first, **msgspec.structs.asdict(onset))


def simulated_node(machine: str, settings: Iterable[tuple[str, str]] = ()) -> SimulatedNode:
    """The node behind `machine:requests` (a name or a file), with other values of some parameters."""
    return changed(scaled(load(machine).definition, simulator.simulate), settings)


def simulate(
    machine: str,
    *,
    cores: Sequence[int] | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    kernel: Pattern = "nt",
    intensity: float = 0.0,
    direction: Direction = "receive",
    sizes: Sequence[int | None] = (None,),
    comm_threads: int = 1,
    far_thread: bool = False,
    copy: float | None = None,
    settings: Iterable[tuple[str, str]] = (),
    seed: int = 1,
) -> Simulated:
    """Both sides alone and together for each number of `cores` of the first socket (default: all) and each
    message size in bytes (None: one endless message).

    `intensity` in flop/B, `copy` the MB/s that an accelerator would write to `comp_node` alone, `far_thread`:
    the communication threads are not on the NIC's socket. UsageError for what the machine has not;
    MachineError when the simulator cannot be built.
    """
    node = simulated_node(machine, settings)
    counts = _counts(node, cores)
    loads = [_load(comp_node, comm_node, intensity, direction, size, comm_threads, copy) for size in sizes]
    for item in loads:
        _check(node, item)
    truth = Requests(node, simulator.simulate, seed=seed)
    curves = tuple(curve(truth, item, counts, pattern=kernel, far=far_thread) for item in loads)
    return Simulated(node, curves, tuple(onset_of(one) for one in curves))


def _counts(node: SimulatedNode, cores: Sequence[int] | None) -> tuple[int, ...]:
    most = node.shape.cores_first_socket
    if cores is None:
        return tuple(range(1, most + 1))
    if not cores:
        raise UsageError("names no number of cores", field="cores", hint=f"1 to {most}")
    for n in cores:
        if not 1 <= n <= most:
            raise UsageError(
                f"{node.shape.name} has not that many cores on its first socket",
                field="cores",
                value=n,
                hint=f"1 to {most}",
            )
    return tuple(sorted(set(cores)))


_SAID = {
    # What is wrong with a load, by the names that it was told by here.
    "computing.node": "comp_node",
    "computing.intensity": "intensity",
    "messages.node": "comm_node",
    "messages.size": "sizes",
    "messages.threads": "comm_threads",
    "copies.demand": "copy",
}


def _check(node: SimulatedNode, load: Load) -> None:
    try:
        check_load(node.shape, load)
        experiment(node, Moment(load.computing, copies=load.copies), 1)
    except UsageError as error:
        field = _SAID.get(error.field, error.field)
        raise UsageError(error.message, field=field, value=error.value, hint=error.hint) from error


def _load(
    comp_node: int,
    comm_node: int,
    intensity: float,
    direction: Direction,
    size: int | None,
    threads: int,
    copy: float | None,
) -> Load:
    """With one core; the curve has its own numbers of them."""
    return Load(
        computing=(Computing(socket=0, node=comp_node, count=1, intensity=intensity),),
        messages=Messages(node=comm_node, direction=direction, size=size, threads=threads),
        copies=() if copy is None else (Copy(node=comp_node, demand=copy),),
    )


def simulated_figure(simulated: Simulated) -> Figure:
    """Bandwidths of the first curve over n."""
    return bandwidths(simulated.node.shape.name, simulated.curves[0])
