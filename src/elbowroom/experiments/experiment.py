"""What every experiment is: how a plan becomes points, and what its results say and look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from elbowroom.draw.figure import Figure, TextTable
from elbowroom.machine.topology import Machine
from elbowroom.plan.file import NoKeys, Plan, fields
from elbowroom.points.point import Expansion
from elbowroom.results.result import Finding, PointResult


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs that are shown as one; `name` is its folder."""

    name: str
    results: tuple[PointResult, ...]
    machine: Machine


class JoinedResults(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment makes of several runs; as of one run (Experiment)."""

    findings: tuple[Finding, ...]
    figures: tuple[Figure, ...]
    tables: tuple[TextTable, ...]
    data: dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment; its package declares it as `EXPERIMENT`, or as an entry point of the group
    `elbowroom.experiments`. All functions are pure.

    `expand` gives points and notes (n/a with the reason); `findings` says in words and numbers what the
    results show; `figures` draws them with the paper's conventions. `tables` sums points up for `show` and
    the report; `data` is what `show --json` adds, by key, and `data_types` has the type of each. `crucial`
    names the points that the answer rests on, which get the last part of a budget of time; without it all do.
    `keys` is the type of `plan.keys`, the plan's table `[keys]`: what only this experiment understands.
    `needs_starpu`: whether points of a plan are programs over StarPU, which run with its MPI; `model`: the
    model whose loss ratios a plan uses in place of measured ones. `join` shows runs on different numbers of
    nodes as one, where that means something; UsageError for runs that do not fit together.
    """

    name: str
    question: str
    expand: Callable[[Plan, Machine], Expansion]
    findings: Callable[[Sequence[PointResult], Machine], tuple[Finding, ...]]
    figures: Callable[[Sequence[PointResult], Machine], tuple[Figure, ...]]
    tables: Callable[[Sequence[PointResult], Machine], tuple[TextTable, ...]] = lambda *_: ()
    data: Callable[[Sequence[PointResult], Machine], dict[str, Any]] = lambda *_: {}
    data_types: Mapping[str, type[msgspec.Struct]] = field(default_factory=dict)
    crucial: Callable[[Sequence[PointResult]], frozenset[str]] | None = None
    needs_starpu: Callable[[Plan], bool] = lambda _: False
    model: Callable[[Plan], str] = lambda _: ""
    keys: type[msgspec.Struct] = NoKeys
    join: Callable[[Sequence[RunPart]], JoinedResults] | None = None

    def __post_init__(self) -> None:
        for key in fields(self.keys) & fields(Plan):
            raise ValueError(f"{key} is a key of every plan")
