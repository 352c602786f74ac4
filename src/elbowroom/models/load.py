"""What a node does at once, beyond what one run measures: several groups of cores, messages, copies.

A `Situation` (models/curves.py) is the load of one kernel, one node of data and large messages that arrive.

People write loads as a TOML file or as words of the command line (docs/guide/predict-loads.md).
"""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

import msgspec

from elbowroom import display
from elbowroom.documents import TomlFormat
from elbowroom.errors import UsageError
from elbowroom.models.curves import MeasuredStreams, Shape, Situation
from elbowroom.quantities import parse_mb_per_s
from elbowroom.stats.interval import Interval

NORMAL_90 = 1.6448536269514722
"""Half width of the 90 % interval of a normal variable, in standard deviations."""


Bands = tuple[float, float, float, float]
"""For each of STREAMS, in that order, the relative half-width of the 90 % interval of a prediction."""


class PredictedBandwidths(msgspec.Struct, frozen=True, kw_only=True):
    """The four bandwidths (MB/s) with their 90 % intervals.

    `flags`: `extrapolated` (outside what the model was fitted on), `virtual`, `repaired` (differs from the
    equations as published), ...
    """

    comp_alone: Interval
    comm_alone: Interval
    comp_together: Interval
    comm_together: Interval
    flags: tuple[str, ...] = ()


class Prediction(PredictedBandwidths, frozen=True, kw_only=True):
    """The bandwidths of one situation."""

    situation: Situation

    def __repr__(self) -> str:
        return f"Prediction({self.situation!r})"

    __str__, _repr_html_ = display.text, display.html


Direction = Literal["receive", "send", "both"]

Question = Literal["intensity", "sizes", "send", "both", "threads", "copies", "nodes"]
"""What loads ask beyond situations; `nodes`: cores of one socket that are more than one group."""


class Computing(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`count` cores of `socket` (counted from 0) compute on data of `node` at `intensity` flop/B (algorithmic
    bytes; 0: nothing but memory accesses).
    """

    socket: int
    node: int
    count: int
    intensity: float = 0.0


class Messages(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`threads` communication threads exchange messages of `size` bytes (None: those of the calibration)
    with data in `node`; `both`: they send and receive at once, and bandwidths are those of both together.
    """

    node: int
    direction: Direction = "receive"
    size: int | None = None
    threads: int = 1


class Copy(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An accelerator copies from or to `node`, and alone it would at `demand` MB/s."""

    node: int
    demand: float


class Load(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """All of it at once."""

    computing: tuple[Computing, ...] = ()
    messages: Messages | None = None
    copies: tuple[Copy, ...] = ()


class LoadRow(MeasuredStreams, frozen=True, kw_only=True):
    """One measured run of a load.

    `kernel`, `pattern`: another computation or another way to exchange messages than the calibrated ones,
    which may be faster or slower by a factor that is fitted beside the model; empty: the calibrated ones.
    `copies_together`: MB/s of each of `load.copies` beside everything; empty: not measured.
    """

    load: Load
    copies_together: tuple[float | None, ...] = ()
    kernel: str = ""
    pattern: str = ""


class LoadPrediction(PredictedBandwidths, frozen=True, kw_only=True):
    """The bandwidths of a load: of all computing cores and of all messages, alone (the computing cores
    together without messages and copies, messages by themselves) and together. `groups`: those of each of
    `load.computing` together with everything, `copies`: those of each copy.
    """

    load: Load
    groups: tuple[Interval, ...] = ()
    copies: tuple[Interval, ...] = ()

    def __repr__(self) -> str:
        return f"LoadPrediction({self.load!r})"

    __str__, _repr_html_ = display.text, display.html


def load_of(situation: Situation) -> Load:
    """The same said as a load: messages of the calibrated size that arrive, one thread."""
    groups = ((0, situation.n), (1, situation.n_other))
    return Load(
        computing=tuple(
            Computing(socket=socket, node=situation.comp_node, count=count)
            for socket, count in groups
            if count
        ),
        messages=Messages(node=situation.comm_node),
    )


def load_at(situation: Situation, size: int | None = None) -> Load:
    """The situation as a model is asked it: with messages of `size` bytes (None: the calibrated ones), and
    without any computing core still with the node of their data.
    """
    load = load_of(situation)
    return msgspec.structs.replace(
        load,
        computing=load.computing or (Computing(socket=0, node=situation.comp_node, count=0),),
        messages=Messages(node=situation.comm_node, size=size),
    )


def situation_of(load: Load) -> Situation | None:
    """The load as a situation: cores on one node, calibrated intensity and size, one thread that receives."""
    nodes = {group.node for group in load.computing}
    sockets = [group.socket for group in load.computing]
    messages = load.messages
    plain = (
        not load.copies
        and len(nodes) <= 1
        and len(set(sockets)) == len(sockets)
        and max(sockets, default=0) < 2
    )
    plain = plain and not any(group.intensity for group in load.computing)
    if not plain or (
        messages is not None and (messages.direction, messages.size, messages.threads) != ("receive", None, 1)
    ):
        return None
    counts = {group.socket: group.count for group in load.computing}
    comp = nodes.pop() if nodes else None
    # Where nobody communicates the cores' own node is as good as any; where nobody computes, the messages'.
    comm = messages.node if messages is not None else comp or 0
    return Situation(
        comp_node=comm if comp is None else comp,
        comm_node=comm,
        n=counts.get(0, 0),
        n_other=counts.get(1, 0),
    )


def check_load(shape: Shape, load: Load) -> None:
    """Refuses sockets, cores, nodes, sizes, threads and demands that the machine, or no machine, has."""
    for group in load.computing:
        _within(shape, "computing.socket", group.socket, shape.sockets, "socket")
        _within(shape, "computing.node", group.node, shape.nodes, "NUMA node")
        _positive("computing.count", group.count, "is not a number of computing cores")
        if not (group.intensity >= 0 and math.isfinite(group.intensity)):
            raise UsageError(
                "is not an arithmetic intensity",
                field="computing.intensity",
                value=group.intensity,
                hint="give flop/B, 0 or more",
            )
    for socket in range(shape.sockets):
        count = sum(group.count for group in load.computing if group.socket == socket)
        if count > shape.cores_of(socket):
            raise UsageError(
                f"{shape.name} has {shape.cores_of(socket)} cores on socket {socket}",
                field="computing.count",
                value=count,
                hint=f"ask for 0 to {shape.cores_of(socket)} there",
            )
    if load.messages is not None:
        _check_messages(shape, load.messages)
    for copy in load.copies:
        _within(shape, "copies.node", copy.node, shape.nodes, "NUMA node")
        if not (copy.demand > 0 and math.isfinite(copy.demand)):
            raise UsageError(
                "is not a bandwidth",
                field="copies.demand",
                value=copy.demand,
                hint="give a positive number of MB/s",
            )


def _check_messages(shape: Shape, messages: Messages) -> None:
    _within(shape, "messages.node", messages.node, shape.nodes, "NUMA node")
    if messages.direction not in get_args(Direction):
        raise UsageError(
            "is not a direction",
            field="messages.direction",
            value=messages.direction,
            hint=f"one of: {', '.join(get_args(Direction))}",
        )
    if messages.size is not None:
        _positive("messages.size", messages.size, "is not a message size in bytes")
    _positive("messages.threads", messages.threads, "is not a number of communication threads")


def _within(shape: Shape, field: str, value: int, count: int, what: str) -> None:
    if not 0 <= value < count:
        raise UsageError(
            f"{shape.name} has {count} {what}{'s' if count > 1 else ''}",
            field=field,
            value=value,
            hint=f"ask for 0 to {count - 1}" if count > 1 else "ask for 0",
        )


def _positive(field: str, value: int, message: str) -> None:
    if value < 1:
        raise UsageError(message, field=field, value=value, hint="give 1 or more")


PAGE = "`elbowroom help predict`"
LOAD = TomlFormat(kind=Load, field="load", of="a load", inside="", sizes=("messages.size",), page=PAGE)


def decode(text: str, where: str) -> Load:
    """A load from TOML: tables `[[computing]]` and `[[copies]]`, and one `[messages]`; `where` names it in
    errors, which also tell field, value and hint. Sizes may be `1MiB`.
    """
    load = LOAD.decode(text, where)
    if not load.computing and load.messages is None and not load.copies:
        raise UsageError(
            "defines no load",
            field="load",
            value=where,
            hint=f"add [[computing]] or [messages], see {PAGE}",
        )
    return load


def parse_group(text: str, intensity: float) -> Computing:
    """`1:4@0`: 4 cores of socket 1 on data of node 0, of that intensity, or of its own as in `1:4@0:0.5`."""
    match = re.fullmatch(r"(\d+):(\d+)@(\d+)(?::([\d.eE+-]+))?", text.strip())
    try:
        if match is None:
            raise ValueError
        own = intensity if match[4] is None else float(match[4])
    except ValueError as error:
        raise UsageError(
            "is not a group of cores",
            field="group",
            value=text,
            hint="write SOCKET:CORES@NODE, for instance 1:4@0, or 1:4@0:0.5 with its flop/B",
        ) from error
    return Computing(socket=int(match[1]), count=int(match[2]), node=int(match[3]), intensity=own)


def parse_copy(text: str) -> Copy:
    """`12000@0` or `12GB/s@0`: a copy that alone reaches 12000 MB/s from or to node 0."""
    demand, _, node = text.partition("@")
    try:
        return Copy(node=int(node), demand=parse_mb_per_s(demand, "copy"))
    except (ValueError, UsageError) as error:
        raise UsageError(
            "is not a copy", field="copy", value=text, hint="write RATE@NODE, for instance 12GB/s@0"
        ) from error
