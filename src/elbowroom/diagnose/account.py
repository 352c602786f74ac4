"""The account of a step: all of its time in exclusive parts that add up (docs/reference/account.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile.profile import Profile
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PARTS = (
    "compute", "transfer", "contention", "late_ranks", "no_progress", "collective_wait", "library",
    "scheduler", "io", "not_explained",
)  # fmt: skip
"""In the order of the document and of the bars."""


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


class PopFactors(msgspec.Struct, frozen=True, kw_only=True):
    """By TALP's definitions: parallel efficiency = load balance x communication efficiency, and communication
    efficiency = serialisation x transfer; the products of the values are exact.
    """

    parallel_efficiency: Interval
    load_balance: Interval
    communication_efficiency: Interval
    serialisation: Interval
    transfer: Interval


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
    1,) where steps begin and end, seconds since the job's start; `late`: (rank that waits, rank that it waits
    for) -> seconds of a step; `iterations_per_step`: of the program's own iterations, None where that is not
    known; `notes`: what the profile cannot say, in sentences.
    """

    step_s: float
    count: int
    seconds: Floats
    ranks: tuple[int, ...]
    edges: Floats
    sites: tuple[SiteAccount, ...]
    pop: PopFactors
    late: Mapping[tuple[int, int], float]
    messages: MessageCosts
    iterations_per_step: int | None = None
    notes: tuple[str, ...] = ()

    def shares(self) -> dict[str, Interval]:
        """Of each part: its share of the mean step over all ranks, with a 90 % interval over the steps."""
        raise NotImplementedError


def account_of(profile: Profile, edges: Sequence[float] | Floats | None) -> Account:
    """The account of a profile between `edges`, (steps + 1,) seconds as in Steps.edges; without them, the
    whole run is one step.
    """
    raise NotImplementedError
