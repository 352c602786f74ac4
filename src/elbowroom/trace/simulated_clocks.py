"""The results of simulated clocks (lib/clock/simulation), with their true errors."""

from __future__ import annotations

import msgspec

from elbowroom.trace.documents import Sync, SyncRank


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of corrected times for one way to synchronise clocks: errors and published bounds (half
    their width) in ns; `inside`: share of the moments with an error inside its bound, `unflagged`: number of
    moments with an error outside and no flag; `tachyons`: messages that arrive before they are sent.
    """

    name: str
    p50_ns: int
    p95_ns: int
    max_ns: int
    bound_p50_ns: int
    inside: float
    unflagged: int
    tachyons: int


class ClockError(msgspec.Struct, frozen=True, kw_only=True):
    """The error of one clock's corrected time at one moment (corrected - true), and its bound, ns."""

    local: int
    error_ns: int
    bound_ns: int


class ShownClock(SyncRank, frozen=True, kw_only=True):
    """One of the clocks as in the document of `trace-reader sync`, with its errors."""

    errors: tuple[ClockError, ...] = ()


class SimulatedClocks(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons` of `clocks` over `duration_ns`, in `rounds` each, with so many `exchanges` of messages in
    all and `longest_ns` for the longest; `told_wrong` of the `points` were, `rejected` were left out, `steps`
    stretches between points are flagged, `incomparable` comparisons failed; `messages` were looked at for
    tachyons. `ranks` are the clocks that are told one by one.
    """

    clocks: int
    duration_ns: int
    every_ns: int
    clock: str
    link: str
    bad: float
    seed: int
    rounds: int
    comparisons: int
    exchanges: int
    longest_ns: int
    points: int
    told_wrong: int
    rejected: int
    steps: int
    incomparable: int
    messages: int
    methods: tuple[Method, ...]
    ranks: tuple[ShownClock, ...]

    @property
    def best(self) -> Method:
        """That of all points."""
        return self.methods[-1]

    @property
    def sync(self) -> Sync:
        """The clocks that are told one by one, as those of a trace."""
        return Sync(ranks=self.ranks)
