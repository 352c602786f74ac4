"""An account in the numbers of the document: shares of a step, POP factors, and a row for each part."""

from __future__ import annotations

import msgspec

from elbowroom.diagnose.account import PARTS, Account, SiteAccount

LABELS = {
    "compute": "computation",
    "transfer": "messages alone",
    "contention": "contention",
    "late_ranks": "wait for late ranks",
    "no_progress": "no progress",
    "collective_wait": "wait at collectives",
    "library": "MPI library",
    "scheduler": "wait for a core",
    "io": "I/O and system",
    "not_explained": "not explained",
}
"""Names of the account's parts for people."""


class AccountShares(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the mean step of all ranks; they sum to 1."""

    compute: float
    transfer: float
    contention: float
    late_ranks: float
    no_progress: float
    collective_wait: float
    library: float
    scheduler: float
    io: float
    not_explained: float


class PopShares(msgspec.Struct, frozen=True, kw_only=True):
    """The POP factors: parallel efficiency = load balance x serialisation x transfer."""

    parallel_efficiency: float
    load_balance: float
    serialisation: float
    transfer: float


class PartRow(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the account: `share` of the mean step, `low` to `high` (90 %), `seconds` of it; the rank that
    has most of it, the share that it has, and the call site that has most of it, "" outside calls.
    """

    part: str
    share: float
    low: float
    high: float
    seconds: float
    rank: int
    rank_share: float
    site: str = ""


def shares_of(account: Account) -> AccountShares:
    """The shares of the parts."""
    return AccountShares(**{part: share.value for part, share in account.shares().items()})


def pop_of(account: Account) -> PopShares:
    """The POP factors without their intervals."""
    return PopShares(**{name: getattr(account.pop, name).value for name in PopShares.__struct_fields__})


def part_rows(account: Account) -> tuple[PartRow, ...]:
    """A row for each part that is not empty, the largest first."""
    of_ranks = account.seconds.mean(axis=0)
    rows = []
    for at, (part, share) in enumerate(account.shares().items()):
        worst = int(of_ranks[:, at].argmax())
        low, high = share.ends(share.value)
        site = max(account.sites, key=lambda site: site.seconds.get(part, 0.0), default=None)
        rows.append(
            PartRow(
                part=part,
                share=share.value,
                low=low,
                high=high,
                seconds=share.value * account.step_s,
                rank=account.ranks[worst],
                rank_share=float(of_ranks[worst, at] / account.step_s) if account.step_s > 0 else 0.0,
                site=place(site) if site is not None and site.seconds.get(part, 0.0) > 0 else "",
            )
        )
    assert len(rows) == len(PARTS)
    return tuple(sorted((row for row in rows if row.share > 0), key=lambda row: -row.share))


def place(site: SiteAccount) -> str:
    """Where a call is: `MPI_Waitall in exchange (halo.c:31)`; as much of it as is known."""
    where = ""
    if site.function is not None:
        where = f" in {site.function}"
    elif site.module:
        where = f" at {site.module.rpartition('/')[2]}+{site.offset:#x}"
    line = "" if site.file is None else f" ({site.file.rpartition('/')[2]}:{site.line})"
    return f"{site.call}{where}{line}"
