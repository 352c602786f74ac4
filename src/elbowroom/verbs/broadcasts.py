"""`elbowroom broadcast simulate` and `broadcast tune`: times of broadcasts on a network, and the best way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import msgspec

from elbowroom.broadcast.simulated import (
    MOST_RECIPIENTS,
    PLATFORMS,
    BroadcastDocument,
    BroadcastRequest,
    SimulatedBroadcast,
    broadcast_document,
    parse_latency,
    predicted_document,
    usual_segment,
)
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.launch import build
from elbowroom.quantities import format_size, number, parse_bandwidth, plural
from elbowroom.verbs.declaration import Options, Verb, included, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from elbowroom.broadcast.network import Network, NetworkDocument

BANDWIDTH, LATENCY = "6GB/s", "2us"
"""Of the thesis' network as far as it is known (Fig. 4.3)."""

OVERHEAD = "500ns"
"""For `tune`, as the library has it: without it, one rank sends to all others at once."""

KINDS = "flat, chain, binary, binomial, 4-ary, 8-nomial, two, auto; with delegate- or split3- before it."

SEGMENTS = "Segments that ranks forward one by one; default: 32 KiB for two, else whole."

WINDOWS = (128 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20)
"""Bytes in flight that are tried, the library's own first."""

WORTH = 0.98
"""A window other than the library's is chosen where its time is below this share."""


class NetworkOptions(Options):
    """A simulated network."""

    bandwidth: float | None = option(
        f"Bandwidth of each node's link in each direction; default: {BANDWIDTH}.", "RATE"
    )
    latency: float | None = option(
        f"Latency of each node's link; default: {LATENCY}.", "TIME", parse=parse_latency
    )
    overhead: float | None = option(
        "Time of a rank for each message that it sends or receives; default: none.",
        "TIME",
        parse=parse_latency,
    )

    def network(self, overhead: str | None = None) -> Network:
        """The network; `overhead`: its default."""
        from elbowroom.broadcast.network import Network

        given = overhead if self.overhead is None else self.overhead
        return Network(
            bandwidth=parse_bandwidth(BANDWIDTH if self.bandwidth is None else self.bandwidth, "bandwidth"),
            latency=parse_latency(LATENCY if self.latency is None else self.latency, "latency"),
            overhead=0.0 if given is None else parse_latency(given, "overhead"),
        )

    def given(self) -> dict[str, float]:
        """The options that were given, as numbers; `overhead` and `latency` in s, `bandwidth` in B/s."""
        whole = msgspec.structs.asdict(self.network())
        names = ("bandwidth", "latency", "overhead")
        return {name: whole[name] for name in names if getattr(self, name) is not None}

    def refuse_beside(self, where: str) -> None:
        """UsageError where one of these is given beside the option `where`, which names a file of them."""
        for name in ("bandwidth", "latency", "overhead"):
            if getattr(self, name) is not None:
                raise UsageError(f"cannot be combined with --{where}", field=name, hint="leave one out")


class SimulateBroadcast(Verb):
    """Simulate one broadcast on a cluster, with the library that does it for real.

    Prints the time until the last recipient has the data. Nothing is measured. Without SimGrid, the time on a
    star is that of the library's cost model.
    """

    name = "broadcast simulate"

    recipients: int | None = option("Ranks that receive; default: 38.")
    nodes: int | None = option("The same, with the root among them.")
    size: int = option("Size of the data.", "SIZE", default="429KiB")
    links: NetworkOptions = included(NetworkOptions)
    network: Path | str | None = option(
        "Bandwidth, latency and overhead, from a file that `broadcast tune -o` wrote."
    )
    tree: str = option(KINDS, "KIND", default="binomial")
    segment: int | None = option(SEGMENTS, "SIZE")
    window: int | None = option("Bytes in flight from a rank; default: 128 KiB.", "SIZE")
    platform: str = option("star, fat-tree, or a platform file of SimGrid.", "NAME", default="star")
    racks: int | None = option("Number of racks of the fat tree; default: 4.")
    uplink: float | None = option(
        "Bandwidth from each rack to the switch that joins the racks; default: 12GB/s.", "RATE"
    )
    order: str = option(
        "Order of the ranks on the fat tree: rank, shuffled, or rack (shuffled, and the racks are known).",
        "ORDER",
        default="rank",
    )

    def do(self) -> BroadcastDocument:
        """The time of one broadcast. Where SimGrid is not installed, the time of a star is what the library's
        cost model predicts; MachineError for other platforms, which only SimGrid knows.
        """
        from elbowroom.launch import executables

        request = self._request()
        if request.platform != "star" or build.has_simgrid():
            return broadcast_document(_simulate(request), request)
        case = executables.BroadcastCase(
            size=request.size,
            recipients=request.recipients,
            tree=request.tree,
            segment=request.segment or usual_segment(request.tree, request.size),
            window=request.window,
        )
        (predicted,) = executables.predict_broadcasts(self._network(), [case])
        return predicted_document(predicted.tree, predicted.segment, predicted.received, request)

    def _request(self) -> BroadcastRequest:
        network = self._network()
        racks: dict[str, Any] = {} if self.racks is None else {"racks": self.racks}
        if self.uplink is not None:
            racks["uplink"] = self.uplink
        if racks and self.platform != "fat-tree":
            name = next(iter(racks))
            raise UsageError(
                "is only valid with --platform fat-tree",
                field=name,
                value=getattr(self, name),
                hint="add --platform fat-tree",
            )
        return BroadcastRequest(
            recipients=self._recipients(),
            size=self.size,
            bandwidth=network.bandwidth,
            latency=network.latency,
            overhead=network.overhead,
            tree=self.tree,
            platform=self.platform,
            order=self.order,
            segment=self.segment or 0,
            window=self.window or 0,
            **racks,
        )

    def _network(self) -> Network:
        if self.network is None:
            return self.links.network()
        from elbowroom.broadcast.network import load_network

        self.links.refuse_beside("network")
        return load_network(self.network)

    def _recipients(self) -> int:
        if self.nodes is None:
            return 38 if self.recipients is None else self.recipients
        if self.recipients is not None:
            raise UsageError(
                "cannot be combined with --recipients", field="nodes", value=self.nodes, hint="leave one out"
            )
        if not 2 <= self.nodes <= MOST_RECIPIENTS + 1:
            raise UsageError(
                f"is not between 2 and {MOST_RECIPIENTS + 1}",
                field="nodes",
                value=self.nodes,
                hint="for instance 39",
            )
        return self.nodes - 1

    def print(self, result: BroadcastDocument) -> None:
        """The tree, and the time until the last recipient has the data."""
        segments = f", segments of {format_size(result.segment)}" if result.segment else ""
        chosen = " (auto)" if self.tree == "auto" else ""
        print_wrapped(
            f"{format_size(result.size)} to {result.recipients} recipients, tree: {result.tree}{segments}"
            f"{chosen}; {'predicted' if result.predicted else 'simulated'}, nothing is measured",
            style="bold",
        )
        if not result.predicted:
            print_wrapped(
                f"The root may write them after {number(result.released_us[0])} µs, the last rank after "
                f"{number(max(result.released_us))} µs."
            )

    def answer(self, result: BroadcastDocument) -> Answer:
        """When the last recipient has the data, and where that number comes from."""
        return Answer(
            f"The last recipient has the data after {number(result.time_us)} µs "
            f"({number(result.bandwidth)} MB/s).",
            "This is from the library's cost model: SimGrid, which simulates the times of all ranks, is not "
            "installed (as root: apt-get install libsimgrid-dev)."
            if result.predicted
            else f"{plural(result.recipients, 'recipient')} were simulated one by one, with the tree "
            f"{result.tree}.",
            command_line("broadcast", "tune", "--sizes", result.size, "--recipients", result.recipients),
        )


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
    return _simulate(request)


def _simulate(request: BroadcastRequest) -> SimulatedBroadcast:
    from elbowroom.launch import executables

    if request.platform not in PLATFORMS:
        _check_platform(request.platform)
    return executables.simulate_broadcast(request)


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


def _parse_counts(text: str, field: str) -> tuple[int, ...]:
    """Numbers of recipients; UsageError for what is none."""
    words = text.split(",")
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 9 and 1 <= int(word) <= MOST_RECIPIENTS):
            raise UsageError(
                f"are not numbers between 1 and {MOST_RECIPIENTS}",
                field=field,
                value=text,
                hint="for instance 3,7,38",
            )
    return tuple(map(int, words))


class TuneBroadcasts(Verb):
    """Find the tree, segment and window with the shortest predicted time.

    By a model of the network (`elbowroom help broadcast`), which `auto` uses, too. Its parameters are given,
    or fitted to measured broadcasts.
    """

    name = "broadcast tune"
    has_tables = True
    saves = True

    links: NetworkOptions = included(
        NetworkOptions,
        own={
            "overhead": {
                "help": f"Time of a rank for each message that it sends or receives; default: {OVERHEAD}."
            }
        },
    )
    source: Path | str | None = option(
        "Fit the network to what `broadcast bench --json` printed.", spelled="--bench", formerly="--from"
    )
    sizes: tuple[int, ...] = option("Sizes of the data.", "S,S", default="4,4KiB,64KiB,429KiB,4MiB,32MiB")
    recipients: tuple[int, ...] = option(
        "Numbers of recipients.", "LIST", default="3,7,38,195", parse=_parse_counts
    )
    out: Path | str | None = out_option(Output(".json"), "Write the network for `simulate --network`.")

    def do(self) -> NetworkDocument:
        """The network, and the best way for each size and number of recipients."""
        from elbowroom.broadcast.network import fit_broadcast_network

        if self.source is None:
            network = self.links.network(OVERHEAD)
        else:
            self.links.refuse_beside("bench")
            network = fit_broadcast_network(self.source)
        return tune_broadcasts(network, self.sizes, self.recipients)

    def print(self, result: NetworkDocument) -> None:
        """The network, and a line for each size and number of recipients."""
        network = result.network
        print_wrapped(
            f"Links of {number(network.bandwidth / 1e6)} MB/s and {number(network.latency * 1e6)} µs, "
            f"{number(network.overhead * 1e6)} µs of a rank for each message; "
            f"{'fitted to measured times' if self.source else 'as given'}. Times are predicted.",
            style="bold",
        )
        table = new_table(">size", ">recipients", "tree", ">segment", ">window", ">time, µs")
        for row in result.table:
            segment = format_size(row.segment) if row.segment else "whole"
            table.add_row(
                format_size(row.size), str(row.recipients), row.tree, segment, format_size(row.window),
                number(row.time_us),
            )  # fmt: skip
        print_table(table)

    def answer(self, result: NetworkDocument) -> Answer:
        """The best way of the largest case."""
        row = max(result.table, key=lambda row: row.size * row.recipients)
        trees = dict.fromkeys(each.tree for each in result.table)
        network = ("--network", self.out) if self.out is not None else ()
        segment = ("--segment", row.segment) if row.segment else ()
        return Answer(
            f"{format_size(row.size)} reach {plural(row.recipients, 'recipient')} soonest by the tree "
            f"{row.tree}, in {number(row.time_us)} µs (predicted).",
            f"Of {plural(len(result.table), 'case')}, the best trees are: {', '.join(trees)}.",
            command_line(
                "broadcast", "simulate", "--tree", row.tree, "--size", row.size,
                "--recipients", row.recipients, *segment, *network,
            ),
        )  # fmt: skip


def tune_broadcasts(network: Network, sizes: Sequence[int], recipients: Sequence[int]) -> NetworkDocument:
    """For each size and number of recipients the tree, segment and window of the least predicted time."""
    from elbowroom.broadcast.network import NetworkDocument, TunedBroadcast
    from elbowroom.launch import executables

    cells = [executables.BroadcastCase(size=size, recipients=count) for size in sizes for count in recipients]
    chosen = executables.predict_broadcasts(network, cells)
    tried = [
        executables.BroadcastCase(
            size=cell.size, recipients=cell.recipients, tree=way.tree, segment=way.segment, window=window
        )
        for cell, way in zip(cells, chosen, strict=True)
        for window in WINDOWS
    ]
    times = [one.received for one in executables.predict_broadcasts(network, tried)]
    table = []
    for index in range(0, len(tried), len(WINDOWS)):
        best = min(range(index, index + len(WINDOWS)), key=times.__getitem__)
        case, seconds = tried[index], times[index]
        if times[best] < WORTH * times[index]:
            case, seconds = tried[best], times[best]
        table.append(TunedBroadcast(**msgspec.structs.asdict(case), time_us=seconds * 1e6))
    return NetworkDocument(network=network, table=tuple(table))


def save(document: NetworkDocument, path: Path) -> None:
    """Writes the network as `load_network` reads it."""
    from elbowroom.broadcast.network import NETWORK_FORMAT

    NETWORK_FORMAT.write(path, document)
