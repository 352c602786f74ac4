"""Broadcasts: simulated ones, and the best way for a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from elbowroom.broadcast.areas import area_figures
from elbowroom.broadcast.network import MeasuredBroadcast, NetworkDocument, TunedBroadcast, fit_network
from elbowroom.broadcast.network import Network as Network
from elbowroom.broadcast.simulated import MOST_RECIPIENTS as MOST_RECIPIENTS
from elbowroom.broadcast.simulated import PLATFORMS as PLATFORMS
from elbowroom.broadcast.simulated import BroadcastRequest as BroadcastRequest
from elbowroom.broadcast.simulated import SimulatedBroadcast as SimulatedBroadcast
from elbowroom.broadcast.simulated import parse_latency as parse_latency
from elbowroom.broadcast.simulated import parse_priorities as parse_priorities
from elbowroom.broadcast.simulated import parse_rate as parse_rate
from elbowroom.documents import DocumentFormat
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.launch import simulator
from elbowroom.launch.simulator import BroadcastCase
from elbowroom.plan.sizes import format_size

MEGA = 1e6
"""B/s in a MB/s."""


class BroadcastDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast simulate --json` prints: `time_us` until the last recipient has the data, `bandwidth`
    (MB/s) is the size over that time; `received_us` and `released_us` in the order of ranks, the latter from
    the root on.
    """

    schema: str = "elbowroom/broadcast"
    version: int = 1
    time_us: float
    bandwidth: float
    tree: str
    segment: int
    recipients: int
    size: int
    received_us: tuple[float, ...]
    released_us: tuple[float, ...]


class AreasDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast areas --json` prints: a broadcast for each tree, and the recipients' priorities."""

    schema: str = "elbowroom/broadcast-areas"
    version: int = 1
    priorities: tuple[int, ...]
    broadcasts: tuple[BroadcastDocument, ...]


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
    for the whole message. `others`: more fields of a BroadcastRequest (`overhead`, `window`, `platform`,
    `racks`, `uplink`, `order`, `priorities`). UsageError for what cannot be simulated.
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


def simulate_areas(trees: Sequence[str], request: BroadcastRequest) -> list[SimulatedBroadcast]:
    """The same broadcast by each of the trees."""
    return [simulator.simulate_broadcast(msgspec.structs.replace(request, tree=tree)) for tree in trees]


def areas_document(simulated: Sequence[SimulatedBroadcast], request: BroadcastRequest) -> AreasDocument:
    """Simulated broadcasts of one request as one document."""
    return AreasDocument(
        priorities=request.priorities,
        broadcasts=tuple(broadcast_document(one, request) for one in simulated),
    )


def save_areas(simulated: Sequence[SimulatedBroadcast], request: BroadcastRequest, file: str | Path) -> None:
    """Draws when each rank received and released the data (.svg or .png)."""
    title = f"{format_size(request.size)} to {request.recipients} recipients, simulated"
    save_panels(area_figures(simulated), Path(file), columns=min(3, len(simulated)), title=title)


def broadcast_document(simulated: SimulatedBroadcast, request: BroadcastRequest) -> BroadcastDocument:
    """A simulated broadcast and what was asked, as one document."""
    return BroadcastDocument(
        time_us=simulated.seconds * 1e6,
        bandwidth=request.size / simulated.seconds / MEGA,
        tree=simulated.tree,
        segment=simulated.segment,
        recipients=request.recipients,
        size=request.size,
        received_us=tuple(time * 1e6 for time in simulated.received),
        released_us=tuple(time * 1e6 for time in simulated.released),
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
    hint = "give what `elbowroom broadcast bench --json` prints"
    data = read_document(Path(file), field="from", hint=hint)
    try:
        rows = msgspec.json.decode(data, type=list[MeasuredBroadcast])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"holds no rows of broadcasts: {error}", field="from", value=str(file), hint=hint
        ) from error
    return fit_network(rows)


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
