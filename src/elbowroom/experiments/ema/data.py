"""What extraneous accesses did, as data that `show --json` adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.experiments.ema.floors import CacheRegion
from elbowroom.experiments.ema.sides import Bounds, Difference, First, Scatter
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult
from elbowroom.schemas import WRITTEN


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
    n: int
    caches: dict[str, float]
    regions: tuple[CacheRegion, ...]
    after: Scatter | None
    without: Scatter | None
    first_observation: First
    bounds: WindowBounds


class AccessDifference(Difference, frozen=True, kw_only=True):
    """Accesses of the receiver less those of the sender, and of which kind they are."""

    access: str
    size: int
    data: str
    barrier: bool


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
    )


TYPES = {"extraneous": AccessResults}
"""The types of `data`, by key."""
