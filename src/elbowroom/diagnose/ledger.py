"""All of a rank's time, span by span: its calls and the computation between them, each in exclusive parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.calls import COLLECTIVES, CallTable, RankCalls, are_of
from elbowroom.diagnose.partners import Readiness
from elbowroom.diagnose.scheduled import Scheduled, waits_for_core
from elbowroom.diagnose.slowdown import SHORTEST_NS, first_decile, slowed
from elbowroom.diagnose.surroundings import Surroundings
from elbowroom.diagnose.uneven import RankWaits, RankWork
from elbowroom.diagnose.waits import SHORT_NS, Completed, WaitParts, completed_by_calls, wait_parts
from elbowroom.profile import rank_file as f
from elbowroom.profile.matching import dense
from elbowroom.profile.rank_file import RankFile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SPREAD = 2.0
"""A transfer that nothing disturbed takes up to so many times what the fastest decile of like calls takes."""

SLICE_NS = 1_000_000
"""A thread that waits for a core does so for about this long at least: the other one's time slice."""
SLOWEST = 3.0
"""Each core that computes, or moves other messages, makes a transfer longer by so many times at most."""

Parts = dict[str, Ints]
"""ns of each span by part; parts that no span has are not there."""


class Ledger(NamedTuple):
    """The calls of a rank and the gaps between them, with their parts. `gap_begin`, `gap_end`: before each
    call and after the last one; `for_others`: what the rank waits for others.
    """

    calls: CallTable
    of_calls: Parts
    gap_begin: Ints
    gap_end: Ints
    of_gaps: Parts
    completed: Completed
    waits: WaitParts
    collective: Bools
    for_others: RankWaits

    def work(self) -> RankWork:
        """What the rank did outside MPI, without its waits for a core."""
        worked = self.gap_end - self.gap_begin - self.of_gaps.get("scheduler", 0)
        done = np.cumsum(worked)
        times = np.stack([self.gap_begin, self.gap_end], axis=1).ravel()
        return RankWork(times, np.stack([done - worked, done], axis=1).ravel())


def ledger_of_rank(
    own: RankCalls,
    readiness: Readiness,
    around: Surroundings,
    names: Sequence[str],
    edges: Ints,
) -> Ledger:
    """The time of a rank between the first and the last edge, ns, and that of its calls before and after."""
    completed = completed_by_calls(own, readiness)
    waits = wait_parts(own, readiness, completed)
    collective = are_of(own.operations.kind[completed.critical], COLLECTIVES)
    calls = own.calls
    begin = np.concatenate([[min([edges[0], *calls.begin[:1]])], calls.end])
    end = np.concatenate([calls.begin, [max([edges[-1], *calls.end[-1:]])]])
    extra = _extra_of_calls(own, completed, waits)
    no_core = _without_core(own.calls, begin, end, extra, around.scheduled.get(own.rank))
    of_calls = _parts_of_calls(own, completed, waits, collective, around, no_core[len(begin) :], names)
    return Ledger(
        calls=calls,
        of_calls=of_calls,
        gap_begin=begin,
        gap_end=end,
        of_gaps=_parts_of_gaps(own.rank, begin, end, edges, around, no_core[: len(begin)]),
        completed=completed,
        waits=waits,
        collective=collective,
        for_others=_waits_of(own, completed, waits, names, begin[:-1]),
    )


def _waits_of(
    own: RankCalls, completed: Completed, waits: WaitParts, names: Sequence[str], since: Ints
) -> RankWaits:
    """Those in calls that completed operations, and in probes: these wait for what is received next. `since`:
    when the gap before each call begins, ns.
    """
    calls = own.calls
    probes = np.flatnonzero(np.isin(calls.name, [at for at, name in enumerate(names) if name in _PROBES]))
    probes = probes[calls.end[probes] - calls.begin[probes] > SHORT_NS]
    following = np.searchsorted(completed.call, probes)
    probes, following = probes[following < len(completed.call)], following[following < len(completed.call)]
    call = np.concatenate([completed.call, probes])
    waited = np.concatenate([waits.waited, calls.end[probes] - calls.begin[probes] - SHORT_NS])
    partner = np.concatenate([completed.partner, own.operations.peer[completed.critical[following]]])
    ready = np.concatenate([completed.ready, calls.end[probes]])
    some = np.flatnonzero(waited > 0)
    if len(probes):
        some = some[np.argsort(call[some], kind="stable")]
    call = call[some]
    # Calls that follow each other closely are one place where ranks meet.
    computed = np.where(calls.begin - since >= SHORTEST_NS, np.arange(len(since)), 0)
    met = since[np.maximum.accumulate(computed)[call]]
    columns = calls.begin[call], calls.end[call], met, waited[some], partner[some], ready[some]
    return RankWaits(*(column.astype(np.int64) for column in columns))


def _extra_of_calls(own: RankCalls, completed: Completed, waits: WaitParts) -> Ints:
    """ns of each call that may be time without a core: what it takes beyond like ones."""
    calls = own.calls
    extra = np.maximum(calls.end - calls.begin - SHORT_NS, 0)
    brief = calls.end[completed.call] - completed.ready < SHORT_NS
    extra[completed.call] = np.where(brief, 0, waits.extra + waits.peer)
    result: Ints = extra
    return result


def _without_core(calls: CallTable, begin: Ints, end: Ints, extra: Ints, scheduled: Scheduled | None) -> Ints:
    """ns that the rank waited for a core in each gap [begin, end], then in each call."""
    length = end - begin
    if scheduled is None:
        return np.zeros(len(length) + len(extra), dtype=np.int64)
    usual = _usual(calls, length)
    excess = np.maximum(length - usual, 0)
    samples = scheduled.samples_at((begin + end) // 2).and_of(
        scheduled.samples_at((calls.begin + calls.end) // 2)
    )
    free = np.concatenate([usual >= SLICE_NS, np.zeros(len(extra), dtype=bool)])
    longest = np.concatenate([length, calls.end - calls.begin])
    return waits_for_core(scheduled, samples, longest, np.concatenate([excess, extra]), free)


def _usual(calls: CallTable, length: Ints) -> Ints:
    """The first decile of the gaps between the same calls, for each gap."""
    sites = int(calls.site.max(initial=0)) + 1
    place = dense(calls.name.astype(np.int64) * sites + calls.site) + 1
    between = np.concatenate([[0], place]) * (place.max(initial=0) + 1) + np.concatenate([place, [0]])
    return first_decile(between, length)


def _parts_of_calls(
    own: RankCalls,
    completed: Completed,
    waits: WaitParts,
    collective: Bools,
    around: Surroundings,
    no_core: Ints,
    names: Sequence[str],
) -> Parts:
    calls, at = own.calls, completed.call
    parts = _Parts(len(calls.begin))
    brief = calls.end[at] - completed.ready < SHORT_NS
    parts.add("late_ranks", at, np.where(collective, 0, waits.waited))
    parts.add("collective_wait", at, np.where(collective, waits.waited, 0))
    parts.add("library", at, np.where(brief, calls.end[at] - completed.ready, 0))
    long = np.flatnonzero(~brief)
    at, collective = at[long], collective[long]
    parts.add("transfer", at, waits.transfer[long])
    parts.add("no_progress", at, waits.hidden[long])
    extra = waits.extra[long] + waits.peer[long]
    unknown = collective & ~completed.known[long]
    parts.add("collective_wait", at, np.where(unknown, extra, 0))
    more = np.flatnonzero((extra > 0) & ~unknown)
    long, at = long[more], at[more]
    partner = np.where(collective[more], -1, own.operations.peer[completed.critical[long]])
    waited = np.minimum(extra[more], no_core[at])
    parts.add("scheduler", at, waited)
    meanwhile = _Meanwhile(own.rank, around, partner, completed.ready[long], calls.end[at])
    _add_extra(parts, at, extra[more] - waited, waits.part(long), meanwhile)
    _add_others(parts, calls, completed, no_core, names)
    return parts.of


class _Meanwhile(NamedTuple):
    """What may have made the transfers in [ready, end] longer."""

    rank: int
    around: Surroundings
    partner: Ints
    ready: Ints
    end: Ints


def _add_extra(parts: _Parts, at: Ints, extra: Ints, waits: WaitParts, disturbed: _Meanwhile) -> None:
    """What transfers took beyond like calls alone."""
    rank, around, *where = disturbed
    partner, ready, end = where
    waited = np.minimum(extra, around.partner_waited(rank, partner, (ready + end) // 2, extra))
    parts.add("scheduler", at, waited)
    extra = extra - waited
    parts.add("no_progress", at, np.minimum(extra, waits.peer))
    extra = extra - np.minimum(extra, waits.peer)
    most = SLOWEST * waits.alone * around.active(rank, *where)
    beside = np.minimum(extra, np.round(most).astype(np.int64))
    parts.add("contention", at, beside)
    extra = extra - beside
    spread = np.minimum(extra, np.round((SPREAD - 1) * waits.alone).astype(np.int64))
    hidden = np.minimum(spread, waits.room)
    parts.add("no_progress", at, hidden)
    parts.add("transfer", at, spread - hidden)
    parts.add("not_explained", at, extra - spread)


def _add_others(
    parts: _Parts, calls: CallTable, completed: Completed, no_core: Ints, names: Sequence[str]
) -> None:
    """Calls that completed no operation."""
    others = np.ones(len(calls.begin), dtype=bool)
    others[completed.call] = False
    at = np.flatnonzero(others)
    length = calls.end[at] - calls.begin[at]
    file = np.array([name.startswith("MPI_File_") for name in names] or [False])[calls.name[at]]
    posts = np.array([_posts_data(name) for name in names] or [False])[calls.name[at]]
    waiting = calls.kind[at] == f.COMPLETION
    parts.add("io", at, np.where(file, length, 0))
    # A probe that blocks waits for a message that is not sent yet: its receive follows.
    probes = np.array([name in _PROBES for name in names] or [False])[calls.name[at]]
    # For whom it waits is not recorded.
    windows = np.array([_WINDOW_WAIT.match(name) is not None for name in names] or [False])[calls.name[at]]
    base = np.where(file, 0, np.minimum(length, SHORT_NS))
    rest = np.where(file, 0, length - base)
    waited = np.minimum(rest, no_core[at])
    parts.add("scheduler", at, waited)
    rest = rest - waited
    of_data = waiting | windows
    parts.add("library", at, base + np.where(posts | probes | of_data, 0, rest))
    parts.add("transfer", at, np.where(posts, rest, 0))
    parts.add("late_ranks", at, np.where(probes, rest, 0))
    parts.add("not_explained", at, np.where(of_data & ~posts & ~probes, rest, 0))


_PROBES = ("MPI_Probe", "MPI_Mprobe")
_WINDOW_WAIT = re.compile(r"MPI_Win_(lock|unlock|flush|fence|start|complete|wait)")


def _posts_data(name: str) -> bool:
    """Whether a call posts an operation, in which the library may copy its data."""
    bare = name.removeprefix("MPI_").removeprefix("mpi_")
    return bare.startswith("Start") or (bare[:1] == "I" and bare[1:2].islower() and "probe" not in bare)


def _parts_of_gaps(
    rank: int, begin: Ints, end: Ints, edges: Ints, around: Surroundings, no_core: Ints
) -> Parts:
    parts, scheduled = _Parts(len(begin)), around.scheduled.get(rank)
    every = np.arange(len(begin))
    length = end - begin
    if scheduled is not None:
        waited = np.minimum(length, no_core)
        slept = scheduled.over(scheduled.slept, (begin + end) // 2, length - waited)
        parts.add("scheduler", every, waited)
        parts.add("io", every, slept)
        length = length - waited - slept
    beside = np.minimum(length, slowed(begin, end, edges, around.traffic(rank)))
    parts.add("contention", every, beside)
    parts.add("compute", every, length - beside)
    return parts.of


class _Parts:
    """Parts of N spans, ns, as far as any span has them."""

    def __init__(self, spans: int) -> None:
        self.spans = spans
        self.of: Parts = {}

    def add(self, part: str, at: Ints, amount: Ints) -> None:
        """More time of a part in the spans `at`, each of which is there once."""
        if amount.any():
            own = self.of.setdefault(part, np.zeros(self.spans, dtype=np.int64))
            own[at] += amount


def unrecorded_library(rank: RankFile, start: int, ledger: Ledger, first: int, last: int) -> int:
    """ns inside calls of MPI between `first` and `last` that left no record, by the windows."""
    if not len(rank.windows):
        return 0
    edges = rank.start_ns - start + np.arange(len(rank.windows) + 1) * float(rank.window_ns)
    inside = np.concatenate([[0.0], np.cumsum(rank.windows["mpi_ns"].astype(np.float64))])
    whole = float(np.interp(last, edges, inside) - np.interp(first, edges, inside))
    calls = ledger.calls
    recorded = np.minimum(calls.end, last) - np.maximum(calls.begin, first)
    return max(0, round(whole - float(np.maximum(recorded, 0).sum())))
