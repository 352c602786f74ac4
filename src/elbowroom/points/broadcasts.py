"""Broadcasts of the program `forwarder` (apps/broadcast) beside a kernel on the rank that forwards most."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.point import USUAL, Facts, Point, Steady, Times, register
from elbowroom.points.probe import ROUND_TRIPS, SLOW_EXCHANGE, ProbeWorkload, unit_times
from elbowroom.points.program import START_UP, startup_settings
from elbowroom.points.steps import Losses
from elbowroom.points.unit import Startup

PROGRAM = "forwarder"

INNER = 1
"""The rank that computes: the first recipient in every tree."""

LEAST_RANKS = 3
"""A root, a rank that forwards, a leaf."""


@register
class Forwarding(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    """Rank 0 broadcasts to the others by `tree`, in segments of `segment` bytes (0: whole); rank 1 runs
    `kernel` on its computing cores. `losses`: what a model predicts beside messages at full bandwidth.
    """

    key: ClassVar[str] = "forwarding"
    facts: ClassVar[Facts] = Facts(program_facts=True, without_model="broadcasts", order="last")
    virtual_refusal: ClassVar[str] = "a virtual machine runs no programs: measured on a real one"

    kernel: Literal["triad", "gemm"]
    tree: str
    ranks: int
    segment: int = 0
    losses: Losses | None = None

    def id(self, point: Point) -> str:
        parts = [self.kernel, f"n{point.n}", self.tree, f"{self.ranks}ranks", f"{point.size}B"]
        parts += [f"segment{self.segment}"] * bool(self.segment)
        return "-".join(
            (*parts, f"comp{point.comp_node}", f"comm{point.comm_node}", f"core{point.comm_core}")
        )

    @property
    def title(self) -> str:
        """Kernel and tree: `triad, binomial tree`."""
        return f"{self.kernel}, {self.tree} tree"

    @property
    def program(self) -> str:
        return PROGRAM

    def rank_count(self, point: Point, machine: Machine) -> int:
        """Those of the tree, the root included."""
        return self.ranks

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points that differ in nothing but the size of their broadcasts."""
        return (self, point.comp_cores, point.comm_cores, point.placements, point.comp_node, point.comm_node)

    def startup(self, point: Point) -> Startup:
        program = {"name": PROGRAM, **msgspec.to_builtins(msgspec.structs.replace(self, losses=None))}
        return Startup(
            name=PROGRAM, ranks=self.ranks, settings=startup_settings(point, program), patience=START_UP
        )

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses too few ranks."""
        if self.ranks < LEAST_RANKS:
            hint = f"give {LEAST_RANKS} or more: a root, a rank that forwards, a leaf"
            raise UsageError("no rank would forward", field="ranks", value=self.ranks, hint=hint)

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """A phase takes the window, or a few broadcasts through one slow memory."""
        phase = max(point.window, ROUND_TRIPS * self.ranks * point.size / SLOW_EXCHANGE)
        return unit_times(point, len(self.sequence(point, closing)), phase, steady)
