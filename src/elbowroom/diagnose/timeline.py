"""The median step of a profile over time: when each rank is in which call."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from elbowroom.diagnose.account import PARTS, Account
from elbowroom.diagnose.summary import place
from elbowroom.profile.profile import MpiEvents, Profile

MOST = 300
"""Calls of a rank that are drawn; of more, those that are near each other are joined."""


class CallSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A call, or several near each other, seconds since the step's begin; `part`: of the account, that has
    most of the time of such calls.
    """

    begin: float
    end: float
    part: str
    text: str


class RankLine(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's calls in a step."""

    rank: int
    spans: tuple[CallSpan, ...]


class StepTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A step of `seconds`, a row for each rank."""

    seconds: float
    rows: tuple[RankLine, ...]


def median_step(profile: Profile, account: Account) -> StepTimeline:
    """The step whose length is nearest to the median of all; the calls of each rank in it."""
    lengths = np.diff(account.edges)
    at = int(np.abs(lengths - np.median(lengths)).argmin())
    begin, end = float(account.edges[at]), float(account.edges[at + 1])
    parts = _parts_of_calls(account)
    rows = []
    for rank in account.ranks:
        own = profile.events.of_rank(rank)
        inside = own.is_call & (own.end > 1e9 * begin) & (own.begin < 1e9 * end)
        rows.append(RankLine(rank=rank, spans=_spans(own.part(inside), begin, end, parts)))
    return StepTimeline(seconds=end - begin, rows=tuple(rows))


def _parts_of_calls(account: Account) -> dict[Any, tuple[str, str]]:
    """By call and by call site: the part with most of the time, and what to say of it."""
    parts: dict[Any, tuple[str, str]] = {}
    for site in account.sites:
        part = max(site.seconds, key=lambda part: site.seconds[part], default=PARTS[-1])
        parts.setdefault(site.call, (part, site.call))
        parts[site.call, site.module, site.offset] = part, place(site)
    return parts


def _spans(
    calls: MpiEvents, begin: float, end: float, parts: dict[Any, tuple[str, str]]
) -> tuple[CallSpan, ...]:
    order = np.argsort(calls.begin, kind="stable")
    least = (end - begin) / MOST if len(order) > MOST else 0.0
    spans: list[CallSpan] = []
    for at in order.tolist():
        first = max(0.0, calls.begin[at] / 1e9 - begin)
        last = min(end - begin, calls.end[at] / 1e9 - begin)
        name = calls.names[calls.call[at]]
        part, text = parts.get(name, ("library", name))
        if calls.site is not None:
            site = calls.sites[calls.site[at]]
            part, text = parts.get((site.call, site.module, site.offset), (part, text))
        before = spans[-1] if spans else None
        if before is not None and first - before.begin < least and before.part == part:
            spans[-1] = msgspec.structs.replace(before, end=max(before.end, float(last)))
        else:
            spans.append(CallSpan(begin=float(first), end=float(last), part=part, text=text))
    return tuple(spans)
