"""Results of a simulation of single requests (docs/guide/simulate.md), and what its curves show:
who loses first, and at which n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series, Side
from elbowroom.models.curves import Shape
from elbowroom.models.figures import CORES, VIRTUAL
from elbowroom.quantities import plural
from elbowroom.virtual.request_node import PARAMETERS, Parameter, SimulatedNode


class SourceResult(msgspec.Struct, frozen=True, kw_only=True):
    """Of one group of cores, direction of messages, or copy: bandwidth (MB/s on the bus), how many lines and
    messages ended while it was measured, and latencies of lines (ns), mean and ninth decile.
    """

    bandwidth: float
    lines: int
    messages: int
    mean_ns: float
    d9_ns: float


class StationUse(msgspec.Struct, frozen=True, kw_only=True):
    """Share of the time that each station was in use; links by from * sockets + to."""

    uplinks: tuple[float, ...]
    links: tuple[float, ...]
    roots: tuple[float, ...]
    memories: tuple[float, ...]


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one experiment: what its sources saw, in order. `requests`: all that were completed in
    `seconds` of computing.
    """

    sources: tuple[SourceResult, ...]
    use: StationUse
    requests: int
    seconds: float


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Of one class of lines (`computation`, `receive`, `send`, `copy`), ns: mean and ninth decile, alone and
    together; alone None for copies, which are never simulated alone.
    """

    name: str
    alone_mean: float | None
    alone_d9: float | None
    together_mean: float
    together_d9: float


class SimulatedRow(msgspec.Struct, frozen=True, kw_only=True):
    """`n` cores and messages of `size` bytes (None: without end), alone and together: bandwidths in MB/s, the
    computation's as its kernel counts. `stations`: share of the time that each was in use together.
    """

    n: int
    size: int | None
    comp_alone: float
    comm_alone: float
    comp_together: float
    comm_together: float
    copies: tuple[float, ...]
    latencies: tuple[Latency, ...]
    stations: dict[str, float]

    @property
    def comp_kept(self) -> float:
        return self.comp_together / self.comp_alone

    @property
    def comm_kept(self) -> float:
        return self.comm_together / self.comm_alone

    def latency(self, *names: str) -> Latency | None:
        """That of the first of these classes that there is."""
        return next((item for item in self.latencies if item.name in names), None)


class SimulatedCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Rows over n, ascending, of one placement."""

    comp_node: int
    comm_node: int
    rows: tuple[SimulatedRow, ...]


LOSS = 0.05
"""A side loses once it keeps less than 1 - LOSS."""


class LossOnset(msgspec.Struct, frozen=True, kw_only=True):
    """What a curve shows. `comp_from`, `comm_from`: the first n at which that side loses (None: never);
    `comp_least`, `comm_least`: the least that it keeps; `floor`: how much of what communications keep the
    last third of the cores still takes (0: a minimum is kept); `station`: which is used most at the onset
    (else with all cores), and how much.
    """

    comp_from: int | None
    comm_from: int | None
    comp_least: float
    comm_least: float
    floor: float
    station: str
    use: float

    @property
    def first(self) -> str:
        """Who loses first: `nobody`, `both`, `computation` or `communication`; with both from the same n on,
        who of them keeps less there is not said.
        """
        if self.comp_from is None and self.comm_from is None:
            return "nobody"
        if self.comp_from == self.comm_from:
            return "both"
        if self.comm_from is None or (self.comp_from is not None and self.comp_from < self.comm_from):
            return "computation"
        return "communication"


def onset_of(curve: SimulatedCurve) -> LossOnset:
    """Reads off a curve who loses, from when on and at which station; at least one row."""
    rows = curve.rows
    comp_from = next((row.n for row in rows if row.comp_kept < 1 - LOSS), None)
    comm_from = next((row.n for row in rows if row.comm_kept < 1 - LOSS), None)
    onsets = [n for n in (comp_from, comm_from) if n is not None]
    at_onset = next(row for row in rows if not onsets or row.n == min(onsets)) if onsets else rows[-1]
    last_third = [row for row in rows if 3 * row.n >= 2 * rows[-1].n]
    station, use = max(at_onset.stations.items(), key=lambda item: item[1])
    return LossOnset(
        comp_from=comp_from,
        comm_from=comm_from,
        comp_least=min(row.comp_kept for row in rows),
        comm_least=min(row.comm_kept for row in rows),
        floor=last_third[0].comm_kept - last_third[-1].comm_kept,
        station=station,
        use=use,
    )


def who(onset: LossOnset, curve: SimulatedCurve) -> str:
    """Who loses first, in words."""
    if onset.first == "nobody":
        return f"neither side loses more than {LOSS:.0%} with up to {curve.rows[-1].n} cores"
    if onset.first == "both":
        row = next(row for row in curve.rows if row.n == onset.comp_from)
        worse = "computation" if row.comp_kept < row.comm_kept else "communication"
        return (
            f"both from {plural(row.n, 'core')} on, {worse} more of it (computation loses "
            f"{100 * (1 - row.comp_kept):.0f} %, communication {100 * (1 - row.comm_kept):.0f} % there)"
        )
    other = "communication" if onset.first == "computation" else "computation"
    later = onset.comm_from if onset.first == "computation" else onset.comp_from
    never = f"{other} never" if later is None else f"{other} from {later} on"
    first = onset.comp_from if onset.first == "computation" else onset.comm_from
    return f"{onset.first}, from {plural(first or 0, 'core')} on; {never}"


class Simulated(NamedTuple):
    """A node, and a curve over n for every message size, in order, with what it shows."""

    node: SimulatedNode
    curves: tuple[SimulatedCurve, ...]
    findings: tuple[LossOnset, ...]


class CurveFinding(LossOnset, frozen=True, kw_only=True):
    """What a curve shows, and who loses `first`."""

    first: str


class ShownCurve(SimulatedCurve, frozen=True, kw_only=True):
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


SIMULATED = f"Simulated line by line. {VIRTUAL}"


def bandwidths(name: str, curve: SimulatedCurve) -> Figure:
    """Both sides alone and together over n, as the thesis draws them (Figs 6.2 to 6.10)."""
    x = tuple(float(row.n) for row in curve.rows)

    def series(
        side: Side, style: Literal["alone", "together"], of: Callable[[SimulatedRow], float]
    ) -> Series:
        axis: Literal["left", "below"] = "left" if side == "communication" else "below"
        return Series(
            name=f"{side} {style}",
            side=side,
            style=style,
            x=x,
            y=tuple(of(row) for row in curve.rows),
            axis=axis,
            value="simulated",
        )

    return Figure(
        name=f"simulated-{name}-comp{curve.comp_node}-comm{curve.comm_node}",
        title=f"{name}: {_place(curve)}",
        x=CORES,
        left=Axis(label="Network bandwidth (MB/s)", reach=0.0),
        below=Axis(label="Memory bandwidth (MB/s)", reach=0.0),
        series=(
            series("communication", "alone", lambda row: row.comm_alone),
            series("communication", "together", lambda row: row.comm_together),
            series("computation", "alone", lambda row: row.comp_alone),
            series("computation", "together", lambda row: row.comp_together),
        ),
        caption=SIMULATED,
    )


def _place(curve: SimulatedCurve) -> str:
    return f"computations on node {curve.comp_node}, communications on node {curve.comm_node}"
