"""When each rank of a broadcast has the data, and when it has forwarded them, over the rank and by tree.

    python benchmarks/broadcast_areas.py [--recipients 38] [--size 409KiB] [--tree KIND]... [--segment SIZE]
    [--priorities rising] [--from BENCH.json] [-o FIGURE] [--json]

Figures 4.5 and 4.6 of Swartvagher's thesis: simulated on the network of its Fig. 4.3 (needs libsimgrid-dev),
or with `--from` the measured broadcasts of `elbowroom broadcast bench --rising --json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from command import Command

from elbowroom.broadcast.measured import BroadcastEntry, read_bench
from elbowroom.broadcast.simulated import (
    BroadcastDocument,
    BroadcastRequest,
    broadcast_document,
    parse_priorities,
)
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.launch import executables
from elbowroom.quantities import format_size, parse_size

BANDWIDTH, LATENCY = 6e9, 2e-6
TREES = ("flat", "binary", "binomial")


class AreasDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast for each tree, and the recipients' priorities (none:
    all alike).
    """

    priorities: tuple[int, ...]
    broadcasts: tuple[BroadcastDocument, ...]

    @property
    def title(self) -> str:
        """`409 KiB to 38 recipients, simulated`."""
        first = self.broadcasts[0]
        source = "simulated" if first.simulated else "measured"
        return f"{format_size(first.size)} to {first.recipients} recipients, {source}"


def simulate_areas(trees: Sequence[str], request: BroadcastRequest) -> AreasDocument:
    """The same broadcast by each of the trees: when each rank has received and released the data."""
    requests = [msgspec.structs.replace(request, tree=tree) for tree in trees]
    return AreasDocument(
        priorities=request.priorities,
        broadcasts=tuple(broadcast_document(executables.simulate_broadcast(one), one) for one in requests),
    )


def load_areas(file: str | Path) -> AreasDocument:
    """The same of measured broadcasts, from what `broadcast bench --json` printed; UsageError for another
    file, and where sizes, numbers of recipients or priorities differ.
    """
    return measured_areas(read_bench(file, list[BroadcastEntry]))


def measured_areas(entries: Sequence[BroadcastEntry]) -> AreasDocument:
    """The measured broadcasts of one size to one number of recipients. UsageError where there are several."""
    if not entries:
        raise UsageError("holds no broadcast", field="from", hint="measure with broadcast bench --json")
    for field, values in (
        ("sizes", {entry.size for entry in entries}),
        ("recipients", {entry.ranks - 1 for entry in entries}),
        ("priorities", {entry.priorities for entry in entries}),
    ):
        if len(values) > 1:
            raise UsageError(
                f"holds broadcasts of several {field}: {', '.join(map(str, sorted(values)))}",
                field="from",
                hint=f"measure one of the {field} with broadcast bench --rising --json",
            )
    first = entries[0]
    for entry in entries:
        if (len(entry.received), len(entry.released)) != (first.ranks - 1, first.ranks):
            raise UsageError(
                f"has other times than one for each of {first.ranks} ranks",
                field="from",
                hint="give what `elbowroom broadcast bench --json` prints",
            )
    rising = tuple(range(1, first.ranks)) if first.priorities == "rising" else ()
    return AreasDocument(priorities=rising, broadcasts=tuple(map(_measured_document, entries)))


def _measured_document(entry: BroadcastEntry) -> BroadcastDocument:
    return BroadcastDocument(
        simulated=False,
        predicted=False,
        time_us=entry.time.median,
        bandwidth=entry.bandwidth,
        tree=entry.tree,
        segment=entry.segment,
        recipients=entry.ranks - 1,
        size=entry.size,
        received_us=entry.received,
        released_us=entry.released,
    )


def area_figures(broadcasts: Sequence[BroadcastDocument]) -> tuple[Figure, ...]:
    """A panel for each broadcast, over the rank, as Figs 4.5 and 4.6 of Swartvagher's thesis: the lower line
    is when a rank has the data, the upper one when it has forwarded them.
    """
    highest = max(max(one.released_us) for one in broadcasts)
    return tuple(_figure(one, highest) for one in broadcasts)


def _figure(broadcast: BroadcastDocument, highest: float) -> Figure:
    received = broadcast.received_us
    ranks = tuple(float(rank) for rank in range(1, len(received) + 1))
    segments = f", segments of {format_size(broadcast.segment)}" if broadcast.segment else ""
    return Figure(
        name=f"areas-{broadcast.tree}",
        title=f"{broadcast.tree}{segments}",
        x=Axis(label="rank", whole=True),
        left=Axis(label="time (µs)", reach=highest),
        series=(
            Series(
                name="from RECEIVED to RELEASED",
                side="communication",
                style="line",
                drawn="smooth",
                x=ranks,
                y=received,
                low=received,
                high=broadcast.released_us[1:],
                value="received",
                band="received – released",
            ),
        ),
    )


def show(areas: AreasDocument) -> None:
    """A line for each rank."""
    print(areas.title)
    print(f"{'rank':>6}{'priority':>10}{''.join(f'{one.tree:>20}' for one in areas.broadcasts)}   us")
    for rank in range(1, areas.broadcasts[0].recipients + 1):
        priority = areas.priorities[rank - 1] if areas.priorities else 0
        spans = (f"{one.received_us[rank - 1]:.0f} - {one.released_us[rank]:.0f}" for one in areas.broadcasts)
        print(f"{rank:6d}{priority:10d}{''.join(f'{span:>20}' for span in spans)}")


def main() -> None:
    parser = Command(__doc__, smoke="--recipients 3 --tree flat")
    parser.add_argument("--from", dest="source", help="measured broadcasts instead of simulated ones")
    parser.add_argument("--recipients", type=int, default=38)
    parser.add_argument("--size", type=parse_size, default="409KiB")
    parser.add_argument("--tree", dest="trees", action="append", help="may be repeated: a panel for each")
    parser.add_argument("--segment", type=parse_size, default=0, help="forwarded one by one")
    parser.add_argument("--priorities", default="rising", help="rising, equal, or one each: 3,0,1")
    parser.add_argument("-o", "--out", type=Path, help="draw the areas: .png or .svg")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.source is not None:
        areas = load_areas(options.source)
    else:
        request = BroadcastRequest(
            recipients=options.recipients,
            size=options.size,
            bandwidth=BANDWIDTH,
            latency=LATENCY,
            segment=options.segment,
            priorities=parse_priorities(options.priorities, options.recipients),
        )
        areas = simulate_areas(options.trees or TREES, request)
    if options.out is not None:
        columns = min(3, len(areas.broadcasts))
        save_panels(area_figures(areas.broadcasts), options.out, columns=columns, title=areas.title)
    print(msgspec.json.encode(areas).decode()) if options.json else show(areas)


if __name__ == "__main__":
    main()
