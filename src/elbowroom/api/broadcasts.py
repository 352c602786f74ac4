"""Broadcasts: simulated ones, and the best way for a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

import msgspec

from elbowroom.broadcast.areas import AreasDocument as AreasDocument
from elbowroom.broadcast.areas import BroadcastDocument as BroadcastDocument
from elbowroom.broadcast.areas import area_figures, measured_areas, predicted_document
from elbowroom.broadcast.areas import broadcast_document as broadcast_document
from elbowroom.broadcast.measured import BroadcastEntry
from elbowroom.broadcast.network import MeasuredBroadcast, NetworkDocument, TunedBroadcast, fit_network
from elbowroom.broadcast.network import Network as Network
from elbowroom.broadcast.simulated import MOST_RECIPIENTS as MOST_RECIPIENTS
from elbowroom.broadcast.simulated import PLATFORMS as PLATFORMS
from elbowroom.broadcast.simulated import BroadcastRequest as BroadcastRequest
from elbowroom.broadcast.simulated import SimulatedBroadcast as SimulatedBroadcast
from elbowroom.broadcast.simulated import parse_latency as parse_latency
from elbowroom.broadcast.simulated import parse_priorities as parse_priorities
from elbowroom.broadcast.simulated import usual_segment
from elbowroom.documents import DocumentFormat
from elbowroom.draw.files import save_panels
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


def simulate_areas(trees: Sequence[str], request: BroadcastRequest) -> AreasDocument:
    """The same broadcast by each of the trees: when each rank has received and released the data."""
    requests = [msgspec.structs.replace(request, tree=tree) for tree in trees]
    return AreasDocument(
        priorities=request.priorities,
        broadcasts=tuple(broadcast_document(simulator.simulate_broadcast(one), one) for one in requests),
    )


def load_areas(file: str | Path) -> AreasDocument:
    """The same of measured broadcasts, from what `broadcast bench --json` printed; UsageError for another
    file, and where sizes, numbers of recipients or priorities differ.
    """
    return measured_areas(_read_bench(file, list[BroadcastEntry]))


def save_areas(areas: AreasDocument, file: str | Path) -> None:
    """Draws when each rank received and released the data (.svg or .png)."""
    columns = min(3, len(areas.broadcasts))
    save_panels(area_figures(areas.broadcasts), Path(file), columns=columns, title=areas.title)


NETWORK_FORMAT = DocumentFormat(
    kind=NetworkDocument,
    schema="elbowroom/broadcast-network",
    version=1,
    name="network",
    hint="elbowroom broadcast tune -o network.json writes one",
)

Rows = TypeVar("Rows")

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
    return fit_network(_read_bench(file, list[MeasuredBroadcast]))


def _read_bench(file: str | Path, rows: type[Rows]) -> Rows:
    """What `broadcast bench --json` printed."""
    hint = "give what `elbowroom broadcast bench --json` prints"
    data = read_document(Path(file), field="from", hint=hint)
    try:
        return msgspec.json.decode(data, type=rows)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"holds no rows of broadcasts: {error}", field="from", value=str(file), hint=hint
        ) from error


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
