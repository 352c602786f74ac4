"""G3's node: the numbers behind a simulation of single requests (core/simulate), each with unit and source.

Bandwidths and capacities are scaled from what a machine reaches *alone* (virtual/request_calibration.py).
What nobody publishes has a typical value, and says so.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
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
    """One of Node's numbers: unit, range that `--set` accepts, meaning, and where its value comes from."""

    name: str
    unit: str
    low: float
    high: float
    text: str
    source: str
    whole: bool = False


ALONE = "scaled: reached alone, appendix E"
TYPICAL = "typical"


def _parameter(name: str, unit: str, low: float, high: float, text: str, source: str) -> Parameter:
    whole = SimulatedNode.__annotations__[name] == "int"
    return Parameter(name=name, unit=unit, low=low, high=high, text=text, source=source, whole=whole)


PARAMETERS = (
    _parameter(
        "line_fill_buffers",
        "lines",
        1,
        1000,
        "outstanding stores of a core",
        "10: x86 cores since Nehalem; assumed for others",
    ),
    _parameter(
        "prefetch_depth",
        "lines",
        1,
        1000,
        "outstanding loads of a core, including those of its prefetchers",
        f"{TYPICAL}: 16",
    ),
    _parameter("core_rate_local", "MB/s", 1, 1e6, "most that one core stores to local data", ALONE),
    _parameter("core_rate_remote", "MB/s", 1, 1e6, "the same, remote data", ALONE),
    _parameter(
        "core_latency_local",
        "ns",
        1,
        1e5,
        "idle round trip of a store to local data",
        "scaled: the line-fill buffers are 1.2 times what the rate needs (as in G2)",
    ),
    _parameter("core_latency_remote", "ns", 1, 1e5, "the same, remote data", "likewise"),
    _parameter(
        "load_rate_local",
        "MB/s",
        1,
        1e6,
        "most that one core loads from local data",
        "scaled: the prefetch depth is 1.2 times what the rate needs",
    ),
    _parameter("load_rate_remote", "MB/s", 1, 1e6, "the same, remote data", "likewise"),
    _parameter(
        "load_latency_local",
        "ns",
        1,
        1e5,
        "idle round trip of a load from local data, without the controller's part",
        f"{TYPICAL}: 60",
    ),
    _parameter("load_latency_remote", "ns", 1, 1e5, "the same, remote data", f"{TYPICAL}: 120"),
    _parameter("clock", "GHz", 0.1, 10, "clock of a core", "the processor's"),
    _parameter("flops_per_cycle", "flop", 0.1, 128, "flops per cycle of a core", "4: plain compiled loops"),
    _parameter(
        "jitter",
        "",
        0,
        0.9,
        "variation of the time between two lines of a source, in both directions",
        f"{TYPICAL}: 0.1; prevents sources from synchronising",
    ),
    _parameter("uplink_write", "MB/s", 1, 1e7, "stores of all cores of a socket", ALONE),
    _parameter(
        "uplink_read", "MB/s", 1, 1e7, "loads of all cores of a socket", f"{TYPICAL}: twice that of stores"
    ),
    _parameter(
        "uplink_remote_work",
        "",
        1,
        100,
        "cost of a remote line for the uplink, relative to a local one",
        ALONE,
    ),
    _parameter(
        "link",
        "MB/s",
        1,
        1e7,
        "rate between the sockets, in each direction, including headers",
        "the processor's (UPI, QPI, xGMI, CCPI2), or scaled to what all cores reach alone",
    ),
    _parameter(
        "link_header",
        "B",
        0,
        64,
        "added to each line on the link; a request for a line has the same length",
        f"{TYPICAL}: 16",
    ),
    _parameter(
        "link_credits",
        "lines",
        1,
        1e5,
        "lines between the entry of the link and the queues behind it",
        f"{TYPICAL}: 256",
    ),
    _parameter(
        "root",
        "MB/s",
        1,
        1e7,
        "rate of a root complex, which serves the devices of a socket",
        f"{TYPICAL}: 64000",
    ),
    _parameter("channels", "", 1, 64, "memory channels of a node", "the processor's"),
    _parameter("banks", "", 1, 1024, "banks of a channel", f"{TYPICAL}: 32, two ranks of DDR4"),
    _parameter(
        "memory_write", "MB/s", 1, 1e7, "most that the channels of a node write, if every row is open", ALONE
    ),
    _parameter(
        "memory_read",
        "MB/s",
        1,
        1e7,
        "most that the channels of a node read, if every row is open",
        f"{TYPICAL}: 0.85 of the channels' peak",
    ),
    _parameter(
        "memory_remote_work",
        "",
        1,
        100,
        "cost of a remote line for a channel, relative to a local one",
        ALONE,
    ),
    _parameter("row", "ns", 0, 1e4, "to open another row of a bank", f"{TYPICAL}: 45, tRC of DDR4"),
    _parameter("turnaround", "ns", 0, 1e4, "to turn a channel between reading and writing", f"{TYPICAL}: 15"),
    _parameter("write_batch", "lines", 1, 1e5, "writes before a channel returns to reads", f"{TYPICAL}: 16"),
    _parameter("read_queue", "lines", 1, 1e5, "reads that wait in a channel", f"{TYPICAL}: 48"),
    _parameter("write_queue", "lines", 1, 1e5, "writes that wait in a channel", f"{TYPICAL}: 48"),
    _parameter(
        "lookahead", "lines", 1, 1e5, "depth to which a queue is searched for an open row", f"{TYPICAL}: 8"
    ),
    _parameter(
        "arbitration",
        "",
        0,
        0,
        "order in which lines enter a full queue: fifo, or round_robin between uplink, link and root complex",
        f"{TYPICAL}: fifo",
    ),
    _parameter("nic_rate_local", "MB/s", 1, 1e6, "most that the NIC moves, data on the cores' socket", ALONE),
    _parameter("nic_rate_remote", "MB/s", 1, 1e6, "the same, data on the other socket", ALONE),
    _parameter(
        "nic_write_credits",
        "lines",
        1,
        1e5,
        "outstanding writes of the NIC",
        "1.05 times what its rate needs on an idle machine: an assumption with a large effect",
    ),
    _parameter("nic_read_credits", "lines", 1, 1e5, "outstanding reads of the NIC", "likewise"),
    _parameter(
        "nic_write_latency",
        "ns",
        1,
        1e6,
        "idle round trip of a write of the NIC and its credit",
        f"{TYPICAL}: 300",
    ),
    _parameter(
        "nic_read_latency",
        "ns",
        1,
        1e6,
        "idle round trip of a read of the NIC, without the controller's part",
        f"{TYPICAL}: 550, of the order of a PCIe round trip (Neugebauer et al., SIGCOMM 2018)",
    ),
    _parameter(
        "nic_hop",
        "ns",
        0,
        1e5,
        "additional time to data on the other socket, each way",
        f"{TYPICAL}: 30",
    ),
    _parameter(
        "setup_near",
        "us",
        0,
        1e4,
        "latency of the smallest message, thread on the NIC's socket",
        "1.39: henri, Denis et al. 2021",
    ),
    _parameter("setup_far", "us", 0, 1e4, "the same, thread on the other socket", "1.67: likewise"),
    _parameter(
        "setup_accesses",
        "lines",
        0,
        1000,
        "lines that the communication thread reads, one after the other, before a message",
        f"{TYPICAL}: 2",
    ),
    _parameter(
        "copy_slack",
        "",
        1,
        1000,
        "credits of an accelerator's copy, relative to what its demand needs on an idle machine",
        "1.05, as of the NIC",
    ),
)
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
            hint=f"{hint}`elbowroom simulate --machine NAME --parameters` lists them",
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
