"""Steps of a real program, the diffusion solver of apps/diffusion, instead of a kernel and messages."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.point import USUAL, Facts, Labels, Point, Steady, Times, Variant, Workload, register
from elbowroom.points.probe import UNIT_OVERHEAD
from elbowroom.points.program import startup_settings
from elbowroom.points.unit import Startup, Unit

CELL_FLOPS = 12
"""Operations of a cell in a step: three for each of its faces (apps/diffusion/sweep.hpp)."""

# For the estimate only, on the safe side: all processes share one slow memory.
CELL_BYTES = 80  # moved for one cell in one step
SLOW_MEMORY = 1e10  # B/s
SET_UP = 2e5  # cells/s generated, partitioned and reordered

LEAST_CELLS = 100
"""Cells of a process below which most of them lie on its border, and partitioners leave parts empty."""

MESH_BYTES = 250
"""Bytes of a cell while the first process holds the partition of the whole mesh: 123 B were measured in the
larger of two processes, both on one host.
"""


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """Loss ratios (bandwidth alone / together) of computation and communication that a model predicts, with
    the ends of their intervals; `source` names the model, `flags` are its prediction's; `comm_rate`: MB/s of
    the messages beside the computation (None: of a run before 0.2).
    """

    comp: float
    comp_low: float
    comp_high: float
    comm: float
    comm_low: float
    comm_high: float
    source: str
    flags: tuple[str, ...] = ()
    comm_rate: float | None = None


@register
class ApplicationSteps(Workload, msgspec.Struct, frozen=True, kw_only=True):
    """Steps of the program `name`.

    `variant`: `none` computes only, `communication` exchanges only, `apart` does one after the other,
    `overlap` both at once. `nodes` processes, one a node (or several on one host, which then is labelled), or
    `per_node` of them each, share `cells` cells, of a box or of the `mesh` of a file; a repetition times
    `steps` steps after `warmup` others. `losses`: where a model predicts them instead of this run measuring
    them.
    """

    key: ClassVar[str] = "application"
    facts: ClassVar[Facts] = Facts(
        explainable=False, without_model="steps of an application", quantity="step", order="last, sorted"
    )

    name: str
    variant: Variant
    cells: int
    nodes: int
    steps: int
    warmup: int
    partitioner: str = "metis"
    per_node: int = 1
    mesh: str = ""
    losses: Losses | None = None

    def id(self, point: Point) -> str:
        """Variant, cores, nodes, cells and communication threads."""
        parts = [self.name, self.variant, f"n{point.n}", f"{self.nodes}nodes", f"{self.cells}cells"]
        if self.per_node > 1:
            parts.append(f"{self.per_node}per-node")
        if len(point.comm_cores) > 1:
            parts.append(f"k{len(point.comm_cores)}")
        return "-".join(parts)

    @property
    def processes(self) -> int:
        """Of all nodes."""
        return self.nodes * self.per_node

    @property
    def title(self) -> str:
        return self.name

    def labels(self, threads: int) -> Labels:
        """The variant: `overlap k=2 on 8`."""
        text = self.variant if self.variant in ("none", "apart") else f"{self.variant} k={threads}"
        return Labels(f"{text} on {self.nodes}", f"{text} on {self.nodes}")

    @property
    def program(self) -> str:
        return self.name

    def rank_count(self, point: Point, machine: Machine) -> int:
        return self.processes

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points of one mesh on as many nodes."""
        return self.name, self.processes, self.cells

    def startup(self, point: Point) -> Startup:
        """The mesh, and where processes are (apps/diffusion/README.md)."""
        size = {"mesh": self.mesh} if self.mesh else {"cells": self.cells}
        program = {"name": self.name, **size, "partitioner": self.partitioner}
        patience = 60.0 + 10.0 * self.cells / SET_UP
        settings = startup_settings(point, program)
        return Startup(name=self.name, ranks=self.processes, settings=settings, patience=patience)

    def request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """Steps of the variant (docs/guide/diffusion.md)."""
        return {
            "op": "measure",
            "point": unit.point,
            "repetition": unit.repetition,
            "variant": self.variant,
            "comm_threads": max(1, len(point.comm_cores)),
            "steps": self.steps,
            "warmup": self.warmup,
        }

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses meshes that cannot be partitioned, or do not fit."""
        cells, nodes = self.cells, self.processes
        if cells < nodes:
            hint = f"give at least {LEAST_CELLS * nodes} cells, or fewer nodes"
            raise UsageError(f"{nodes} processes are more than cells", field="cells", value=cells, hint=hint)
        if cells < LEAST_CELLS * nodes:
            hint = f"give at least {LEAST_CELLS * nodes} cells ({LEAST_CELLS} for each)"
            raise UsageError(
                f"the mesh is too small to partition among {nodes}", field="cells", value=cells, hint=hint
            )
        if machine.memory and not machine.virtual and cells * MESH_BYTES > machine.memory * machine.hosts:
            most = machine.memory * machine.hosts // MESH_BYTES
            hint = f"at {MESH_BYTES} B a cell while the mesh is made, about {most} fit"
            raise UsageError("the mesh is larger than memory", field="cells", value=cells, hint=hint)

    def on_mesh(self, path: str, cells: int) -> Self:
        """On the mesh of a file; UsageError where it was begun on another one."""
        if self.mesh and Path(self.mesh).name != Path(path).name:
            raise UsageError(
                "the mesh has changed since the run was started",
                field="mesh",
                value=path,
                hint="restore the file, or start a new run",
            )
        return msgspec.structs.replace(self, mesh=path, cells=cells)

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """All timed steps are one phase. A mesh is made once."""
        step = self.cells * CELL_BYTES / SLOW_MEMORY
        return Times(
            phase=self.steps * step,
            phases=1,
            unit=UNIT_OVERHEAD + (self.steps + self.warmup) * step,
            patience=60.0 + 20.0 * (self.steps + self.warmup) * step,
            preparation={("cells", self.cells): self.cells / SET_UP},
        )

    def baseline(self, point: Point) -> frozenset[Hashable]:
        """Of the variants that compute or communicate only: themselves."""
        return frozenset((point.id,)) if self.variant in ("none", "communication") else frozenset()
