"""The steps of a profiled job: what it repeats, from marks of the program or from its sequence of calls.

The period of a sequence of calls: the shortest pattern that, repeated, gives most of the sequence.

Calls before it (a warm-up) and after it may be anything. Where a pattern of an inner loop is part of one of
an outer loop, only the outer one goes on through the whole sequence, and is the one.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import Analysis
from elbowroom.profile.intervals import COLLECTIVES, SENDS
from elbowroom.profile.matching import base_name, codes
from elbowroom.profile.profile import MpiEvents, Profile
from elbowroom.profile.spans import complement, union

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LONGEST = 200_000
"""Calls of a rank that are searched for a pattern, the last ones."""
SIZES = 8

_TOKENS = (*SENDS, f.RECEIVE, f.POSTED_RECEIVE, *COLLECTIVES, f.ONE_SIDED, f.BARRIER)
_VARYING = ("Alltoallv", "Alltoallw", "Allgatherv", "Gatherv", "Scatterv")
"""Calls whose bytes follow the data."""


class Typical(msgspec.Struct, frozen=True, kw_only=True):
    """Of all steps: their mean; the value that half of them have, where there is one, else the mean; the mean
    without the tenth of them that has the lowest and the tenth that has the highest values (warm-up, noise);
    the median, the first and the last decile.
    """

    mean: float
    usual: float
    trimmed: float
    median: float
    d1: float
    d9: float


class MessageCount(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of `bytes` that one step sends from one node to others."""

    bytes: int
    per_step: float


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a job, seen from the node that sends most, or from all `ranks`. Seconds and bytes of one step:
    `duration`; `computation`: outside MPI, mean of the ranks; `computing`: at least one of them outside MPI;
    `network`: at least one of them on the network;
    `sent`, `received`: between the nodes; `inside`: sent inside it. `imbalance`: how much longer than the
    mean the rank computes that computes longest. `sizes`: messages between nodes, most bytes first.
    `pattern`: its calls, empty for marks. `edges`: (count + 1,) times where steps begin and end.
    """

    recognised_by: Literal["marks", "pattern"]
    node: int
    ranks: int
    count: int
    pattern: tuple[str, ...]
    edges: tuple[float, ...]
    duration: Typical
    computation: Typical
    computing: Typical
    imbalance: float
    network: Typical
    sent: Typical
    received: Typical
    inside: Typical
    sizes: tuple[MessageCount, ...]


class StepEdges(NamedTuple):
    """Where steps begin and end: `edges`, (steps + 1,) s; `pattern`: the calls of one, empty for marks."""

    recognised_by: Literal["marks", "pattern"]
    pattern: tuple[str, ...]
    edges: tuple[float, ...]


class StepSearch(msgspec.Struct, frozen=True, kw_only=True):
    """The steps, or None and why there are none."""

    steps: Steps | None
    reason: str = ""


def find_steps(analysis: Analysis, *, of_all_ranks: bool = False) -> StepSearch:
    """The steps of a job: between its marks (MPI_Pcontrol), or by the pattern of the calls of one rank.

    `of_all_ranks`: of all ranks together instead of those of the node that sends most (with_ranks_apart).
    """
    node = 0 if of_all_ranks else _busiest(analysis)
    ranks = [rank.rank for rank in analysis.profile.ranks if of_all_ranks or rank.node == node]
    if not ranks:
        return StepSearch(steps=None, reason="no rank of the node that sends most left a file")
    view = _View(node, np.array(ranks))
    shown = _shown(analysis.profile.of_rank(ranks[0]))
    if isinstance(shown, str):
        return StepSearch(steps=None, reason=shown)
    own = {rank: _repeated(analysis.profile.of_rank(rank), len(shown.pattern)) for rank in ranks[1:]}
    edges = np.array(shown.edges)
    return StepSearch(steps=_steps(analysis, view, _Edges(edges, {ranks[0]: edges, **own}), shown))


def find_edges(profile: Profile) -> StepEdges | None:
    """The steps that the first rank shows. Faster than find_steps, which says what they do."""
    shown = _shown(profile.of_rank(profile.ranks[0].rank))
    return None if isinstance(shown, str) else shown


def _shown(own: MpiEvents) -> StepEdges | str:
    """The steps that the records of a rank show, or why there are none."""
    edges = _marked(own)
    if edges is not None:
        return StepEdges("marks", (), tuple(edges.tolist()))
    tokens = _tokens(own)
    if not len(tokens.rank):
        return f"rank {own.rank[0] if len(own.rank) else 0} never communicated"
    period = find_period(_codes(tokens))
    if period is None:
        return (
            f"no sequence of calls of rank {own.rank[0]} repeats for most of the time; call "
            "MPI_Pcontrol(1) at the begin of each step"
        )
    period = between_computations(_gaps(own, tokens), tokens.begin, period)
    edges, first = _boundaries(own, tokens, period.length, period.first, period.end)
    if len(edges) < 3:
        return "fewer than two whole steps were recorded"
    names = tuple(tokens.names[call] for call in tokens.call[first : first + period.length])
    return StepEdges("pattern", names, tuple(edges.tolist()))


class _View(NamedTuple):
    """Whose steps these are."""

    node: int
    ranks: Ints


class _Edges(NamedTuple):
    """Times where steps begin and end: those of the rank that shows them, and of each rank by its own calls,
    because a rank may be ahead of another. None: a rank whose calls do not show them.
    """

    shown: Floats
    of_ranks: dict[int, Floats | None]

    def of(self, rank: int) -> Floats:
        own = self.of_ranks.get(rank)
        return self.shown if own is None or len(own) < 2 else own

    @property
    def steps(self) -> int:
        """Steps that every rank has."""
        return min(len(self.of(rank)) for rank in self.of_ranks) - 1

    def last(self, rank: int) -> Floats:
        """The edges of the last `steps` steps of a rank."""
        return self.of(rank)[-self.steps - 1 :]


def _busiest(analysis: Analysis) -> int:
    network = analysis.network
    sent = np.bincount(
        network.node[network.out], weights=network.bytes[network.out], minlength=analysis.profile.nodes
    )
    return int(np.argmax(sent))


def _marked(own: MpiEvents) -> Floats | None:
    """Edges of steps by marks: from each mark above 0 to the next one; None with fewer than three."""
    marks = own.part((own.kind == f.MARK) & (own.bytes > 0))
    return marks.begin / 1e9 if len(marks.begin) >= 3 else None


def _tokens(own: MpiEvents) -> MpiEvents:
    """The calls that communicate, of which a pattern consists."""
    return own.part(np.flatnonzero(np.isin(own.kind, _TOKENS))[-LONGEST:])


def _repeated(own: MpiEvents, length: int) -> Floats | None:
    """Edges of the steps of a rank: its marks without a `length`, else where its calls repeat after so many;
    None where they do not.
    """
    if not length:
        return _marked(own)
    tokens = _tokens(own)
    period = repeats(_codes(tokens), length)
    return None if period is None else _boundaries(own, tokens, period.length, period.first, period.end)[0]


def _codes(tokens: MpiEvents) -> Ints:
    """What makes two calls the same: function, peer, and bytes where these do not follow the data."""
    varying = np.array([base_name(name) in _VARYING for name in tokens.names])[tokens.call]
    return codes(np.stack([tokens.call, tokens.peer, np.where(varying, 0, tokens.bytes)], axis=1))


def _boundaries(own: MpiEvents, tokens: MpiEvents, length: int, first: int, end: int) -> tuple[Floats, int]:
    """Where steps begin: at the end of the call before the longest computation of the pattern; and the call
    that comes first in a step. The first step is left out: the program's set-up may be in it.
    """
    ended = _ended_before(own, tokens)[first:end]
    gap = _gaps(own, tokens)[first:end]
    whole = (end - first) // length
    longest = int(np.argmax(np.median(gap[: whole * length].reshape(whole, length), axis=0)))
    edges = np.unique(ended[longest::length])[1:] / 1e9
    return edges, first + longest


def _begins(own: MpiEvents, tokens: MpiEvents) -> tuple[MpiEvents, Ints]:
    """The calls of a rank, and for each token the begin of the call that it is of."""
    calls = own.part(own.is_call)
    at = np.searchsorted(calls.begin, tokens.begin, side="right") - 1
    return calls, calls.begin[np.maximum(at, 0)]


def _ended_before(own: MpiEvents, tokens: MpiEvents) -> Ints:
    """When the call before each token's ended; the first call of all has computation before it since the
    start.
    """
    calls, begin = _begins(own, tokens)
    before = np.searchsorted(calls.begin, begin) - 1
    return np.where(before >= 0, calls.end[np.maximum(before, 0)], 0)


def _gaps(own: MpiEvents, tokens: MpiEvents) -> Ints:
    """The computation before each token, ns; 0 where the token before is of the same call."""
    begin = _begins(own, tokens)[1]
    first = np.diff(begin, prepend=-1) != 0
    return np.where(first, begin - _ended_before(own, tokens), 0)


BEFORE_CALLS = 0.3
"""Share of the time that computation before calls has, so that it shows steps: else it is between a post and
its completion."""


def between_computations(gap: Ints, begin: Ints, period: Period) -> Period:
    """The period of steps whose calls are all alike, such as a thousand equal messages after a computation:
    from one long computation to the next, where these are the same number of calls apart. `gap`, `begin`:
    computation before each call, and its begin, ns. Long is at least half of the computation in which the
    middle of all computing time is.
    """
    own = np.maximum(gap[period.first : period.end], 0)
    ordered = np.sort(own)
    time = np.cumsum(ordered)
    if time[-1] < BEFORE_CALLS * (begin[period.end - 1] - begin[period.first]):
        return period
    middle = ordered[np.searchsorted(time, time[-1] / 2)]
    long = np.flatnonzero(2 * own >= max(middle, 1))
    distances = np.diff(long)
    if len(distances) < REPETITIONS:
        return period
    different, counts = np.unique(distances, return_counts=True)
    most = int(np.argmax(counts))
    length = int(different[most])
    if length <= period.length or length % period.length or 2 * counts[most] < len(distances):
        return period
    return Period(length, period.first + int(long[np.argmax(distances == length)]), period.end)


def _steps(
    analysis: Analysis,
    view: _View,
    each: _Edges,
    shown: StepEdges,
) -> Steps:
    network, spans, edges = analysis.network, analysis.on_network, each.shown
    outside = complement(analysis.in_mpi, view.ranks, float(edges[0]), float(edges[-1]))
    own = np.isin(spans.group, view.ranks)
    sent, received = (np.isin(network.rank, view.ranks) & (network.out == out) for out in (True, False))
    computed = np.stack([
        outside.covered(np.full(len(edges) - 1, rank), edges[:-1], edges[1:]) for rank in view.ranks
    ])  # fmt: skip
    of_each = np.median(computed, axis=1)
    return Steps(
        recognised_by=shown.recognised_by,
        node=view.node,
        ranks=len(view.ranks),
        count=len(edges) - 1,
        pattern=shown.pattern,
        edges=shown.edges,
        duration=_typical(np.diff(edges)),
        computation=_typical(computed.mean(axis=0)),
        computing=_typical(_any(outside.begin, outside.end, edges)),
        imbalance=float(of_each.max() / of_each.mean() - 1) if of_each.mean() > 0 else 0.0,
        network=_typical(_any(spans.begin[own], spans.end[own], edges)),
        sent=_typical(_of_ranks(network.rank[sent], network.posted[sent], network.bytes[sent], each)),
        received=_typical(
            _of_ranks(network.rank[received], network.posted[received], network.bytes[received], each)
        ),
        inside=_typical(_inside(analysis, view.ranks, each)),
        sizes=_sizes(network.rank[sent], network.bytes[sent], network.posted[sent], each),
    )


def _any(begin: Floats, end: Floats, edges: Floats) -> Floats:
    """Time with at least one span, between edges."""
    from_all = union(np.zeros(len(begin), dtype=np.int64), begin, end)
    return from_all.covered(np.zeros(len(edges) - 1, dtype=np.int64), edges[:-1], edges[1:])


def _inside(analysis: Analysis, ranks: Ints, each: _Edges) -> Floats:
    """Bytes of messages inside the node, by the time of their send; without collective operations."""
    events = analysis.profile.events
    sends = np.isin(events.kind, (*SENDS, f.ONE_SIDED)) & ~events.between & np.isin(events.rank, ranks)
    return _of_ranks(events.rank[sends], events.begin[sends] / 1e9, events.bytes[sends], each)


def _amounts(begin: Floats, amount: npt.NDArray[Any], edges: Floats) -> Floats:
    """(edges - 1,) how much begins between two edges each."""
    at = np.searchsorted(edges, begin, side="right") - 1
    good = (at >= 0) & (at < len(edges) - 1)
    return np.bincount(at[good], weights=amount[good], minlength=len(edges) - 1).astype(np.float64)


def _of_ranks(rank: Ints, begin: Floats, amount: npt.NDArray[Any], each: _Edges) -> Floats:
    """(each.steps,) the amounts of all ranks. A message belongs to the step of its rank that posts it."""
    result = np.zeros(each.steps)
    for one in np.unique(rank):
        own = rank == one
        result += _amounts(begin[own], amount[own], each.last(int(one)))
    return result


def _sizes(rank: Ints, sizes: Floats, begin: Floats, each: _Edges) -> tuple[MessageCount, ...]:
    within = np.zeros(len(sizes), dtype=bool)
    for one in np.unique(rank):
        edges = each.last(int(one))
        within |= (rank == one) & (begin >= edges[0]) & (begin < edges[-1])
    values, counts = np.unique(sizes[within].astype(np.int64), return_counts=True)
    order = np.argsort(-(values * counts), kind="stable")[:SIZES]
    return tuple(MessageCount(bytes=int(values[at]), per_step=float(counts[at] / each.steps)) for at in order)


def _typical(values: Floats) -> Typical:
    d1, median, d9 = np.quantile(values, (0.1, 0.5, 0.9))
    different, counts = np.unique(values, return_counts=True)
    most = int(np.argmax(counts))
    cut = len(values) // 10
    inner = np.sort(values)[cut : len(values) - cut]
    return Typical(
        mean=float(values.mean()),
        # Ranks that are ahead of others send some of their messages before the step that one rank shows.
        usual=float(different[most] if 2 * counts[most] >= len(values) else values.mean()),
        trimmed=float(inner.mean()),
        median=float(median),
        d1=float(d1),
        d9=float(d9),
    )


COVERED = 0.5
"""Of the sequence, by the pattern in one run."""
REPETITIONS = 3
CANDIDATES = 256
_LIKE = 0.35
"""Share of equal calls at a distance, from which on it may be a period."""


class Period(NamedTuple):
    """`length` calls that repeat from call `first` to before call `end`."""

    length: int
    first: int
    end: int


def find_period(codes: Ints) -> Period | None:
    """The period of a sequence (N,) of codes; None where nothing repeats for most of it."""
    count = len(codes)
    if count < REPETITIONS:
        return None
    periods = (repeats(codes, length) for length in _candidates(codes))
    return next((period for period in periods if period is not None), None)


def repeats(codes: Ints, length: int) -> Period | None:
    """The part of (N,) codes that repeats after `length` of them; None where most codes do not."""
    if length >= len(codes):
        return None
    first, end = _longest_run(codes, length)
    if end - first < max(REPETITIONS * length, COVERED * len(codes)):
        return None
    return Period(length, first, end)


def _longest_run(codes: Ints, length: int) -> tuple[int, int]:
    """The longest part in which each call is the same as that one period later."""
    same = np.concatenate([[False], codes[:-length] == codes[length:], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    best = int(np.argmax(ends - begins))
    return int(begins[best]), int(ends[best]) + length


def _candidates(codes: Ints) -> list[int]:
    """Distances at which many calls are equal, the shortest first.

    Each code gets a random sign; the autocorrelation of the signs is near the share of equal calls.
    """
    count = len(codes)
    generator = np.random.default_rng(0)
    size = 1 << int(np.ceil(np.log2(2 * count)))
    likeness = np.zeros(count)
    for _ in range(4):
        signs = generator.choice((-1.0, 1.0), size=int(codes.max()) + 1)[codes]
        spectrum = np.fft.rfft(signs, size)
        likeness += np.fft.irfft(spectrum * np.conj(spectrum), size)[:count] / 4
    longest = max(1, count // REPETITIONS)
    lags = np.arange(1, longest + 1)
    share = likeness[lags] / (count - lags)
    likely = lags[share >= _LIKE]
    if len(likely) > CANDIDATES:
        best = np.argsort(share[likely - 1])[::-1][: CANDIDATES // 2]
        likely = np.union1d(likely[: CANDIDATES // 2], likely[best])
    return [int(lag) for lag in likely]
