"""What a profile says, per node and over time: docs/reference/profile-md defines each quantity.

Network intervals, and nodes over time, as tables for other programs.

Intervals: rank, node, peer (null: none), out, bytes, posted_s, completed_s, begin_s, end_s, call (null: of a
rank without a file), exact. Windows: node, begin_s, end_s, sent, received (bytes), ranks (mean).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.frames import Frame, of_columns
from elbowroom.profile import matching
from elbowroom.profile.curve import NicCurve, load_curve
from elbowroom.profile.intervals import (
    COLLECTIVES,
    SENDS,
    NetworkIntervals,
    collective_bytes,
    members_of,
    network_intervals,
)
from elbowroom.profile.profile import Profile, read_profile, with_ranks_apart
from elbowroom.profile.rank_file import ONE_SIDED, RankFile
from elbowroom.profile.spans import SHORTEST, Union, amounts, levels, polled, time_in_mpi, union
from elbowroom.profile.summary import (
    CallSummary,
    CurveSummary,
    MemorySummary,
    NodeSummary,
    OverlapSummary,
    ProfileSummary,
    RankSummary,
)
from elbowroom.trace.columns import sets_up

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

WINDOW = 0.01
"""Seconds of a window of the burstiness, unless the job has fewer than FEWEST or more than MOST of them."""
FEWEST, MOST = 64, 1 << 16
TOP = 10
NO_PROGRESS = "no progress between calls"
NOTICEABLE = 0.1
"""Share of the network time from which on the reason of waiting is given."""
PEAK_NS = 100_000_000
"""Of the highest memory traffic."""


class NodeCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A node over time: bytes sent to and received from other nodes, and mean number of ranks on the network,
    between each two of `edges` (seconds).
    """

    edges: Floats
    sent: Floats
    received: Floats
    ranks: Floats


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """A profile with its network intervals. `on_network`: by rank; `in_mpi`: when each rank is inside MPI, or
    waits by polling, and does not compute; seconds.
    """

    profile: Profile
    network: NetworkIntervals
    on_network: Union
    in_mpi: Union
    duration: float
    inside: Floats
    """(size,) bytes that each rank sends inside its node."""
    polling: int
    """How many ranks wait by polling."""

    def node_curve(self, node: int, edges: Floats) -> NodeCurve:
        """A node between these times."""
        own = self.network.node == node
        flows = []
        for out in (True, False):
            some = own & (self.network.out == out)
            flows.append(
                amounts(self.network.begin[some], self.network.end[some], self.network.bytes[some], edges)
            )
        there = self.profile.nodes_of[self.on_network.group] == node
        begin, end = self.on_network.begin[there], self.on_network.end[there]
        busy = amounts(begin, end, end - begin, edges)
        return NodeCurve(edges=edges, sent=flows[0], received=flows[1], ranks=busy / np.diff(edges))


def analyse(
    profile: Profile, curve: NicCurve | None = None, *, has_communication_threads: bool = False
) -> Analysis:
    """The profile with its network intervals over this curve (None: see network_intervals).
    `has_communication_threads`: other threads of a rank compute while its messages are pending.
    """
    network = network_intervals(profile, curve)
    return Analysis(
        profile=profile,
        network=network,
        on_network=union(network.rank, network.begin, network.end),
        in_mpi=time_in_mpi(profile, has_communication_threads=has_communication_threads),
        duration=profile.duration / 1e9,
        inside=_inside(profile),
        polling=len(np.unique(polled(profile).group)),
    )


def summarise(analysis: Analysis) -> ProfileSummary:
    """The numbers of an analysis."""
    profile = analysis.profile
    per_rank = _ranks(analysis)
    curve = analysis.network.curve
    return ProfileSummary(
        ranks=profile.size,
        calls=sum(rank.calls for rank in profile.ranks),
        lost=sum(rank.lost for rank in profile.ranks),
        duration_s=analysis.duration,
        nodes=tuple(_node(analysis, node, per_rank) for node in range(profile.nodes)),
        per_rank=per_rank,
        top_calls=_top_calls(profile),
        overlap=_overlap_of_job(analysis),
        memory=_memory(profile, per_rank),
        curve=CurveSummary(source=curve.source, total=curve.total, latency_s=curve.latency),
        notes=profile.notes,
    )


def window_edges(duration: float) -> Floats:
    """The windows of the burstiness: WINDOW wide, the last one shorter."""
    count = int(np.clip(np.ceil(duration / WINDOW), FEWEST, MOST))
    return np.linspace(0.0, duration, count + 1)


def _node(analysis: Analysis, node: int, per_rank: tuple[RankSummary, ...]) -> NodeSummary:
    profile, network = analysis.profile, analysis.network
    mine = network.node == node
    sent, received = mine & network.out, mine & ~network.out
    ranks = int((profile.nodes_of == node).sum())
    there = profile.nodes_of[analysis.on_network.group] == node
    begin, end = analysis.on_network.begin[there], analysis.on_network.end[there]
    seconds = levels(begin, end, analysis.duration, ranks)
    edges = window_edges(analysis.duration)
    bytes_between = float(network.bytes[sent].sum())
    files = [rank for rank in profile.ranks if rank.node == node]
    return NodeSummary(
        name=profile.names[node],
        ranks=ranks,
        bytes_inside=_sent(float(analysis.inside[profile.nodes_of == node].sum()), files, "sent_inside"),
        bytes_between=_sent(bytes_between, files, "sent_between"),
        bytes_received=float(network.bytes[received].sum()),
        mpi_s=sum(rank.mpi_s for rank in per_rank if rank.node == node),
        setup_s=sum(rank.setup_s for rank in per_rank if rank.node == node),
        network_s=float(seconds[1:].sum()),
        network_rank_s=float((end - begin).sum()),
        idle_share=float(seconds[0] / analysis.duration),
        concurrency=tuple((seconds / analysis.duration).tolist()),
        burstiness=burstiness(analysis.node_curve(node, edges)),
        window_s=float(edges[1]),
        imbalance=_imbalance([rank for rank in per_rank if rank.node == node]),
        estimated_bytes=_share(network.bytes[sent & ~network.exact].sum(), bytes_between),
        overlap=_overlap(analysis, mine),
    )


def _sent(recorded: float, files: Sequence[RankFile], field: str) -> float:
    """Bytes of the records, or of the windows, which miss nothing, where records were lost."""
    if not any(rank.lost for rank in files):
        return recorded
    return max(recorded, sum(float(rank.windows[field].sum(dtype=np.float64)) for rank in files))


def burstiness(curve: NodeCurve) -> float | None:
    """Standard deviation by mean of the bytes per window, both directions; 0: always the same."""
    flow = curve.sent + curve.received
    mean = flow.mean()
    return float(flow.std() / mean) if mean > 0 else None


class _Operations(NamedTuple):
    """Transfers of nonblocking operations: rows of the network intervals and their records; seconds. `length`
    on the network, `outside` MPI meanwhile, `computed` from the post to the completion, `waited` in the
    completing call; `stuck`: those that ranks waited for although computation could have covered them.
    """

    rows: Ints
    event: Ints
    length: Floats
    outside: Floats
    computed: Floats
    waited: Floats
    stuck: Bools


def _operations(analysis: Analysis, which: Bools) -> _Operations:
    network, events = analysis.network, analysis.profile.events
    rows = np.flatnonzero(which & (network.event >= 0))
    rows = rows[events.is_span[network.event[rows]]]
    event, rank, begin, end = network.event[rows], network.rank[rows], network.begin[rows], network.end[rows]
    posted, completed = events.begin[event] / 1e9, events.end[event] / 1e9
    ready = np.clip(network.ready[rows], posted, completed)

    def outside(since: Floats, until: Floats) -> Floats:
        return (until - since) - analysis.in_mpi.covered(rank, since, until)

    length, hidden = end - begin, outside(begin, end)
    # Of a message whose partner came late, only what was computed since then could cover it.
    could = np.minimum(outside(ready, completed), length)
    waited = network.waits.waited(event, ready, completed)
    avoidable = (length > 0) & (could - hidden >= NOTICEABLE * length)
    return _Operations(
        rows=rows,
        event=event,
        length=length,
        outside=hidden,
        computed=outside(posted, completed),
        waited=waited,
        stuck=(waited >= SHORTEST) & ~network.waits.tests[event] & avoidable,
    )


def stuck_events(analysis: Analysis) -> Ints:
    """Records of operations that made no progress between calls; none if that is not why ranks waited."""
    operations = _operations(analysis, np.ones(len(analysis.network.rank), dtype=bool))
    return np.unique(operations.event[operations.stuck]) if _reason(operations) else operations.event[:0]


def _reason(operations: _Operations) -> str:
    length = operations.length
    return NO_PROGRESS if length[operations.stuck].sum() > NOTICEABLE * length.sum() else ""


def _overlap(analysis: Analysis, which: Bools) -> OverlapSummary:
    operations = _operations(analysis, which)
    total = float(operations.length.sum())
    if total <= 0:
        return OverlapSummary(achieved=None, possible=None, network_s=0.0)
    return OverlapSummary(
        achieved=float(operations.outside.sum() / total),
        possible=float(np.minimum(operations.computed, operations.length).sum() / total),
        network_s=total,
        waited_s=float(operations.waited.sum()),
        operations=len(operations.rows),
        reason=_reason(operations),
    )


def _overlap_of_job(analysis: Analysis) -> OverlapSummary:
    """Between nodes; of a job on one node, between its ranks."""
    profile = analysis.profile
    inside = profile.nodes == 1 and profile.size > 1
    if inside:
        analysis = analyse(with_ranks_apart(profile))
    overlap = _overlap(analysis, np.ones(len(analysis.network.rank), dtype=bool))
    return msgspec.structs.replace(overlap, inside=inside)


def _inside(profile: Profile) -> Floats:
    """Bytes that each rank sends to ranks of its node: those of its sends and one-sided calls there, and of
    collectives what does not leave.
    """
    events = profile.events
    sends = np.flatnonzero(np.isin(events.kind, (*SENDS, ONE_SIDED)) & ~events.between)
    result = np.zeros(profile.size)
    result += np.bincount(events.rank[sends], weights=events.bytes[sends], minlength=profile.size)
    which = np.flatnonzero(np.isin(events.kind, COLLECTIVES))
    for number in np.unique(events.call[which]):
        own = which[events.call[which] == number]
        name = matching.base_name(events.names[number])
        left = np.where(events.between[own], collective_bytes(profile, events, own, name).out, 0.0)
        members = members_of(profile, events, own)
        everything = matching.moved(
            name,
            events.bytes[own].astype(np.float64),
            members,
            np.ones(len(own)),
            events.peer[own] == events.rank[own],
        ).out
        stays = np.maximum(everything - left, 0.0)
        result += np.bincount(events.rank[own], weights=stays, minlength=profile.size)
    return result


def _ranks(analysis: Analysis) -> tuple[RankSummary, ...]:
    spans = analysis.on_network
    size, network = analysis.profile.size, analysis.network
    on_network = np.bincount(spans.group, weights=spans.end - spans.begin, minlength=size)
    received, sent = (
        np.bincount(network.rank[own], weights=network.bytes[own], minlength=size)
        for own in (~network.out, network.out)
    )
    return tuple(
        RankSummary(
            rank=rank.rank,
            node=rank.node,
            computation_s=max(0.0, _lasted(rank, analysis.duration) - rank.mpi_ns / 1e9),
            mpi_s=rank.mpi_ns / 1e9 - _setup(rank),
            setup_s=_setup(rank),
            network_s=float(on_network[rank.rank]),
            calls=rank.calls,
            lost=rank.lost,
            bytes_inside=_sent(float(analysis.inside[rank.rank]), [rank], "sent_inside"),
            bytes_between=_sent(float(sent[rank.rank]), [rank], "sent_between"),
            bytes_received=float(received[rank.rank]),
        )
        for rank in analysis.profile.ranks
    )


def _setup(rank: RankFile) -> float:
    """Seconds in calls that neither move data nor wait. MPI_Init is before the profile."""
    return sum(kind.ns for kind in rank.call_kinds if sets_up(kind.name)) / 1e9


def _lasted(rank: RankFile, duration: float) -> float:
    return duration if rank.end_ns is None else (rank.end_ns - rank.start_ns) / 1e9


def _imbalance(ranks: list[RankSummary]) -> float:
    times = [rank.computation_s for rank in ranks]
    mean = sum(times) / len(times) if times else 0.0
    return max(times) / mean - 1 if mean > 0 else 0.0


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else 0.0


def _top_calls(profile: Profile) -> tuple[CallSummary, ...]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for rank in profile.ranks:
        for kind in rank.call_kinds:
            for at, value in enumerate((kind.count, kind.ns, kind.bytes)):
                totals[kind.name][at] += value
    ordered = sorted(totals.items(), key=lambda one: (-one[1][1], one[0]))
    return tuple(
        CallSummary(name=name, count=count, seconds=ns / 1e9, bytes=size)
        for name, (count, ns, size) in ordered[:TOP]
        if count
    )


def _memory(profile: Profile, ranks: Sequence[RankSummary]) -> MemorySummary:
    manifest, traffic = profile.manifest, profile.memory
    if manifest is None:
        return MemorySummary(bytes=None, reason="the manifest is missing")
    if manifest.memory_bytes is None:
        return MemorySummary(bytes=None, reason=manifest.memory_reason)
    if traffic is None:
        return MemorySummary(bytes=manifest.memory_bytes)
    there = {rank.rank for rank in profile.ranks if rank.host == traffic.host}
    computing = [rank.computation_s for rank in ranks if rank.rank in there]
    seconds = sum(computing) / len(computing) if computing else 0.0
    start, end = traffic.times_ns[0], traffic.times_ns[-1]
    edges = np.linspace(0.0, (end - start) / 1e9, max(2, int((end - start) / PEAK_NS) + 1))
    return MemorySummary(
        bytes=traffic.total,
        host=traffic.host,
        source=traffic.source,
        scope=traffic.scope,
        rate=traffic.total / seconds if seconds > 0 else None,
        highest=float(traffic.rates(start, edges).max()) if end > start else None,
    )


def interval_frame(analysis: Analysis) -> Frame:
    """The network intervals, a row each: ranks, bytes, times since the start in s, and the call."""
    import pyarrow

    network, events = analysis.network, analysis.profile.events
    names = pyarrow.array(events.names, type=pyarrow.string())
    known = network.event >= 0
    calls = np.zeros(len(known), dtype=np.int32)
    calls[known] = events.call[network.event[known]]
    return of_columns(
        {
            "rank": network.rank.astype(np.int32),
            "node": network.node.astype(np.int32),
            "peer": pyarrow.array(network.peer.astype(np.int32), mask=network.peer < 0),
            "out": network.out,
            "bytes": network.bytes,
            "posted_s": network.posted,
            "completed_s": network.completed,
            "begin_s": network.begin,
            "end_s": network.end,
            "call": pyarrow.DictionaryArray.from_arrays(pyarrow.array(calls, mask=~known), names),
            "exact": network.exact,
        },
        "elbowroom/profile-intervals",
    )


def window_frame(analysis: Analysis) -> Frame:
    """Each node over time, in the windows of the burstiness: bytes sent and received, ranks at once."""
    edges = window_edges(analysis.duration)
    nodes = analysis.profile.nodes
    curves = [analysis.node_curve(node, edges) for node in range(nodes)]
    count = len(edges) - 1
    return of_columns(
        {
            "node": np.repeat(np.arange(nodes, dtype=np.int32), count),
            "begin_s": np.tile(edges[:-1], nodes),
            "end_s": np.tile(edges[1:], nodes),
            "sent": np.concatenate([curve.sent for curve in curves]),
            "received": np.concatenate([curve.received for curve in curves]),
            "ranks": np.concatenate([curve.ranks for curve in curves]),
        },
        "elbowroom/profile-windows",
    )


class NodeAnalysis(NamedTuple):
    """A profile of which the messages between nodes count, or, `inside`, those inside the only one.
    `recorded`: the profile as it was read.
    """

    analysis: Analysis
    inside: bool
    recorded: Profile

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the ranks, each once."""
        return tuple(dict.fromkeys(rank.host for rank in self.analysis.profile.ranks))


def analyse_nodes(
    directory: str | Path, curve: str | Path | None = None, *, communication_threads: bool = False
) -> NodeAnalysis:
    """The profile in this folder. Of a job on one node the messages inside it count: they are copies in its
    memory. `communication_threads`: other threads of a rank compute while its messages are pending.
    """
    profile = read_profile(Path(directory))
    inside = profile.nodes == 1
    analysis = analyse(
        with_ranks_apart(profile) if inside else profile,
        None if curve is None else load_curve(curve),
        has_communication_threads=communication_threads,
    )
    return NodeAnalysis(analysis, inside, profile)
