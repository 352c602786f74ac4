"""Accounts with given shares, for what reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elbowroom.diagnose.account import PARTS, WAITING, Account, MessageCosts, PopFactors, SiteAccount
from elbowroom.stats.interval import Interval

STEP_S = 0.01


def made_account(
    *,
    ranks: int = 2,
    steps: int = 40,
    shares: Mapping[str, float] | None = None,
    of_ranks: Mapping[tuple[str, int], float] | None = None,
    late: Mapping[tuple[int, int], float] | None = None,
    messages: MessageCosts | None = None,
    sites: tuple[SiteAccount, ...] = (),
    noise: float = 0.01,
    uneven: float = 1.0,
) -> Account:
    """An account of steps of 10 ms: `shares` of all ranks, `of_ranks` in place of it by (part, rank); the
    rest computes. Each share varies by `noise` of itself from step to step. `uneven`: part of the waits for
    others that cores for all would leave.
    """
    generator = np.random.default_rng(1)
    seconds = np.zeros((steps, ranks, len(PARTS)))
    for rank in range(ranks):
        own = {**(shares or {}), **{part: at for (part, r), at in (of_ranks or {}).items() if r == rank}}
        for part, share in own.items():
            each = share * STEP_S * (1 + noise * generator.standard_normal(steps))
            seconds[:, rank, PARTS.index(part)] = np.maximum(each, 0.0)
    seconds[:, :, 0] = STEP_S - seconds[:, :, 1:].sum(axis=2)
    one = Interval(value=1.0, low=1.0, high=1.0)
    none = np.zeros(0)
    ints = np.zeros(0, dtype=np.int64)
    return Account(
        step_s=STEP_S,
        count=steps,
        seconds=seconds,
        ranks=tuple(range(ranks)),
        edges=STEP_S * np.arange(steps + 1),
        sites=sites
        or (SiteAccount(call="MPI_Waitall", seconds=dict.fromkeys(PARTS[1:], 0.001), calls=2.0),),
        pop=PopFactors(
            parallel_efficiency=one, load_balance=one, communication_efficiency=one, serialisation=one,
            transfer=one,
        ),
        late=late or {},
        uneven=uneven * seconds[:, :, [PARTS.index(part) for part in WAITING]].sum(axis=2),
        messages=messages
        or MessageCosts(
            rank=ints, peer=ints, out=np.zeros(0, dtype=bool), bytes=ints, posted=none, ready=none,
            begin=none, end=none, alone=none, transfer=none,
        ),
    )  # fmt: skip
