"""Broadcasts: simulated ones, and the best way for a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from elbowroom.broadcast.measured import read_bench
from elbowroom.broadcast.network import MeasuredBroadcast, NetworkDocument, TunedBroadcast, fit_network
from elbowroom.broadcast.network import Network as Network
from elbowroom.broadcast.simulated import MOST_RECIPIENTS as MOST_RECIPIENTS
from elbowroom.broadcast.simulated import PLATFORMS as PLATFORMS
from elbowroom.broadcast.simulated import BroadcastDocument as BroadcastDocument
from elbowroom.broadcast.simulated import BroadcastRequest as BroadcastRequest
from elbowroom.broadcast.simulated import SimulatedBroadcast as SimulatedBroadcast
from elbowroom.broadcast.simulated import broadcast_document, predicted_document, usual_segment
from elbowroom.broadcast.simulated import parse_latency as parse_latency
from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.launch import build, simulator
from elbowroom.launch.simulator import BroadcastCase


def simulate_broadcast(
    recipients: int,
    size: int,
    *,
    bandwidth: float,
    latency: float,
    tree: str = "binomial",
    segment: int = 0,
    **others: Any,
) -> SimulatedBroadcast:
    """Sends `size` bytes to `recipients` over a simulated cluster, by the library that does it for real: each
    node has a link of `bandwidth` B/s in each direction and `latency` s to one switch. `segment`: bytes, 0
    for the whole message, or segments of 32 KiB by two trees. `others`: more fields of a BroadcastRequest
    (`overhead`, `window`, `platform`, `racks`, `uplink`, `order`, `priorities`). UsageError for what cannot
    be simulated.
    """
    request = BroadcastRequest(
        recipients=recipients,
        size=size,
        bandwidth=bandwidth,
        latency=latency,
        tree=tree,
        segment=segment,
        **others,
    )
    if request.platform not in PLATFORMS:
        _check_platform(request.platform)
    return simulator.simulate_broadcast(request)


def time_broadcast(request: BroadcastRequest) -> BroadcastDocument:
    """The same as a document. Where SimGrid is not installed, the time of a star is what the library's cost
    model predicts; MachineError for other platforms, which only SimGrid knows.
    """
    if request.platform == "star" and not build.has_simgrid():
        case = BroadcastCase(
            size=request.size,
            recipients=request.recipients,
            tree=request.tree,
            segment=request.segment or usual_segment(request.tree, request.size),
            window=request.window,
        )
        network = Network(latency=request.latency, bandwidth=request.bandwidth, overhead=request.overhead)
        (found,) = simulator.predict_broadcasts(network, [case])
        return predicted_document(found.tree, found.segment, found.received, request)
    simulated = simulate_broadcast(**{name: getattr(request, name) for name in request.__struct_fields__})
    return broadcast_document(simulated, request)


def _check_platform(file: str) -> None:
    """UsageError for what is no XML: SimGrid's own sentences do not say so."""
    hint = f"name a platform of SimGrid, or {', '.join(PLATFORMS)}"
    data = read_document(Path(file), field="platform", hint=hint)
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, RecursionError, ValueError, LookupError) as error:
        raise UsageError(f"is not XML: {error}", field="platform", value=file, hint=hint) from error
    if root.tag != "platform":
        raise UsageError(
            f"has the root <{root.tag}>, not <platform>", field="platform", value=file, hint=hint
        )


NETWORK_FORMAT = DocumentFormat(
    kind=NetworkDocument,
    schema="elbowroom/broadcast-network",
    version=1,
    name="network",
    hint="elbowroom broadcast tune -o network.json writes one",
)

WINDOWS = (128 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20)
"""Bytes in flight that are tried, the library's own first."""

WORTH = 0.98
"""Another window than the library's is told where its time is below this share."""


def load_network(file: str | Path) -> Network:
    """The parameters in a file of `broadcast tune -o`; UsageError where it is none."""
    return NETWORK_FORMAT.read(Path(file)).network


def save_network(document: NetworkDocument, file: str | Path) -> None:
    """Writes what `load_network` reads."""
    NETWORK_FORMAT.write(Path(file), document)


def fit_broadcast_network(file: str | Path) -> Network:
    """The parameters that fit what `broadcast bench --json` printed; UsageError for another file, and for
    rows that do not tell all.
    """
    return fit_network(read_bench(file, list[MeasuredBroadcast]))


def tune_broadcasts(network: Network, sizes: Sequence[int], recipients: Sequence[int]) -> NetworkDocument:
    """For each size and number of recipients the tree, segment and window of the least predicted time."""
    cells = [BroadcastCase(size=size, recipients=count) for size in sizes for count in recipients]
    chosen = simulator.predict_broadcasts(network, cells)
    tried = [
        BroadcastCase(
            size=cell.size, recipients=cell.recipients, tree=way.tree, segment=way.segment, window=window
        )
        for cell, way in zip(cells, chosen, strict=True)
        for window in WINDOWS
    ]
    times = [found.received for found in simulator.predict_broadcasts(network, tried)]
    table = []
    for index in range(0, len(tried), len(WINDOWS)):
        best = min(range(index, index + len(WINDOWS)), key=times.__getitem__)
        case, seconds = tried[index], times[index]
        if times[best] < WORTH * times[index]:
            case, seconds = tried[best], times[best]
        table.append(TunedBroadcast(**msgspec.structs.asdict(case), time_us=seconds * 1e6))
    return NetworkDocument(network=network, table=tuple(table))
