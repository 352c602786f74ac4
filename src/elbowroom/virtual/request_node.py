"""G3's node: the numbers behind a simulation of single requests (core/simulate), each with unit and source.

Bandwidths and capacities are scaled from what a machine reaches *alone* (virtual/request_calibration.py).
What nobody publishes has a typical value, and says so.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape

LINE = 64
"""Bytes of a request."""

Arbitration = Literal["fifo", "round_robin"]
ARBITRATIONS: tuple[Arbitration, ...] = ("fifo", "round_robin")


class SimulatedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose sockets, links and controllers are alike; units and meanings in PARAMETERS.

    `..._local` holds of data beside the cores of the first socket, `..._remote` of data of the other socket;
    None: not known, and those placements are not answered.
    """

    shape: Shape
    line_fill_buffers: int
    prefetch_depth: int
    core_rate_local: float
    core_rate_remote: float | None
    core_latency_local: float
    core_latency_remote: float | None
    load_rate_local: float
    load_rate_remote: float | None
    load_latency_local: float
    load_latency_remote: float | None
    clock: float
    flops_per_cycle: float
    jitter: float
    uplink_write: float
    uplink_read: float
    uplink_remote_work: float
    link: float
    link_header: float
    link_credits: int
    root: float
    channels: int
    banks: int
    memory_write: float
    memory_read: float
    memory_remote_work: float
    row: float
    turnaround: float
    write_batch: int
    read_queue: int
    write_queue: int
    lookahead: int
    arbitration: Arbitration
    nic_rate_local: float
    nic_rate_remote: float | None
    nic_write_credits: int
    nic_read_credits: int
    nic_write_latency: float
    nic_read_latency: float
    nic_hop: float
    setup_near: float
    setup_far: float
    setup_accesses: int
    copy_slack: float


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A number of SimulatedNode: unit, range that `--set` accepts, meaning, and source of its value."""

    name: str
    unit: str
    low: float
    high: float
    text: str
    source: str
    whole: bool = False


def _table() -> tuple[Parameter, ...]:
    """As in node_parameters.json, where `typical` is a value of no source and `scaled` one of appendix E."""
    rows = msgspec.json.decode(Path(__file__).with_name("node_parameters.json").read_bytes())
    kinds = SimulatedNode.__annotations__
    return tuple(Parameter(**row, whole=kinds[row["name"]] == "int") for row in rows)


PARAMETERS = _table()
BY_NAME = {item.name: item for item in PARAMETERS}


def changed(original: SimulatedNode, settings: Iterable[tuple[str, str]]) -> SimulatedNode:
    """The node with other values; UsageError for names and values that it cannot have."""
    values = {name: _value(name, text) for name, text in settings}
    node = msgspec.structs.replace(original, **values)
    if node.write_batch > node.write_queue:
        raise UsageError(
            f"is more than the write queue holds ({node.write_queue})",
            field="write_batch",
            value=node.write_batch,
            hint="set write_queue at least as large",
        )
    return node


def _value(name: str, text: str) -> Any:
    parameter = BY_NAME.get(name)
    if parameter is None:
        near = difflib.get_close_matches(name, BY_NAME, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            "no such parameter of a node",
            field="set",
            value=name,
            hint=f"{hint}`elbowroom simulate-memory --machine NAME --parameters` lists them",
        )
    if name == "arbitration":
        if text not in ARBITRATIONS:
            raise UsageError(
                "is not an arbitration", field=name, value=text, hint=f"one of: {', '.join(ARBITRATIONS)}"
            )
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not parameter.low <= number <= parameter.high or (parameter.whole and number != int(number)):
        kind = "a whole number" if parameter.whole else "a number"
        unit = f" {parameter.unit}" if parameter.unit else ""
        raise UsageError(
            f"is not {kind} in range",
            field=name,
            value=text,
            hint=f"{parameter.low:g} to {parameter.high:g}{unit}",
        )
    return int(number) if parameter.whole else number
