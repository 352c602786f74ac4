"""Results of extraneous accesses by what was accessed how: a case is what one curve shows, all its windows.

What is computed of a case (stats.floors, stats.sides) is computed once, where it is asked for.

The same as data is what `show --json` adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from elbowroom.experiments.common.sentences import grouped, size_text, usable
from elbowroom.experiments.ema import floors, sides
from elbowroom.experiments.ema.floors import CacheRegion
from elbowroom.experiments.ema.message_model import MessageModel, fit
from elbowroom.experiments.ema.sides import Bounds, Difference, First, Of, Scatter, all_series
from elbowroom.machine.topology import Machine
from elbowroom.points.accesses import TIMED, ExtraneousAccesses, Timing, series_of
from elbowroom.points.point import running
from elbowroom.results.result import PointResult
from elbowroom.schemas import WRITTEN

Kind = tuple[str, int, str, bool, Timing]


@dataclass(frozen=True)
class AccessCase:
    """Who accesses how, beside messages of which `size` in bytes; `n` bystanders. `windows` from few bytes to
    many; `levels`: bytes at which each level of cache is outgrown; `shared`: levels that several accessing
    cores share.
    """

    who: str
    access: str
    size: int
    data: str
    barrier: bool
    timing: Timing
    bystanders: str
    n: int
    windows: tuple[PointResult, ...]
    levels: dict[int, float]

    @property
    def kind(self) -> Kind:
        """What cases that differ in who accesses have in common."""
        return self.access, self.size, self.data, self.barrier, self.timing

    @property
    def key(self) -> str:
        """A name for findings and figures."""
        barrier = [] if self.barrier else ["nobarrier"]
        count = [f"n{self.n}"] if self.n else []
        timing = [] if self.timing == "one-way" else [self.timing]
        kind = [] if self.bystanders == "threads" else [self.bystanders]
        return "-".join([self.who, *kind, *count, self.access, f"{self.size}B", self.data, *barrier, *timing])

    @property
    def sizes(self) -> int:
        """How many sizes were accessed."""
        return sum(len(series.sizes) for series in all_series(self.windows))

    @property
    def most(self) -> int:
        return max(series.sizes[-1] for series in all_series(self.windows))

    def alike(self, other: AccessCase) -> bool:
        """Whether only who accesses differs."""
        return self.kind == other.kind

    @cached_property
    def regions(self) -> list[CacheRegion]:
        """Messages without accesses, then those of each region between caches."""
        return floors.regions(self.windows, self.levels)

    @cached_property
    def scatter(self) -> Scatter | None:
        """Average and variance after accesses."""
        return sides.scatter(self.windows)

    @cached_property
    def scatter_without(self) -> Scatter | None:
        """The same of the messages without."""
        return sides.scatter(self.windows, after=False)

    @cached_property
    def message_model(self) -> MessageModel | None:
        """The time of a message from the bytes accessed before it."""
        return fit(all_series(self.windows), self.levels)

    def bounds(self, of: Of = "mean", *, after: bool = True) -> list[Bounds]:
        """Lower and upper bound of each window."""
        return sides.bounds(self.windows, of=of, after=after)


def cases(results: Sequence[PointResult], machine: Machine) -> list[AccessCase]:
    """The cases in the order of the plan; points without values are left out."""

    def key(
        pair: tuple[PointResult, ExtraneousAccesses],
    ) -> tuple[str, str, int, str, bool, Timing, str, int]:
        item, accesses = pair
        kind = (accesses.data, accesses.barrier, accesses.timing)
        return accesses.who, accesses.access, item.size, *kind, accesses.bystanders, item.n

    measured = [item for item in usable(results) if series_of(item.payload) is not None]
    return [
        AccessCase(
            *of,
            windows=tuple(sorted((item for item, _ in members), key=first)),
            levels=floors.edges(members[0][0], machine),
        )
        for of, members in grouped(running(measured, ExtraneousAccesses), key).items()
    ]


def first(item: PointResult) -> int:
    """The fewest bytes of a window."""
    series = series_of(item.payload)
    return 0 if series is None else series.sizes[0]


def who_text(case: AccessCase) -> str:
    """`Writes by the sender`, `Reads by 3 bystanders`."""
    kind = "Reads" if case.access == "read" else "Writes"
    by = {
        "none": "nobody",
        "sender": "the sender",
        "receiver": "the receiver",
        "both": "both sides",
        "bystanders": f"{case.n} bystander{_other(case)}{'s' if case.n != 1 else ''}",
    }[case.who]
    return f"{kind} by {by}"


def _other(case: AccessCase) -> str:
    return " process" + ("e" if case.n != 1 else "") if case.bystanders == "processes" else ""


def kind_text(case: AccessCase) -> str:
    """`400 B messages`, with what is not the usual."""
    data = "" if case.data == "same" else ", new data each"
    barrier = "" if case.barrier else ", no barrier"
    timing = "" if case.timing == "one-way" else f", {TIMED[case.timing]}"
    return f"{size_text(case.size)} messages{data}{barrier}{timing}"


def region_text(case: AccessCase, name: str) -> str:
    """`past L2 (2 MiB)`: a region with the size of its cache."""
    level = int(name[-1]) if name[-1:].isdigit() else 0
    edge = case.levels.get(level)
    if edge is None:
        return {floors.WITHOUT: "no accesses", "all": "any accesses"}.get(name, name)
    return f"{name} ({size_text(edge)})"


class WindowBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of all windows, of what the messages of a size took on average or of the fastest one."""

    mean_after: tuple[Bounds, ...]
    mean_without: tuple[Bounds, ...]
    minimum_after: tuple[Bounds, ...]
    minimum_without: tuple[Bounds, ...]


class Accesses(msgspec.Struct, frozen=True, kw_only=True):
    """Who accesses how beside which messages: the row without accesses and those between caches, and the
    first observation of Tan and Jarvis (2012). `caches`: bytes at which each level is outgrown.
    """

    who: str
    access: str
    size: int
    data: str
    barrier: bool
    timing: Timing = "one-way"
    bystanders: str = "threads"
    n: int
    caches: dict[str, float]
    regions: tuple[CacheRegion, ...]
    after: Scatter | None
    without: Scatter | None
    first_observation: First
    bounds: WindowBounds
    message_model: MessageModel | None = None


class AccessDifference(Difference, frozen=True, kw_only=True):
    """Accesses of the receiver less those of the sender, and of which kind they are."""

    access: str
    size: int
    data: str
    barrier: bool
    timing: Timing = "one-way"


class AccessResults(msgspec.Struct, frozen=True, kw_only=True):
    """A run of extraneous accesses (Tan and Jarvis 2012), times in us."""

    unit: Annotated[Literal["us"], WRITTEN] = "us"
    cases: tuple[Accesses, ...]
    sides: tuple[AccessDifference, ...]


def data(results: Sequence[PointResult], machine: Machine) -> dict[str, AccessResults]:
    """The cases, with the bounds of every window and the sides compared; empty without any."""
    every = cases(results, machine)
    if not every:
        return {}
    compared = tuple(
        AccessDifference(
            **msgspec.structs.asdict(difference),
            access=sender.access,
            size=sender.size,
            data=sender.data,
            barrier=sender.barrier,
            timing=sender.timing,
        )
        for sender in every
        for receiver in every
        if (sender.who, receiver.who) == ("sender", "receiver")
        and sender.alike(receiver)
        and (difference := sides.difference(sender.windows, receiver.windows, sender.levels)) is not None
    )
    return {"extraneous": AccessResults(cases=tuple(map(_accesses, every)), sides=compared)}


def _accesses(case: AccessCase) -> Accesses:
    return Accesses(
        who=case.who,
        access=case.access,
        size=case.size,
        data=case.data,
        barrier=case.barrier,
        timing=case.timing,
        bystanders=case.bystanders,
        n=case.n,
        caches={f"L{level}": edge for level, edge in case.levels.items()},
        regions=tuple(case.regions),
        after=case.scatter,
        without=case.scatter_without,
        first_observation=sides.first_observation(case.windows, case.regions),
        bounds=WindowBounds(
            mean_after=tuple(case.bounds("mean")),
            mean_without=tuple(case.bounds("mean", after=False)),
            minimum_after=tuple(case.bounds("minimum")),
            minimum_without=tuple(case.bounds("minimum", after=False)),
        ),
        message_model=case.message_model,
    )


TYPES = {"extraneous": AccessResults}
"""The types of `data`, by key."""
