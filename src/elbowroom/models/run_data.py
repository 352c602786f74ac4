"""From the points of runs to what models learn from: curves, and rows of loads with other intensities, sizes,
patterns and threads than the calibrated ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation
from elbowroom.models.gpu.samples import GpuWorkload
from elbowroom.models.load import Computing, Direction, Load, LoadRow, Messages
from elbowroom.models.message_size import MessageBandwidth
from elbowroom.plan.kernels import ASSUMED_STORE_FACTOR, NONE, Kernel, find
from elbowroom.points.point import Point
from elbowroom.quantities import format_cores, format_size
from elbowroom.results.result import PointResult
from elbowroom.results.stores import of_one_machine
from elbowroom.stats.interval import Side, Summary

ALIKE = ("processes", "reuse", "core_khz", "uncore_khz", "turbo", "governor")
"""What a load does not say, so that it must be as in the calibrated points."""

COMMUNICATION = (
    "pattern", "comm_core", "comm_threads", "processes", "reuse", "core_khz", "uncore_khz",
    "turbo", "governor",
)  # fmt: skip
"""What points share that communicated alike, whatever their message size and computation."""
TWO_WAYS = ("bidirectional", "ring")
"""Patterns that exchange messages both ways at once and count one of them (docs/reference/protocol.md)."""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What rows are told relative to: the calibrated kernel, message size and pattern; and the store factor
    (results/stores.py) that the kernels' bytes on the bus are counted with.
    """

    setting: Setting
    layout: Layout
    store_factor: float = ASSUMED_STORE_FACTOR

    @property
    def intensity(self) -> float:
        """flop/B of the calibrated kernel, 0 without arithmetic."""
        return _intensity(find(self.setting.kernel), self.setting.cursor)


def load_rows(
    results: Sequence[PointResult],
    cores: Mapping[str, Sequence[int]],
    base: Base,
    used: frozenset[str],
) -> tuple[tuple[LoadRow, ...], dict[str, int]]:
    """Rows of the points that are not `used` (ids) as situations, and how many could not be, by reason."""
    rows, left_out = [], Counter[str]()
    for item in results:
        if item.id in used:
            continue
        reason = _why_no_load(item, base)
        if reason:
            left_out[reason] += 1
        else:
            rows.append(_load_row(item, cores[item.id], base))
    return tuple(rows), dict(left_out)


def _why_no_load(item: PointResult, base: Base) -> str:
    if item.role != "point":
        return "control"
    if item.status != "ok":
        return f"status {item.status}"
    kernel = find(item.kernel)
    if kernel is not None and not kernel.moves_memory:
        return f"{item.kernel} moves no memory"
    for field in ALIKE:
        if getattr(item, field) != getattr(base.setting, field):
            return f"another {field}"
    first = base.layout.first
    if (item.comm_core in first) != (base.setting.comm_core in first):
        return "communication thread on another socket"
    if item.comp_node not in base.layout.nodes or item.comm_node not in base.layout.nodes:
        return "a node that the machine does not have"
    if item.pattern == "receive" and item.size != base.setting.size:
        return "two messages of another size in flight"
    if not any(side_bandwidths(item.comm, item.size)) and not any(side_bandwidths(item.comp, item.size)):
        return "no values"
    return ""


def _load_row(item: PointResult, cores: Sequence[int], base: Base) -> LoadRow:
    """In terms of the calibrated kernel: its bytes for those of the point's own, by what both move on the
    bus.
    """
    scale = bus_scale(item, base)
    comp = [None if value is None else value / scale for value in side_bandwidths(item.comp, item.size)]
    same_pattern = item.pattern == base.setting.pattern
    ways = 2 if item.pattern in TWO_WAYS and not same_pattern else 1
    comm = [None if value is None else value * ways for value in side_bandwidths(item.comm, item.size)]
    direction: Direction = "both" if ways == 2 else "receive"
    return LoadRow(
        load=Load(
            computing=() if item.kernel == NONE else computing_groups(item, cores, base, scale),
            messages=Messages(
                node=base.layout.nodes.index(item.comm_node),
                direction=direction,
                size=None if item.size == base.setting.size else item.size,
                threads=item.comm_threads,
            ),
        ),
        comp_alone=comp[0],
        comm_alone=comm[0],
        comp_together=comp[1],
        comm_together=comm[1],
        kernel="" if item.kernel in (base.setting.kernel, NONE) else item.kernel,
        pattern="" if same_pattern or ways == 2 else item.pattern,
        source=item.id,
    )


def computing_groups(
    item: PointResult, cores: Sequence[int], base: Base, scale: float
) -> tuple[Computing, ...]:
    """The computing cores of a point as groups, with the arithmetic intensity of its kernel."""
    kernel = find(item.kernel)
    # Of a kernel without cursor nothing tells what its arithmetic costs: its own factor holds that.
    intense = kernel is not None and kernel.uses_cursor
    intensity = _intensity(kernel, item.cursor) * scale if intense else 0.0
    node, first = base.layout.nodes.index(item.comp_node), sum(core in base.layout.first for core in cores)
    counts = ((0, first), (1, len(cores) - first))
    return tuple(
        Computing(socket=socket, node=node, count=count, intensity=intensity)
        for socket, count in counts
        if count
    )


def _intensity(kernel: Kernel | None, cursor: int) -> float:
    if kernel is None or not kernel.moves_memory:
        return 0.0
    return kernel.flops * (cursor if kernel.uses_cursor else 1) / kernel.algorithmic_bytes


def bus_scale(item: PointResult, base: Base) -> float:
    """Bytes of a point's kernel for a byte of the calibrated one's, where both move as much on the bus."""
    own, kernel = find(base.setting.kernel), find(item.kernel)
    if kernel is None or own is None:
        return 1.0
    return kernel.bus_share(base.store_factor) / own.bus_share(base.store_factor)


def side_bandwidths(side: Side, size: int) -> tuple[float | None, float | None]:
    """Alone and together, MB/s; of a half round trip in us, the message's size over it."""
    bandwidths: list[float | None] = []
    for summary in (side.alone, side.together):
        if summary is None or not summary.median > 0 or summary.unit not in ("MB/s", "us"):
            bandwidths.append(None)
        else:
            bandwidths.append(summary.median if summary.unit == "MB/s" else size / summary.median)
    return bandwidths[0], bandwidths[1]


NORMAL_95 = 1.959964
"""Half of the 95 % interval of a normal value, in standard deviations."""

THESIS = "memset_nt"


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How a machine's own numbers become a model's: `nodes[i]` is the operating system's number of node i,
    `first` the cores (operating system's numbers) of the first socket.
    """

    shape: Shape
    nodes: tuple[int, ...]
    first: frozenset[int]


class FitData(msgspec.Struct, frozen=True, kw_only=True):
    """`left_out`: how many points are not in the curves, by reason; `sizes`: messages alone, of all sizes;
    `loads`: points that are other loads than situations, `unused` those that are neither, by reason;
    `intensity` (flop/B), `pattern`: of the curves; `base`: what rows of other loads are told relative to;
    `store_factor`: that of the machine if it was measured (results/stores.py).
    """

    curves: Curves
    layout: Layout
    left_out: dict[str, int]
    sizes: tuple[MessageBandwidth, ...] = ()
    loads: tuple[LoadRow, ...] = ()
    unused: dict[str, int] = {}
    intensity: float = 0.0
    pattern: str = "receive"
    base: Base | None = None
    store_factor: float | msgspec.UnsetType = msgspec.UNSET


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all points of one set of curves share."""

    kernel: str
    size: int
    pattern: str
    cursor: int
    comm_core: int
    comm_threads: int
    processes: str
    reuse: str
    core_khz: int | None
    uncore_khz: int | None
    turbo: bool | None = None
    governor: str | None = None

    def text(self) -> str:
        """For people: what distinguishes it."""
        words = [self.kernel if self.cursor == 1 else f"{self.kernel} x{self.cursor}"]
        words += [
            f"{format_size(self.size)} {self.pattern}",
            f"communication thread on core {self.comm_core}",
        ]
        if self.comm_threads > 1:
            words.append(f"{self.comm_threads} communication threads")
        if self.processes != "node":
            words.append(f"a process per {self.processes}")
        if self.reuse != "same":
            words.append(f"buffers: {self.reuse}")
        for name, khz in (("core", self.core_khz), ("uncore", self.uncore_khz)):
            if khz is not None:
                words.append(f"{name} frequency {khz} kHz")
        if self.turbo is not None:
            words.append("with turbo" if self.turbo else "without turbo")
        if self.governor is not None:
            words.append(f"governor {self.governor}")
        return ", ".join(words)


def layout_of(machine: Machine) -> Layout:
    """The machine as models see it: its sockets, and their nodes in rising order, counted from 0."""
    sockets = machine.sockets
    nodes = [sorted(one.number for one in machine.nodes if one.package in packages) for packages in sockets]
    cores = [sum(core.package in packages for core in machine.cores) for packages in sockets]
    layout = tuple(zip(cores, map(len, nodes), strict=True))
    order = tuple(number for numbers in nodes for number in numbers)
    first = frozenset(core.number for core in machine.cores if core.package in sockets[0])
    nics = [order.index(nic.node) for nic in machine.nics if nic.node in order]
    shape = Shape(
        name=machine.name,
        cores_first_socket=len(first),
        numa_per_socket=len(nodes[0]),
        sockets=len(sockets),
        nic_node=nics[0] if len(set(nics)) == 1 else None,
        virtual=machine.virtual,
        layout=layout if len(set(layout)) > 1 else msgspec.UNSET,
    )
    return Layout(shape=shape, nodes=order, first=first)


def collect(
    results: Sequence[PointResult],
    cores: Mapping[str, Sequence[int]],
    machine: Machine,
    *,
    origin: str = "",
    kernel: str | None = None,
    size: int | None = None,
    store_factor: float | msgspec.UnsetType = msgspec.UNSET,
) -> FitData:
    """The curves of a run: bandwidth points with status ok of one kernel, message size and way to measure.

    `cores` gives the computing cores of each point by its id. Without `kernel` and `size`, those that most
    points share are taken. `store_factor`: one that was measured apart from the run; default: what the run
    measured. UsageError where nothing is left.
    """
    layout = layout_of(machine)
    left_out: Counter[str] = Counter()
    usable = []
    # Those of an accelerator have a model of their own (models/gpu), and are rows in models/copy_rows.py.
    results = [item for item in results if not isinstance(item.workload, GpuWorkload)]
    for item in results:
        reason = _why_not(item)
        if reason:
            left_out[reason] += 1
        else:
            usable.append(item)
    chosen, others = _chosen(usable, kernel, size)
    for setting, count in others.items():
        left_out[f"another benchmark: {setting.text()}"] += count
    rows: dict[Situation, Row] = {}
    for item in usable:
        if _setting(item) == chosen:
            row = _row(item, cores[item.id], layout)
            if row.situation in rows:
                left_out["other computing cores, as many"] += 1
            else:
                rows[row.situation] = row
    if chosen is None or not rows:
        raise _nothing(left_out, kernel, size)
    curves = Curves(
        shape=layout.shape, rows=tuple(rows.values()), origin=origin, kernel=chosen.kernel, size=chosen.size
    )
    store_factor = store_factor or of_one_machine(results)
    base = Base(setting=chosen, layout=layout, store_factor=store_factor or ASSUMED_STORE_FACTOR)
    used = frozenset(item.id for item in usable if _setting(item) == chosen)
    loads, unused = load_rows(results, cores, base, used)
    return FitData(
        curves=curves,
        layout=layout,
        left_out=dict(left_out),
        sizes=message_bandwidths(results, chosen, layout.nodes),
        loads=loads,
        unused=unused,
        intensity=base.intensity,
        pattern=chosen.pattern,
        base=base,
        store_factor=store_factor,
    )


def _why_not(item: PointResult) -> str:
    if item.role != "point":
        return "control"
    if item.workload.facts.without_model:
        return item.workload.facts.without_model
    if item.metric != "bandwidth":
        return "measured as latency"
    if item.status != "ok":
        return f"status {item.status}"
    if item.kernel == NONE:
        return "no computation"
    summaries = (item.comp.alone, item.comp.together, item.comm.alone, item.comm.together)
    units = {summary.unit for summary in summaries if summary is not None}
    if units != {"MB/s"}:
        return f"not in MB/s ({', '.join(sorted(units)) or 'no values'})"
    if any(summary is not None and not summary.median > 0 for summary in summaries):
        return "a bandwidth of 0"
    return ""


def _setting(item: PointResult) -> Setting:
    return Setting(**{field.name: getattr(item, field.name) for field in msgspec.structs.fields(Setting)})


def _chosen(
    usable: Sequence[PointResult], kernel: str | None, size: int | None
) -> tuple[Setting | None, dict[Setting, int]]:
    """The setting of most points among those asked for, and how many points have each of the others.

    At a tie the thesis' kernel and the larger messages, which contend most (6.3.1), then what is plain: fewer
    flops and communication threads.
    """
    counts = Counter(_setting(item) for item in usable)
    candidates = {
        setting: count
        for setting, count in counts.items()
        if kernel in (None, setting.kernel) and size in (None, setting.size)
    }
    chosen = max(
        candidates,
        key=lambda item: (
            candidates[item], item.kernel == THESIS, item.size, -item.cursor, -item.comm_threads
        ),
        default=None,
    )  # fmt: skip
    return chosen, {setting: count for setting, count in counts.items() if setting != chosen}


def _nothing(left_out: Mapping[str, int], kernel: str | None, size: int | None) -> UsageError:
    words = [kernel] if kernel else []
    words += [format_size(size)] if size else []
    wanted = f" of {' and '.join(words)}" if words else ""
    reasons = (
        "; ".join(f"{count} points: {reason}" for reason, count in left_out.items()) or "it has no points"
    )
    return UsageError(
        f"no point{wanted} has bandwidths alone and together ({reasons})",
        field="run",
        hint="measure with: elbowroom run model",
    )


def situation(item: PointResult | Point, cores: Sequence[int], layout: Layout) -> Situation:
    """Where a point stands as models see it; `cores` are its computing cores. UsageError for a node that the
    machine does not have.
    """
    for field, node in (("comp_node", item.comp_node), ("comm_node", item.comm_node)):
        if node not in layout.nodes:
            raise UsageError(
                f"point {item.id} is on a node that the machine does not have",
                field=field,
                value=node,
                hint=f"nodes: {format_cores(layout.nodes)}",
            )
    n = sum(core in layout.first for core in cores)
    return Situation(
        comp_node=layout.nodes.index(item.comp_node),
        comm_node=layout.nodes.index(item.comm_node),
        n=n,
        n_other=len(cores) - n,
    )


def _row(item: PointResult, cores: Sequence[int], layout: Layout) -> Row:
    sides = (item.comp.alone, item.comm.alone, item.comp.together, item.comm.together)
    medians = (None if summary is None else summary.median for summary in sides)
    first, second, third, fourth = map(_spread, sides)
    return Row(
        situation=situation(item, cores, layout),
        **dict(zip(STREAMS, medians, strict=True)),
        spread=(first, second, third, fourth),
        source=item.id,
    )


def _spread(summary: Summary | None) -> float | None:
    """Relative standard error of the median, from its 95 % bootstrap interval; None where it has none."""
    if summary is None or summary.width is None:
        return None
    return summary.width / (2 * NORMAL_95 * summary.median)


def message_bandwidths(
    results: Sequence[PointResult], like: object, nodes: Sequence[int]
) -> tuple[MessageBandwidth, ...]:
    """Bandwidths of messages alone by node and size: the median over the points that communicated `like`
    those of the curves (an object with the fields of COMMUNICATION). `nodes`: the system's numbers in order.
    """
    bandwidths: dict[tuple[int, int], list[float]] = {}
    wanted = tuple(getattr(like, field) for field in COMMUNICATION)
    for item in results:
        alone = item.comm.alone
        if item.status != "ok" or item.comm_node not in nodes or alone is None or not alone.median > 0:
            continue
        if tuple(getattr(item, field) for field in COMMUNICATION) == wanted:
            # A latency is half a round trip in us: B/us are MB/s.
            value = item.size / alone.median if alone.unit == "us" else alone.median
            bandwidths.setdefault((nodes.index(item.comm_node), item.size), []).append(value)
    return tuple(
        MessageBandwidth(node=node, size=size, bandwidth=median(values))
        for (node, size), values in sorted(bandwidths.items())
    )
