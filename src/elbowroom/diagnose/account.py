"""The account of a step: all of its time in exclusive parts that add up (docs/reference/account.md)."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.bins import Pieces, pieces_of
from elbowroom.diagnose.calls import SENDS, RankCalls, calls_of_rank
from elbowroom.diagnose.ledger import Ledger, Parts, ledger_of_rank, unrecorded_library
from elbowroom.diagnose.partners import Partners
from elbowroom.diagnose.pop import PopFactors, interval_of, pop_factors, resampled
from elbowroom.diagnose.scheduled import scheduled_of_rank
from elbowroom.diagnose.surroundings import Surroundings
from elbowroom.diagnose.uneven import RankWaits, RankWork, are_crowded, uneven_waits
from elbowroom.diagnose.waits import SHORT_NS
from elbowroom.profile.matching import dense
from elbowroom.profile.profile import Profile, clock_starts
from elbowroom.profile.rank_file import RankFile, release
from elbowroom.profile.rank_tables import Site
from elbowroom.profile.sites import locate
from elbowroom.profile.steps import StepEdges, Steps
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PARTS = (
    "compute", "transfer", "contention", "late_ranks", "no_progress", "collective_wait", "library",
    "scheduler", "io", "not_explained",
)  # fmt: skip
"""In the order of the document and of the bars."""
WAITING = ("late_ranks", "collective_wait")
MOST = 20_000
"""Rows of an account: of more steps, some are taken together."""
MESSAGES = 50_000
"""Messages that are kept in an account, at most; of more, every n-th one."""
NO_SAMPLES = (
    "the profile has no samples of the scheduler: time without a core and asleep counts as computation, and "
    "inside MPI as not explained"
)


class SiteAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The time in the calls of one site, mean of the ranks, `seconds` of a step by part (PARTS).

    `call`: the MPI function; `function`, `file`, `line`: where it is called, None where it is not known;
    `module`, `offset`: the return address, "" and 0 where it is not recorded; `calls`: of a step, all ranks.
    """

    call: str
    seconds: Mapping[str, float]
    calls: float
    function: str | None = None
    file: str | None = None
    line: int | None = None
    module: str = ""
    offset: int = 0

    @property
    def total(self) -> float:
        """Seconds of a step in its calls, mean of the ranks."""
        return sum(self.seconds.values())


class MessageCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that a rank waited for in a call, N of each field, times in seconds since the job's start.

    `rank`: waits, `peer`: its partner (-1: all of them); `out`: it sends; `bytes`; `posted`: its own post;
    `ready`: both ends were posted; `begin`, `end`: of the call in which it was completed; `alone`: what the
    messages of this call take alone; `transfer`: what they took in the call since they were ready.
    """

    rank: Ints
    peer: Ints
    out: npt.NDArray[np.bool_]
    bytes: Ints
    posted: Floats
    ready: Floats
    begin: Floats
    end: Floats
    alone: Floats
    transfer: Floats


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The account of the steps of a profile.

    `step_s`: the mean step; `count`: steps; `seconds`: (count, ranks, parts) of each step; `edges`: (count +
    1,) where steps begin and end, seconds since the job's start. Of more than MOST steps, each row is the
    mean of `steps_per_row` consecutive ones. `late`: (rank that waits, rank that it waits
    for) -> seconds of a step; `uneven`: (count, ranks) seconds of the waits for others that would be left if
    no rank had to wait for a core; `iterations_per_step`: of the program's own iterations, None where that is
    not known; `notes`: what the profile cannot say, in sentences.
    """

    step_s: float
    count: int
    seconds: Floats
    ranks: tuple[int, ...]
    edges: Floats
    sites: tuple[SiteAccount, ...]
    pop: PopFactors
    late: Mapping[tuple[int, int], float]
    uneven: Floats
    messages: MessageCosts
    steps_per_row: int = 1
    iterations_per_step: int | None = None
    notes: tuple[str, ...] = ()

    def shares(self) -> dict[str, Interval]:
        """Of each part: its share of the mean step over all ranks, with a 90 % interval over the steps."""
        drawn = resampled(self.seconds.mean(axis=1))
        total = np.maximum(drawn.sum(axis=1), np.finfo(np.float64).tiny)
        return {part: interval_of(drawn[:, at] / total) for at, part in enumerate(PARTS)}

    def of_ranks(self) -> Floats:
        """(ranks, parts) seconds of the mean step."""
        result: Floats = self.seconds.mean(axis=0)
        return result


def account_of(profile: Profile, steps: Steps | StepEdges | None) -> Account:
    """The account of a profile between the edges of these steps; without steps, the whole run is one."""
    books = _Books(profile, _edges(profile, steps))
    for rank in profile.ranks:
        books.read(rank)
    for at, rank in enumerate(profile.ranks):
        books.settle(at, rank)
    return books.account(steps)


def _edges(profile: Profile, steps: Steps | StepEdges | None) -> Ints:
    """Where steps begin and end, ns: those of which every rank has all records, or all of them if there are
    none.
    """
    edges = np.array([0.0, profile.duration / 1e9] if steps is None else steps.edges)
    edges = np.round(edges * 1e9).astype(np.int64)
    since = _complete_since(profile)
    if steps is None:
        edges[0] = min(max(0, since), edges[1] - 1)
    whole = edges[edges >= since]
    return whole if len(whole) > 1 else edges


def _complete_since(profile: Profile) -> int:
    """Since when no rank has lost a record, ns: what a ring overwrites is what ended first."""
    starts = clock_starts(profile.ranks)
    ends = [int(rank.records["end"][0]) - starts[rank.rank] for rank in profile.ranks if _overwritten(rank)]
    return max(ends, default=0)


def _overwritten(rank: RankFile) -> bool:
    return rank.lost > 0 and len(rank.records) > 0


class _Books:
    """What is added up over the ranks of a profile, one after the other."""

    def __init__(self, profile: Profile, edges: Ints) -> None:
        self.profile, self.steps = profile, edges
        self.each = -(-(len(edges) - 1) // MOST)
        edges = self.edges = edges[: (len(edges) - 1) // self.each * self.each + 1 : self.each]
        self.count = (len(edges) - 1) * self.each
        self.names = tuple(dict.fromkeys(kind.name for rank in profile.ranks for kind in rank.call_kinds))
        self.number = {name: at for at, name in enumerate(self.names)}
        self.starts = clock_starts(profile.ranks)
        ranks = [rank.rank for rank in profile.ranks]
        self.partners = Partners(ranks, self.names, profile.size)
        self.around = Surroundings({rank.rank: rank.node for rank in profile.ranks})
        self.seconds = np.zeros((len(edges) - 1, len(ranks), len(PARTS)))
        self.useful = np.zeros((len(edges) - 1, len(ranks)))
        self.uneven = np.zeros((len(edges) - 1, len(ranks)))
        self.late: dict[tuple[int, int], float] = {}
        self.sites: dict[Site, Floats] = {}
        self.messages: list[MessageCosts] = []
        self.waits: dict[int, RankWaits] = {}
        self.work: dict[int, RankWork] = {}

    def read(self, rank: RankFile) -> None:
        """Keep what the other ranks need to know of this one."""
        own = self._calls(rank)
        self.partners.add(own)
        self.around.add(own, scheduled_of_rank(rank.samples, self.starts[rank.rank]))
        release(rank.kept)

    @functools.cached_property
    def crowded(self) -> bool:
        """Of all ranks that were read."""
        return are_crowded(self.around.scheduled)

    def _calls(self, rank: RankFile) -> RankCalls:
        return calls_of_rank(rank, self.starts[rank.rank], self.number)

    def settle(self, at: int, rank: RankFile) -> None:
        """The parts of one rank's time."""
        own = self._calls(rank)
        readiness = self.partners.readiness(own)
        ledger = ledger_of_rank(own, readiness, self.around, self.names, self.steps)
        self._add_gaps(at, rank, ledger)
        pieces = pieces_of(ledger.calls.begin, ledger.calls.end, self.edges)
        self._add(at, ledger.of_calls, pieces)
        self.waits[rank.rank] = ledger.for_others
        if self.crowded:
            self.work[rank.rank] = ledger.work()
        if not self.crowded or at == len(self.profile.ranks) - 1:
            self._settle_waits()
        self._add_sites(rank, ledger, pieces)
        self._add_late(rank.rank, ledger)
        self.messages.append(_messages(own, ledger, self.edges, MESSAGES // len(self.profile.ranks)))

    def _settle_waits(self) -> None:
        """Those of ranks since the last time: of all at once where they wait for cores; that takes memory."""
        for rank, amount in uneven_waits(self.waits, self.around.scheduled, self.work).items():
            pieces = pieces_of(self.waits[rank].begin, self.waits[rank].end, self.edges)
            self.uneven[:, self.partners.ranks.index(rank)] = self._seconds(amount, pieces)
        self.waits, self.work = {}, {}

    def _add(self, at: int, parts: Parts, pieces: Pieces) -> None:
        for part, amount in parts.items():
            self.seconds[:, at, PARTS.index(part)] += self._seconds(amount, pieces)

    def _seconds(self, amount: Ints, pieces: Pieces) -> Floats:
        """(steps,) seconds of a step, of ns of each span."""
        return np.asarray(pieces.by_step(amount, len(self.edges) - 1) / (1e9 * self.each))

    def _add_gaps(self, at: int, rank: RankFile, ledger: Ledger) -> None:
        self._add(at, ledger.of_gaps, pieces_of(ledger.gap_begin, ledger.gap_end, self.edges))
        ends = int(self.edges[0]), int(self.edges[-1])
        library = unrecorded_library(rank, self.starts[rank.rank], ledger, *ends) / (1e9 * self.each)
        own = self.seconds[:, at]
        self.useful[:, at] = own.sum(axis=1)
        compute, calls = PARTS.index("compute"), PARTS.index("library")
        # A thread that sleeps is in none of them; they lack the core as often as what lies between them.
        awake = own.sum(axis=1) - own[:, PARTS.index("io")]
        part = min(1.0, library / max(float(awake.sum()), np.finfo(np.float64).tiny))
        moved = own[:, compute] * part
        own[:, compute] -= moved
        own[:, calls] += moved
        self.useful[:, at] -= awake * part

    def _add_sites(self, rank: RankFile, ledger: Ledger, pieces: Pieces) -> None:
        calls = ledger.calls
        code = calls.site.astype(np.int64) * len(self.names) + calls.name
        of_call = dense(code)
        codes = np.zeros(int(of_call.max(initial=-1)) + 1, dtype=np.int64)
        codes[of_call] = code
        which = of_call[pieces.span]
        totals = np.zeros((len(codes), len(PARTS) + 1))
        totals[:, -1] = np.bincount(which, weights=pieces.share, minlength=len(codes))
        for part, amount in ledger.of_calls.items():
            inside = pieces.inside(amount)
            totals[:, PARTS.index(part)] = np.bincount(which, weights=inside, minlength=len(codes)) / 1e9
        for one, row in zip(codes.tolist(), totals, strict=True):
            if not row[-1]:
                continue
            call = self.names[one % len(self.names)]
            site = Site(call=call) if rank.sites is None else rank.sites[one // len(self.names)]
            self.sites[site] = self.sites.get(site, 0.0) + row

    def _add_late(self, rank: int, ledger: Ledger) -> None:
        completed, waited = ledger.completed, ledger.waits.waited
        begin = ledger.calls.begin[completed.call]
        some = (waited > 0) & (completed.partner >= 0) & (begin >= self.edges[0]) & (begin < self.edges[-1])
        total = np.bincount(completed.partner[some], weights=waited[some] / 1e9)
        self.late |= {(rank, int(other)): float(total[other]) / self.count for other in np.flatnonzero(total)}

    def account(self, steps: Steps | StepEdges | None) -> Account:
        """Of all ranks that were settled."""
        lengths = np.diff(self.edges) / (1e9 * self.each)
        waiting = [PARTS.index(part) for part in WAITING]
        return Account(
            step_s=float(lengths.mean()),
            count=self.count,
            seconds=self.seconds,
            ranks=self.partners.ranks,
            edges=self.edges / 1e9,
            steps_per_row=self.each,
            sites=_site_accounts(self.sites, len(self.partners.ranks), self.count),
            pop=pop_factors(lengths, self.useful, self.seconds[:, :, waiting].sum(axis=2)),
            late=self.late,
            uneven=self.uneven,
            messages=_joined(self.messages),
            iterations_per_step=None if steps is None else iterations_of(steps),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if len(self.around.scheduled) < len(self.partners.ranks):
            notes.append(NO_SAMPLES)
        if len(self.edges) == 2:
            notes.append("one step has no intervals over steps")
        return tuple(notes)


def _messages(own: RankCalls, ledger: Ledger, edges: Ints, most: int) -> MessageCosts:
    """The messages that a rank waited for between `edges`; not those of short calls."""
    completed, waits, calls, operations = ledger.completed, ledger.waits, ledger.calls, own.operations
    begin, end = calls.begin[completed.call], calls.end[completed.call]
    some = np.flatnonzero((end - begin >= SHORT_NS) & (begin >= edges[0]) & (begin < edges[-1]))
    some = some[:: max(1, -(-len(some) // max(1, most)))]
    critical = completed.critical[some]
    return MessageCosts(
        rank=np.full(len(some), own.rank),
        peer=np.where(ledger.collective[some], -1, operations.peer[critical]).astype(np.int64),
        out=np.isin(operations.kind[critical], SENDS),
        bytes=completed.bytes[some],
        posted=operations.begin[critical] / 1e9,
        ready=completed.ready[some] / 1e9,
        begin=begin[some] / 1e9,
        end=end[some] / 1e9,
        alone=waits.alone[some] / 1e9,
        transfer=(end - completed.ready)[some] / 1e9,
    )


def _joined(parts: Sequence[MessageCosts]) -> MessageCosts:
    fields = MessageCosts.__struct_fields__
    return MessageCosts(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in fields})


def _site_accounts(sites: Mapping[Site, Floats], ranks: int, steps: int) -> tuple[SiteAccount, ...]:
    """Sites by their time, most first."""
    ordered = sorted(sites.items(), key=lambda one: -float(one[1][:-1].sum()))
    places = locate([site for site, _ in ordered])
    return tuple(
        SiteAccount(
            call=site.call,
            seconds={part: float(row[at]) / ranks / steps for at, part in enumerate(PARTS) if row[at]},
            calls=float(row[-1]) / steps,
            function=place.function,
            file=place.file,
            line=place.line,
            module=site.module,
            offset=site.offset,
        )
        for (site, row), place in zip(ordered, places, strict=True)
    )


REPEATED = 0.8
"""Share of equal calls at a distance, from which on a pattern repeats after it."""


def iterations_of(steps: Steps | StepEdges) -> int | None:
    """How many of the program's own iterations a step has: how often the functions of its pattern repeat in
    it. None for marks, which are the program's own.
    """
    if steps.recognised_by == "marks":
        return 1
    names = np.unique(np.array(steps.pattern), return_inverse=True)[1]
    for length in range(2, len(names) // 2 + 1):
        same = names[length:] == names[:-length]
        if same.mean() >= REPEATED and len(np.unique(names[:length])) > 1:
            return round(len(names) / length)
    return 1
