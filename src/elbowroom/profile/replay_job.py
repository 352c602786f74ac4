"""A profiled job as it is replayed: calls of each rank, what they post, and what they wait for.

A *gate* opens when all that it needs was posted: a message's send (and its receive, where the message is
larger than the eager limit), or the calls of all ranks of a collective operation. Then its *units* are
transferred: a message; what a rank sends to a node in an MPI_Alltoall or MPI_Alltoallv of all ranks; of other
collective operations bytes of one rank that leave its node or come to it, since their other end is not known.
A call ends when the units that it waits for are there, and its residual is over: what it took in the profile
after that. Between calls a rank computes. An operation without progress between calls (analysis.py) is posted
by the call that completes it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile import matching
from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import Analysis, stuck_events
from elbowroom.profile.intervals import COLLECTIVES, RECEIVES, SENDS
from elbowroom.profile.matching import matched_messages, operations
from elbowroom.profile.profile import MpiEvents

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


HELD = 0.5
"""Small blocking sends wait for their transfer if at least this share of them take at least this share of
what their bytes take alone.
"""


class Links(msgspec.Struct, frozen=True):
    """For each of some rows a list of numbers: those of row i are `values[first[i] : first[i + 1]]`."""

    first: Ints
    values: Ints

    def of(self, row: int) -> list[int]:
        """The numbers of one row."""
        numbers: list[int] = self.values[self.first[row] : self.first[row + 1]].tolist()
        return numbers


class Flows(msgspec.Struct, frozen=True, kw_only=True):
    """F flows: connections that leave a node (`out`), reach one (`into`), or both; -1 where that is none, or
    not known. `weight`: how many connections; `senders`, `receivers`: whose they are; `ranks`: both.
    """

    out: Ints
    into: Ints
    weight: Floats
    senders: Links
    receivers: Links
    ranks: Links

    def rows(self) -> Iterator[tuple[list[int], list[list[int]], float]]:
        """Of each flow its ends (2 * node, + 1 into it), the ranks that use each of them, and its weight."""
        for at, (out, into, weight) in enumerate(
            zip(self.out.tolist(), self.into.tolist(), self.weight.tolist(), strict=True)
        ):
            both = ((2 * out, out, self.senders), (2 * into + 1, into, self.receivers))
            there = [(end, links.of(at)) for end, node, links in both if node >= 0]
            yield [end for end, _ in there], [ranks for _, ranks in there], weight


class Units(msgspec.Struct, frozen=True, kw_only=True):
    """U units: `work` bytes over `weight` connections from a `source` to a `target`, when `gate` is open. A
    number below `size` is a rank; size + n are all ranks of node n; -1 is not known.
    """

    gate: Ints
    source: Ints
    target: Ints
    work: Floats
    weight: Floats


class FlowUnits(msgspec.Struct, frozen=True, kw_only=True):
    """U units: `work` bytes in a `flow`, when `gate` is open."""

    gate: Ints
    flow: Ints
    work: Floats


class ReplayJob(msgspec.Struct, frozen=True, kw_only=True):
    """C calls, in order of rank and begin, seconds; `first` (ranks + 1,): where each rank's calls start.
    `residual`: what a call takes when nothing is left to wait for. `posts`: gates of each call that it is
    needed for; `waits`: gates whose units of this rank, or which themselves, end before the call does. The
    first `messages` of the `gates` are those of messages. `computing`: share of the time outside MPI.
    """

    size: int
    nodes: int
    duration: float
    first: Ints
    begin: Floats
    end: Floats
    residual: Floats
    posts: Links
    waits: Links
    units: FlowUnits
    flows: Flows
    gates: int
    messages: int
    computing: float


class _Gates(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a job's gates: `gate` numbers from 0; rows of posts and waits are (event, gate) each; `ready`:
    when each gate's units were there in the profile, for each wait, seconds.
    """

    count: int
    posts: tuple[Ints, Ints]
    waits: tuple[Ints, Ints]
    units: Units


def replay_job(analysis: Analysis, *, half: bool = False) -> ReplayJob:
    """The job of an analysis; with `half`, on twice the nodes, each with half of the ranks."""
    profile, events = analysis.profile, analysis.profile.events
    nodes_of = half_nodes(profile.nodes_of) if half else profile.nodes_of
    parts = [_messages(analysis, nodes_of), _collective(analysis, nodes_of)]
    shifts = [0, parts[0].count]
    posts = _pairs([part.posts for part in parts], shifts)
    waits = _pairs([part.waits for part in parts], shifts)
    units = _joined([part.units for part in parts], shifts)
    flows, flow = _flows(units, nodes_of)
    call_of_post, call_of_wait, calls = _calls(events, posts[0], waits[0], beginnings=_beginnings(analysis))
    ready = _ready(analysis, posts, waits, call_of_wait, len(calls.begin))
    order = np.lexsort((calls.end, calls.begin, calls.rank))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    begin, end = calls.begin[order] / 1e9, calls.end[order] / 1e9
    outside = 1 - sum(rank.mpi_ns for rank in profile.ranks) / 1e9 / (analysis.duration * len(profile.ranks))
    return ReplayJob(
        size=profile.size,
        nodes=int(nodes_of.max()) + 1,
        duration=analysis.duration,
        first=np.searchsorted(calls.rank[order], np.arange(profile.size + 1)).astype(np.int64),
        begin=begin,
        end=end,
        residual=np.maximum(end - np.maximum(begin, ready[order]), 0.0),
        posts=_links(place[call_of_post], posts[1], len(order)),
        waits=_links(place[call_of_wait], waits[1], len(order)),
        units=FlowUnits(gate=units.gate, flow=flow, work=units.work),
        flows=flows,
        gates=sum(part.count for part in parts),
        messages=parts[0].count,
        computing=float(np.clip(outside, 0.0, 1.0)),
    )


def half_nodes(nodes_of: Ints) -> Ints:
    """Nodes of the ranks where the second half of each node's ranks goes to a node of its own."""
    result = np.empty_like(nodes_of)
    for node in np.unique(nodes_of):
        ranks = np.flatnonzero(nodes_of == node)
        result[ranks] = 2 * node + (np.arange(len(ranks)) >= (len(ranks) + 1) // 2)
    return result


def _messages(analysis: Analysis, nodes_of: Ints) -> _Gates:
    """One gate for each matched message."""
    events = analysis.profile.events
    known = events.peer >= 0
    s = np.flatnonzero(known & np.isin(events.kind, SENDS))
    r = np.flatnonzero(known & np.isin(events.kind, RECEIVES))
    fields = ("bytes", "begin", "end")
    a, b = matched_messages(
        {"from": events.rank[s], "to": events.peer[s], **{name: getattr(events, name)[s] for name in fields}},
        {"from": events.peer[r], "to": events.rank[r], **{name: getattr(events, name)[r] for name in fields}},
    )
    a, b = s[a], r[b]
    gate = np.arange(len(a))
    large = np.flatnonzero(events.bytes[a] > analysis.network.curve.eager)
    source, target = events.rank[a], events.rank[b]
    far = np.flatnonzero(nodes_of[source] != nodes_of[target])
    work = analysis.network.curve.work(events.bytes[a].astype(np.float64))
    waiting = np.union1d(large, _held(analysis, a, work))
    return _Gates(
        count=len(a),
        posts=(np.concatenate([a, b[large]]), np.concatenate([gate, large])),
        waits=(np.concatenate([a[waiting], b]), np.concatenate([waiting, gate])),
        units=Units(
            gate=far,
            source=source[far],
            target=target[far],
            work=work[far],
            weight=np.ones(len(far)),
        ),
    )


def _held(analysis: Analysis, sends: Ints, work: Floats) -> Ints:
    """Which of the messages with these sends and this work their senders wait for, whatever their size.

    An MPI library copies a small message, or its send lasts until the message is on its way. The profile
    shows which: how long blocking sends to other nodes took. What is so between its nodes is so between those
    that the job is replayed on.
    """
    profile, events = analysis.profile, analysis.profile.events
    blocking = np.isin(events.kind[sends], (f.SEND, f.SENDRECV))
    nodes_of = profile.nodes_of
    far = blocking & (nodes_of[events.rank[sends]] != nodes_of[events.peer[sends]])
    took = (events.end[sends] - events.begin[sends]) / 1e9
    long = took >= HELD * work / analysis.network.curve.bandwidth
    held: Ints = np.flatnonzero(blocking if far.any() and long[far].mean() >= HELD else far & False)
    return held


def _collective(analysis: Analysis, nodes_of: Ints) -> _Gates:
    """One gate for each operation that waits for all ranks or for its root, one for each call of others."""
    profile, curve = analysis.profile, analysis.network.curve
    events = profile.events
    which = np.flatnonzero(np.isin(events.kind, (*COLLECTIVES, f.BARRIER)))
    names = [matching.base_name(name) for name in events.names] or [""]
    whole = (events.members[which] == profile.size) | (events.members[which] < 0)
    group, _ = operations(events.rank[which], events.call[which])
    rooted = np.isin(names, matching.ROOT_FIRST)[events.call[which]]
    waiting = np.isin(names, matching.WAITING)[events.call[which]]
    together = whole & (waiting | rooted)
    # Calls that wait for nobody have a gate of their own.
    count = int(group.max(initial=-1)) + 1
    gate = np.where(together, group, count + np.arange(len(which)))
    is_root = events.peer[which] == events.rank[which]
    needed = ~(together & rooted) | is_root
    sizes = np.bincount(nodes_of)[nodes_of]
    units = []
    for number in np.unique(events.call[which]):
        at = np.flatnonzero(events.call[which] == number)
        if names[number] in matching.TO_ALL:
            own = which[at[together[at]]]
            size = events.bytes[own].astype(np.float64)
            each = size if names[number] == "Alltoall" else size / profile.size
            units.append(_to_nodes(gate[at[together[at]]], events.rank[own], curve.work(each), nodes_of))
            at = at[~together[at]]
        own, rank = which[at], events.rank[which[at]]
        members = np.where(events.members[own] > 0, events.members[own], profile.size).astype(np.float64)
        local = np.maximum(1.0, np.round(members * sizes[rank] / profile.size))
        moved = matching.moved(
            names[number], events.bytes[own].astype(np.float64), members, local, is_root[at]
        )
        at_once = matching.flows(names[number], members, local)
        for out, size in ((True, moved.out), (False, moved.into)):
            some = size > 0
            units.append(_one_end(gate[at[some]], rank[some], out, curve.work(size[some]), at_once[some]))
    return _Gates(
        count=count + len(which),
        posts=(which[needed], gate[needed]),
        waits=(which, gate),
        units=_joined(units, [0] * len(units)),
    )


def _one_end(gate: Ints, rank: Ints, out: bool, work: Floats, weight: Floats) -> Units:
    """Bytes of a rank that leave its node, or come to it, of which the other end is not known."""
    unknown = np.full(len(rank), -1)
    source, target = (rank, unknown) if out else (unknown, rank)
    return Units(gate=gate, source=source, target=target, work=work, weight=weight)


def _to_nodes(gate: Ints, rank: Ints, each: Floats, nodes_of: Ints) -> Units:
    """What ranks send to all others at once, a unit for each other node; `each`: bytes for each receiver."""
    sizes = np.bincount(nodes_of)
    row, node = np.nonzero((nodes_of[rank, np.newaxis] != np.arange(len(sizes))) & (each > 0)[:, np.newaxis])
    weight = sizes[node].astype(np.float64)
    return Units(
        gate=gate[row],
        source=rank[row],
        target=len(nodes_of) + node,
        work=each[row] * weight,
        weight=weight,
    )


def _flows(units: Units, nodes_of: Ints) -> tuple[Flows, Ints]:
    """The flows, and which one each unit is in: units with the same source and target share one."""
    ranks, nodes = len(nodes_of), int(nodes_of.max()) + 1
    columns = np.stack([units.source, units.target, units.weight.astype(np.int64)])
    distinct, flow = np.unique(columns, axis=1, return_inverse=True)
    # Who is meant by each number, and on which node that is; the last row is -1.
    who = [[rank] for rank in range(ranks)] + [np.flatnonzero(nodes_of == n).tolist() for n in range(nodes)]
    node = np.concatenate([nodes_of, np.arange(nodes), [-1]])
    senders = [who[one] if one >= 0 else [] for one in distinct[0].tolist()]
    receivers = [who[one] if one >= 0 else [] for one in distinct[1].tolist()]
    flows = Flows(
        out=node[distinct[0]],
        into=node[distinct[1]],
        weight=distinct[2].astype(np.float64),
        senders=_rows_of(senders),
        receivers=_rows_of(receivers),
        ranks=_rows_of([a + b for a, b in zip(senders, receivers, strict=True)]),
    )
    return flows, flow.ravel().astype(np.int64)


def _rows_of(lists: list[list[int]]) -> Links:
    counts = [len(one) for one in lists]
    values = np.array([value for one in lists for value in one], dtype=np.int64)
    return Links(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), values)


def _pairs(parts: list[tuple[Ints, Ints]], shifts: list[int]) -> tuple[Ints, Ints]:
    return (
        np.concatenate([events for events, _ in parts]),
        np.concatenate([gates + shift for (_, gates), shift in zip(parts, shifts, strict=True)]),
    )


def _joined(parts: list[Units], shifts: list[int]) -> Units:
    none = np.zeros(0, dtype=np.int64)
    return Units(
        gate=np.concatenate([none, *(part.gate + by for part, by in zip(parts, shifts, strict=True))]),
        source=np.concatenate([none, *(part.source for part in parts)]),
        target=np.concatenate([none, *(part.target for part in parts)]),
        work=np.concatenate([none / 1.0, *(part.work for part in parts)]),
        weight=np.concatenate([none / 1.0, *(part.weight for part in parts)]),
    )


class _Calls(msgspec.Struct, frozen=True):
    rank: Ints
    begin: Ints
    end: Ints


def _beginnings(analysis: Analysis) -> Ints:
    """When each record's transfer can begin, ns: with its post, or, where its rank makes no progress between
    calls, with the call that completes it.
    """
    beginnings = analysis.profile.events.begin.copy()
    stuck = stuck_events(analysis)
    beginnings[stuck] = np.round(1e9 * analysis.network.waits.begin[stuck]).astype(np.int64)
    return beginnings


def _calls(events: MpiEvents, posting: Ints, waiting: Ints, *, beginnings: Ints) -> tuple[Ints, Ints, _Calls]:
    """The calls, and which of them posts (at `beginnings`) and which waits for each event. A call is its own;
    an event posted outside a recorded call gets one without duration.
    """
    calls = np.flatnonzero(events.is_call)
    number = np.full(len(events.rank), -1)
    number[calls] = np.arange(len(calls))
    wide = int(events.end.max(initial=0)) + 2
    # Ends as they come: calls of one rank do not overlap, but for threads.
    ends = np.maximum.accumulate(events.rank[calls] * wide + events.end[calls]) if len(calls) else calls

    def containing(event: Ints, time: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The first call of the rank that ends at `time` or later, and whether there is one."""
        at = np.minimum(np.searchsorted(ends, events.rank[event] * wide + time), max(len(calls) - 1, 0))
        if not len(calls):
            return at, np.zeros(len(event), dtype=bool)
        return at, (events.rank[calls[at]] == events.rank[event]) & (events.end[calls[at]] >= time)

    at, there = containing(posting, beginnings[posting])
    inside = there & (events.begin[calls[at]] <= beginnings[posting]) if len(calls) else there
    own = number[posting] >= 0
    post = np.where(own, number[posting], at)
    extra = np.flatnonzero(~own & ~inside)
    post[extra] = len(calls) + np.arange(len(extra))
    at, there = containing(waiting, events.end[waiting])
    wait = np.where(number[waiting] >= 0, number[waiting], at)
    lost = np.flatnonzero((number[waiting] < 0) & ~there)
    wait[lost] = len(calls) + len(extra) + np.arange(len(lost))
    alone, after = posting[extra], waiting[lost]
    return (
        post,
        wait,
        _Calls(
            np.concatenate([events.rank[calls], events.rank[alone], events.rank[after]]),
            np.concatenate([events.begin[calls], beginnings[alone], events.end[after]]),
            np.concatenate([events.end[calls], beginnings[alone], events.end[after]]),
        ),
    )


def _ready(
    analysis: Analysis, posts: tuple[Ints, Ints], waits: tuple[Ints, Ints], call_of_wait: Ints, calls: int
) -> Floats:
    """When all that a call waits for was there in the profile: its network intervals' end, or, without one,
    when its gate opened; seconds.
    """
    events, network = analysis.profile.events, analysis.network
    end = np.full(len(events.rank), -1.0)
    some = network.event >= 0
    np.maximum.at(end, network.event[some], network.end[some])
    count = max(int(posts[1].max(initial=0)), int(waits[1].max(initial=0))) + 1
    opened = np.zeros(count)
    np.maximum.at(opened, posts[1], _beginnings(analysis)[posts[0]] / 1e9)
    ready = np.zeros(calls)
    np.maximum.at(ready, call_of_wait, np.where(end[waits[0]] >= 0, end[waits[0]], opened[waits[1]]))
    return ready


def _links(rows: Ints, values: Ints, count: int) -> Links:
    order = np.argsort(rows, kind="stable")
    first = np.searchsorted(rows[order], np.arange(count + 1)).astype(np.int64)
    return Links(first, values[order])
