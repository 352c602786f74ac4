"""What is measured: a point, and the order in which its repetitions are visited."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from elbowroom.plan.workload import Workload, kernel_beside_messages, stored

Metric = Literal["latency", "bandwidth"]
Pattern = Literal["pingpong", "receive", "bidirectional", "ring"]
Reuse = Literal["same", "rotate", "off-cache"]
Phase = Literal["A", "B", "AB", "S"]
StreamPhase = Literal["C", "AC", "BC", "ABC"]
"""Phases with a third stream C, alone and beside the two sides."""
AnyPhase = Phase | StreamPhase
Processes = Literal["node", "socket", "core"]
"""What each process has of its own: a node, a socket, or a computing core and one to communicate."""
Variant = Literal["none", "communication", "apart", "overlap"]


SETTINGS = ("core_khz", "uncore_khz", "turbo", "governor")
"""Fields of a point that are held on every host; None: as it is."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where one rank computes and communicates (used by `ring` with several processes per host)."""

    rank: int
    comp_cores: tuple[int, ...]
    comm_cores: tuple[int, ...]
    comp_node: int
    comm_node: int


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of the axes of a plan. Cores and nodes carry the operating system's numbers.

    `size` and `working_set` are bytes; `working_set` is per computing core, all arrays together; `n_other` of
    the `n` computing cores are of another socket than the first, where a plan tells points apart by that;
    `placements` say where each process of a host is; `workload` is what runs (a kernel beside messages; for
    others `kernel` is `none`); `role` is `point` for what the plan measures and `control` for the
    register-only kernel that shows whether the machine was quiet (docs/design/method.md, rule 15).
    """

    plan: str
    kernel: str
    n: int
    size: int
    comp_node: int
    comm_node: int
    comm_core: int
    metric: Metric
    comp_cores: tuple[int, ...] = ()
    comm_cores: tuple[int, ...] = ()
    peer_cores: tuple[int, ...] = ()
    pattern: Pattern = "pingpong"
    cursor: int = 1
    working_set: int = 0
    reuse: Reuse = "same"
    computing_ranks: Literal["first", "all"] = "first"
    processes: Processes = "node"
    placements: tuple[Placement, ...] = ()
    core_khz: int | None = None
    uncore_khz: int | None = None
    turbo: bool | None = None
    governor: str | None = None
    role: Literal["point", "control"] = "point"
    sequence: tuple[Phase, ...] = ("A", "B", "AB", "AB", "B", "A")
    window: float = 0.12
    message_period: float = 0.0
    observe: tuple[str, ...] = ()
    scheduling: bool = False
    n_other: int = 0
    workload: Workload = msgspec.field(default_factory=kernel_beside_messages)

    @property
    def id(self) -> str:
        """A readable name, equal for equal points and different for different ones within a plan."""
        return self.workload.id(self)

    def plain(self) -> dict[str, Any]:
        """Plain data, as in a manifest."""
        return stored(self, self.workload)

    @property
    def settings(self) -> dict[str, int | bool | str]:
        """What every host of the job holds while the point is measured, by the names of machine.Settings."""
        held = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in held.items() if value is not None}


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe is asked for at once and the journal keeps as one line: one repetition of one point.

    `closing` marks the alone baselines that are measured again at the end of the run.
    """

    point: str
    repetition: int
    closing: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the plan that this machine cannot answer (`n/a`), or that there was no time for (`left out`),
    and why.
    """

    what: str
    status: Literal["n/a", "left out"] = "n/a"
    reason: str


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """A plan expanded for a machine: the points that can be measured and the notes for those that cannot."""

    points: tuple[Point, ...]
    notes: tuple[Note, ...]
