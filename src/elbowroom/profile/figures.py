"""The pictures of a profile: where the time of each rank goes, the network's use over time on each node, and
how many ranks use it at once (Koop, Luo, Panda: slides 17 and 18), as figures and as a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.draw.html import figure_page
from elbowroom.errors import UsageError
from elbowroom.profile.analysis import NOTICEABLE, Analysis
from elbowroom.profile.summary import (
    MemorySummary,
    MemoryTraffic,
    NodeSummary,
    OverlapSummary,
    ProfileSummary,
)

Floats = npt.NDArray[np.float64]

NODES = 8
"""Nodes that have figures of their own, those that send most."""
WINDOWS = 240
MEGA = 1e6


BARS = 32
"""Up to so many ranks have a bar each; more are sorted and drawn as areas."""
STEPS = 400
"""Places along the axis of more ranks; each is the mean of its ranks."""


LEAST = 0.001
"""Share of the time of all ranks from which on a part is shown."""


class RankTimes(NamedTuple):
    """Where the time of the ranks goes, s: (ranks, parts), and the names of the parts."""

    parts: tuple[str, ...]
    seconds: Floats

    def shares(self) -> list[float]:
        """Of the time of all ranks together."""
        whole = self.seconds.sum()
        return (self.seconds.sum(axis=0) / whole).tolist() if whole else [0.0] * len(self.parts)


def rank_times(analysis: Analysis, summary: ProfileSummary) -> RankTimes:
    """Outside MPI each rank computes; inside it, data of the rank is on the network, or it waits. On one node
    nothing is on the network: all calls count as one part.
    """
    ranks = summary.per_rank
    spans = analysis.on_network
    moving = np.bincount(
        spans.group,
        weights=analysis.in_mpi.covered(spans.group, spans.begin, spans.end),
        minlength=analysis.profile.size,
    )
    inside = np.array([rank.mpi_s for rank in ranks])
    columns = {"computing": np.array([rank.computation_s for rank in ranks])}
    if len(summary.nodes) > 1:
        transfer = np.minimum(moving[[rank.rank for rank in ranks]], inside)
        columns |= {"transferring in MPI": transfer, "waiting in MPI": inside - transfer}
    else:
        columns["in MPI"] = inside
    columns["starting and ending MPI"] = np.array([rank.setup_s for rank in ranks])
    whole = sum(float(part.sum()) for part in columns.values())
    shown = {
        name: part for name, part in columns.items() if name == "computing" or part.sum() >= LEAST * whole
    }
    return RankTimes(tuple(shown), np.maximum(np.column_stack([*shown.values()]), 0.0))


def times_sentence(times: RankTimes, summary: ProfileSummary) -> str:
    """Where the time goes on average, and the rank that computes least."""
    parts = [f"{_percent(share)} {name}" for name, share in zip(times.parts, times.shares(), strict=True)]
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
    sentence = f"On average the ranks spend {listed}."
    whole = times.seconds.sum(axis=1)
    if len(whole) < 2 or not whole.all():
        return sentence
    computing = times.seconds[:, 0] / whole
    least, most = int(computing.argmin()), int(computing.argmax())
    if computing[most] - computing[least] < NOTICEABLE:
        return sentence
    return (
        f"{sentence} Rank {summary.per_rank[least].rank} computes least ({_percent(computing[least])} of its "
        f"time), rank {summary.per_rank[most].rank} most ({_percent(computing[most])})."
    )


_JOB_HUES: tuple[Hue, ...] = ("blue", "red", "black")
_HUES: dict[str, Hue] = {"computing": "red", "starting and ending MPI": "black"}
"""Other parts are blue."""


def times_figure(times: RankTimes, summary: ProfileSummary) -> Figure:
    """A stacked bar for each rank; of many ranks areas, those that compute most first."""
    title, left = "Where the time of each rank goes", Axis(label="time (s)")
    seconds = times.seconds
    if len(seconds) <= BARS:
        tops = seconds.cumsum(axis=1)
        return Figure(
            name="ranks",
            title=title,
            x=Axis(label="rank", names=tuple(str(rank.rank) for rank in summary.per_rank)),
            left=left,
            series=tuple(
                Series(
                    name=name,
                    hue=_HUES.get(name, "blue"),
                    style="line",
                    drawn="bars",
                    x=tuple(map(float, range(len(seconds)))),
                    base=tuple((tops[:, part] - seconds[:, part]).tolist()),
                    y=tuple(tops[:, part].tolist()),
                    value="up to (s)",
                )
                for part, name in enumerate(times.parts)
            ),
        )
    ordered = seconds[np.argsort(-seconds[:, 0], kind="stable")]
    groups = np.array_split(np.arange(len(ordered)), min(STEPS, len(ordered)))
    x = tuple(float(group.mean()) + 1 for group in groups)
    means = np.array([ordered[group].mean(axis=0) for group in groups])
    return Figure(
        name="ranks",
        title=title,
        x=Axis(label="ranks, those that compute most first", whole=True),
        left=left,
        series=tuple(
            Series(
                name=name,
                hue=_HUES.get(name, "blue"),
                style="line",
                drawn="area",
                x=x,
                y=tuple(means[:, part].tolist()),
                value="s",
            )
            for part, name in enumerate(times.parts)
        ),
    )


def profile_figures(analysis: Analysis, summary: ProfileSummary) -> list[Figure]:
    """Where the time of the ranks goes; the bytes and ranks over time of each node with anything on its
    network; and one of all concurrencies.
    """
    return [times_figure(rank_times(analysis, summary), summary), *_network_figures(analysis, summary)]


def _network_figures(analysis: Analysis, summary: ProfileSummary) -> list[Figure]:
    order = sorted(range(len(summary.nodes)), key=lambda node: -summary.nodes[node].bytes_between)[:NODES]
    edges = np.linspace(0.0, analysis.duration, WINDOWS + 1)
    over_time = [_over_time(analysis, summary, node, edges) for node in sorted(order)]
    figures = [figure for figure in over_time if any(any(series.y) for series in figure.series)]
    memory = [] if analysis.profile.memory is None else [_memory_traffic(analysis, analysis.profile.memory)]
    return [*figures, _concurrency(summary, sorted(order)), *memory]


def _over_time(
    analysis: Analysis,
    summary: ProfileSummary,
    node: int,
    edges: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Figure:
    curve = analysis.node_curve(node, edges)
    name = summary.nodes[node].name
    x = tuple(((edges[:-1] + edges[1:]) / 2).tolist())
    width = np.diff(edges) * MEGA
    return Figure(
        name=f"network-{node}",
        title=f"Network use over time, {name}",
        x=Axis(label="time (s)"),
        left=Axis(label="MB/s"),
        below=Axis(label="ranks on the network", reach=float(summary.nodes[node].ranks)),
        series=(
            Series(
                name="sent",
                hue="blue",
                style="line",
                drawn="area",
                x=x,
                y=tuple((curve.sent / width).tolist()),
                value="MB/s",
            ),
            Series(
                name="received",
                hue="blue",
                style="line",
                drawn="area",
                x=x,
                y=tuple((curve.received / width).tolist()),
                value="MB/s",
            ),
            Series(
                name="ranks on the network",
                hue="black",
                style="line",
                drawn="smooth",
                axis="below",
                x=x,
                y=tuple(curve.ranks.tolist()),
                value="mean number",
            ),
        ),
        caption=f"idle {_percent(summary.nodes[node].idle_share)} of the time",
    )


def together_figures(jobs: Mapping[str, Analysis]) -> list[Figure]:
    """The network of the nodes that two jobs shared, over time on the clock of their hosts (Koop, Luo, Panda:
    slide 23): what each job sends, and how many of its ranks are on the network. UsageError where the jobs
    have no node in common, or no time.
    """
    starts = {name: _start_s(analysis) for name, analysis in jobs.items()}
    first = min(starts.values())
    spans = {name: (start - first, start - first + jobs[name].duration) for name, start in starts.items()}
    nodes = {name: _node_identities(analysis) for name, analysis in jobs.items()}
    own = next(iter(nodes.values()))
    shared = [node for node in own if all(node in others for others in nodes.values())]
    value = ", ".join(jobs)
    if not shared:
        hint = "profile both with the same --nic-name, or on the same hosts"
        raise UsageError("have no node in common", field="together", value=value, hint=hint)
    if max(begin for begin, _ in spans.values()) >= min(end for _, end in spans.values()):
        hint = "start them at the same time"
        raise UsageError("did not run at the same time", field="together", value=value, hint=hint)
    edges = np.linspace(0.0, max(end for _, end in spans.values()), WINDOWS + 1)
    return [
        _together(jobs, spans, {name: own.index(node) for name, own in nodes.items()}, edges)
        for node in shared[:NODES]
    ]


def _node_identities(analysis: Analysis) -> tuple[str, ...]:
    """What two jobs on the same node have in common, by the job's number of it: its host, or where the NIC is
    emulated the NIC's name and its number of the node.
    """
    manifest = analysis.profile.manifest
    if manifest is None or manifest.nic is None:
        return analysis.profile.names
    numbers = manifest.nic.nodes or range(analysis.profile.nodes)
    return tuple(f"{manifest.nic.name}:{number}" for number in numbers)


def _start_s(analysis: Analysis) -> float:
    """The job's start, s of the wall clock of its first rank."""
    return min(rank.start_wall_ns for rank in analysis.profile.ranks) / 1e9


def _together(
    jobs: Mapping[str, Analysis],
    spans: Mapping[str, tuple[float, float]],
    node_of: Mapping[str, int],
    edges: Floats,
) -> Figure:
    x = tuple(((edges[:-1] + edges[1:]) / 2).tolist())
    sent, busy = [], []
    first = next(iter(jobs))
    node = jobs[first].profile.names[node_of[first]]
    for hue, (name, analysis) in zip(_JOB_HUES, jobs.items(), strict=False):
        curve = analysis.node_curve(node_of[name], edges - spans[name][0])
        drawn = Series(name=name, hue=hue, style="line", drawn="area", x=x, y=(), value="MB/s")
        rates = tuple((curve.sent / np.diff(edges) / MEGA).tolist())
        sent.append(msgspec.structs.replace(drawn, y=rates))
        ranks = tuple(curve.ranks.tolist())
        busy.append(
            msgspec.structs.replace(drawn, drawn="smooth", axis="below", y=ranks, value="mean number")
        )
    return Figure(
        name=f"together-{node}",
        title=f"Jobs on the same network over time, {node}",
        x=Axis(label="time (s)"),
        left=Axis(label="sent (MB/s)"),
        below=Axis(label="ranks on the network"),
        series=(*sent, *busy),
        caption="; ".join(f"{name}: {begin:.3g} to {end:.3g} s" for name, (begin, end) in spans.items()),
    )


def _memory_traffic(analysis: Analysis, traffic: MemoryTraffic) -> Figure:
    edges = np.linspace(0.0, analysis.duration, WINDOWS + 1)
    start = min(
        (rank.start_ns for rank in analysis.profile.ranks if rank.host == traffic.host),
        default=traffic.times_ns[0],
    )
    rates = traffic.rates(start, edges) / MEGA
    counted = np.isfinite(rates)
    return Figure(
        name="memory",
        title=f"Memory traffic over time, {traffic.host}",
        x=Axis(label="time (s)"),
        left=Axis(label="MB/s"),
        series=(
            Series(
                name=traffic.source,
                hue="blue",
                style="line",
                drawn="area",
                x=tuple(((edges[:-1] + edges[1:]) / 2)[counted].tolist()),
                y=tuple(rates[counted].tolist()),
                value="MB/s",
            ),
        ),
        caption="everything on this host" if traffic.scope == "host" else "processes of the job",
    )


def _concurrency(summary: ProfileSummary, order: list[int]) -> Figure:
    """The mean of the nodes: how long so many ranks of a node were on the network at once."""
    most = max(summary.nodes[node].ranks for node in order)
    shares = np.zeros((len(order), most + 1))
    for row, node in enumerate(order):
        own = summary.nodes[node].concurrency
        shares[row, : len(own)] = own
    return Figure(
        name="concurrency",
        title="Ranks of a node on the network at the same time",
        x=Axis(label="ranks on the network", whole=True, names=tuple(map(str, range(most + 1)))),
        left=Axis(label="share of the time (%)"),
        series=(
            Series(
                name="share of the time",
                hue="blue",
                style="line",
                drawn="bars",
                x=tuple(map(float, range(most + 1))),
                y=tuple((100 * shares.mean(axis=0)).tolist()),
                low=tuple((100 * shares.min(axis=0)).tolist()),
                high=tuple((100 * shares.max(axis=0)).tolist()),
                value="%, mean of the nodes",
                band="least – most of a node",
            ),
        ),
    )


COLUMNS = (
    "node", "ranks", "inside (MB)", "between (MB)", "MPI (s)", "network (s)", "idle", "burstiness",
    "imbalance",
)  # fmt: skip


RANK_COLUMNS = ("rank", "node", "inside (MB)", "between (MB)", "received (MB)", "MPI (s)", "network (s)")


def rank_rows(summary: ProfileSummary) -> list[tuple[str, ...]]:
    """The traffic that each rank contributes (Koop, Luo, Panda: slide 4), in the order of RANK_COLUMNS; those
    that send most to other nodes first.
    """
    return [
        (
            str(rank.rank),
            summary.nodes[rank.node].name,
            *(f"{one / MEGA:.3g}" for one in (rank.bytes_inside, rank.bytes_between, rank.bytes_received)),
            f"{rank.mpi_s:.3g}",
            f"{rank.network_s:.3g}",
        )
        for rank in sorted(summary.per_rank, key=lambda rank: -rank.bytes_between)
    ]


def profile_page(analysis: Analysis, summary: ProfileSummary) -> str:
    """The profile as one HTML file that needs no network."""
    manifest = analysis.profile.manifest
    times = rank_times(analysis, summary)
    return figure_page(
        "Profile",
        sentences(summary),
        _network_figures(analysis, summary),
        ("Nodes", COLUMNS, [node_row(node) for node in summary.nodes]),
        command=" ".join(manifest.command) if manifest else "",
        first=(times_sentence(times, summary), times_figure(times, summary)),
    )


def sentences(summary: ProfileSummary) -> list[tuple[str, tuple[str, ...]]]:
    """What the profile says in words, each with its notes."""
    nodes = len(summary.nodes)
    where = "one node" if nodes == 1 else f"{nodes} nodes"
    return [
        (
            f"{summary.ranks} ranks on {where} made {summary.calls} MPI calls in {summary.duration_s:.3g} s."
            f"{_setup(summary)}",
            summary.notes,
        ),
        (overlap_sentence(summary.overlap), ()),
        (_network(summary), ()),
        (memory_sentence(summary.memory), ()),
    ]


def _setup(summary: ProfileSummary) -> str:
    setup = sum(node.setup_s for node in summary.nodes)
    mpi = sum(node.mpi_s for node in summary.nodes)
    if setup < NOTICEABLE * (setup + mpi):
        return ""
    return (
        f" Starting and ending MPI took {setup:.3g} s, summed over all ranks, which is not counted as "
        f"communication; all other calls took {mpi:.3g} s."
    )


def _network(summary: ProfileSummary) -> str:
    if len(summary.nodes) == 1:
        return "Network: n/a (all ranks are on one node)."
    total = summary.curve.total[0] / MEGA
    return f"Network times assume a bandwidth of {total:.4g} MB/s ({summary.curve.source})."


def memory_sentence(memory: MemorySummary) -> str:
    """How much went to memory, or why that is not known."""
    if memory.bytes is None:
        return f"Memory traffic: n/a ({memory.reason})."
    sentence = f"Memory traffic: {memory.bytes / 1e9:.3g} GB"
    if memory.rate is not None:
        sentence += f", {memory.rate / 1e9:.3g} GB/s while computing"
    if memory.source:
        what = "everything on" if memory.scope == "host" else "the job's processes on"
        sentence += f" ({memory.source}: {what} {memory.host})"
    return f"{sentence}."


def overlap_sentence(overlap: OverlapSummary) -> str:
    """How much of nonblocking operations overlapped computation, and why the rest did not."""
    where = "between ranks" if overlap.inside else "between nodes"
    if overlap.achieved is None or overlap.possible is None:
        return f"No nonblocking operation {where} was recorded, so nothing could overlap."
    time = (
        "time of nonblocking operations inside the node"
        if overlap.inside
        else ("network time of nonblocking operations")
    )
    sentence = (
        f"Of the {time}, {_percent(overlap.achieved)} overlapped computation; "
        f"{_percent(overlap.possible)} could."
    )
    return f"{sentence} {waiting_sentence(overlap)}" if overlap.reason else sentence


def waiting_sentence(overlap: OverlapSummary) -> str:
    """How long ranks waited for the mean nonblocking operation, why, and what helps."""
    hidden = (overlap.achieved or 0.0) * overlap.network_s
    waited, whole = (
        1e3 * seconds / max(overlap.operations, 1)
        for seconds in (overlap.waited_s, overlap.waited_s + hidden)
    )
    return f"The mean one waited {waited:.3g} of {whole:.3g} ms in MPI_Wait: {overlap.reason}. {_REMEDY}"


_REMEDY = (
    "Call MPI_Test while computing, or give the library a thread of its own for progress (MPICH: "
    "MPICH_ASYNC_PROGRESS=1, Intel MPI: I_MPI_ASYNC_PROGRESS=1, others: a thread that calls MPI_Test)."
)


def node_row(node: NodeSummary) -> tuple[str, ...]:
    """A node in the order of COLUMNS."""
    return (
        node.name,
        str(node.ranks),
        f"{node.bytes_inside / MEGA:.3g}",
        f"{node.bytes_between / MEGA:.3g}",
        f"{node.mpi_s:.3g}",
        f"{node.network_s:.3g}",
        _percent(node.idle_share),
        "n/a" if node.burstiness is None else f"{node.burstiness:.2f}",
        _percent(node.imbalance),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
