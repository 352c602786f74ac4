"""A cluster of virtual machines that runs an application: what its steps take, from the truth of one node.

Every node holds one part of the mesh. A step is separator, then interior beside exchange, then a barrier
(Langguth 2018, section IV), as a fluid simulation (models/overlap/fluid.py) whose rates are those of the
node's truth: bytes of the interior flow at the bandwidth of that many computing cores, bytes of the messages
at that of messages of their size by that many threads, alone or together. A step ends with its last node: one
of them has the part that sends most, all have the cells of the largest part, and each has noise of its own.

Not simulated: caches that hold more of a smaller part, the network beyond the NIC, a node's other work.

What the processes exchange is scaled from meshes that were really partitioned (partitions.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from elbowroom.models.overlap.fluid import Rates, halo_steps, simulate
from elbowroom.plan.kernels import find
from elbowroom.points.point import Point, Variant
from elbowroom.points.steps import CELL_FLOPS, ApplicationSteps
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import PublishedStep
from elbowroom.virtual.laws import Exchange, ProcessRates, Work
from elbowroom.virtual.partitions import scaled
from elbowroom.virtual.truth import repetition_record

if TYPE_CHECKING:
    from numpy.typing import NDArray


KERNEL = "triad"
"""What computing cores' memory bandwidth is that of: a sweep streams its matrix and the field, and stores one
value for a cell as TRIAD does for its three."""

CELL_BYTES = 72
"""Moved over the bus for a cell in a step: its row of the matrix (four neighbours of 4 B, four weights of 8
B), its old value, and its new one with the line that is read first (apps/diffusion/sweep.hpp).
"""

MICRO = 1e6
"""us in a s."""
MILLI = 1e3


_PHASES: Mapping[Variant, Mapping[str, tuple[str, ...]]] = {
    "none": {"A": ("comp", "total", "separator")},
    "communication": {"B": ("comm", "total")},
    "apart": {"A": ("comp", "total", "separator"), "B": ("comm",)},
    "overlap": {"AB": ("comp", "comm", "total", "separator")},
}
"""The phases of a variant's steps, and their sides; whole steps are of the first one."""


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one node, us: when each part has ended since it began, and the barrier after them."""

    separator: float
    interior: float
    exchange: float
    barrier: float


class SimulatedCluster:
    """Nodes alike that run the application of a point."""

    def __init__(self, machine: VirtualMachine, point: Point) -> None:
        steps = point.workload
        assert isinstance(steps, ApplicationSteps)
        self._machine, self._point, self.volumes = machine, point, scaled(steps.cells, steps.processes)

    def facts(self) -> dict[str, float]:
        """What an application says of itself."""
        volumes = self.volumes
        return {
            "cells": volumes.cells,
            "step_bytes": volumes.cells_largest * CELL_BYTES,
            "step_flops": volumes.cells_largest * CELL_FLOPS,
            "total_bytes": volumes.sent_total,
            "average_bytes": volumes.sent_average,
            "largest_bytes": volumes.sent_largest,
            "largest_message": volumes.message_largest,
            "messages": volumes.messages_largest,
        }

    def times(self, variant: Variant, threads: int, volume: float) -> StepTimes:
        """A step without noise of the node that sends and receives `volume` bytes in it."""
        volumes = self.volumes
        border = min(volumes.separator_cells_largest, volumes.cells_largest)
        parts = {"separator": border, "interior": volumes.cells_largest - border}
        work = {name: cells * CELL_BYTES for name, cells in parts.items()} | {"exchange": volume}
        if variant == "none":
            work["exchange"] = 0.0
        elif variant == "communication":
            work |= {"separator": 0.0, "interior": 0.0}
        rates = node_rates(self._answer(threads))
        if variant == "apart":
            first = simulate(halo_steps(1, **(work | {"exchange": 0.0})), rates)
            then = simulate(halo_steps(1, separator=0.0, interior=0.0, exchange=volume), rates)
            exchange = then.total
        else:
            first = simulate(halo_steps(1, **work), rates)
            exchange = first.ends["exchange 0"] - first.ends["separator 0"]
        separator = first.ends["separator 0"]
        return StepTimes(
            separator=separator,
            interior=first.ends["interior 0"] - separator,
            exchange=exchange,
            barrier=math.ceil(math.log2(volumes.parts)) * self._machine.definition.near_latency_us,
        )

    def answer(self, unit: Unit, fields: Mapping[str, Any], start: Unit | None = None) -> dict[str, Any]:
        """The `repetition` record: every step with noise of its own, the slowest node's times. `start`: the
        first unit that this start of the application was asked for.
        """
        variant, steps, threads = fields["variant"], fields["steps"], fields["comm_threads"]
        published = self._machine.definition.published_step(self.volumes.parts)
        if published is not None:
            return self._record(unit, variant, self._published(unit, variant, steps, published, start))
        largest = self.times(variant, threads, self.volumes.sent_largest)
        average = self.times(variant, threads, self.volumes.sent_average)
        shape = (steps, self.volumes.parts)
        factors = {
            name: self._machine.factors(unit, shape, name) for name in ("separator", "interior", "exchange")
        }
        parts = {}
        for name, factor in factors.items():
            exact = np.full(shape, getattr(average, name))
            exact[:, 0] = getattr(largest, name)
            shared = self._machine.start_factors(start, f"{unit.point} {name}")
            parts[name] = exact * factor * shared[0]
        inner, outer = parts["interior"], parts["exchange"]
        busy = inner + outer if variant == "apart" else np.maximum(inner, outer)
        whole = ((parts["separator"] + busy).max(axis=1) + largest.barrier) / MICRO
        slowest = {name: values.max(axis=1) / MICRO for name, values in parts.items()}
        return self._record(unit, variant, {**slowest, "total": whole})

    def _published(
        self, unit: Unit, variant: Variant, steps: int, step: PublishedStep, start: Unit | None
    ) -> dict[str, NDArray[np.float64]]:
        """Seconds of the parts of each step, as published, all with the noise of the step."""
        shared = self._machine.start_factors(start, f"{unit.point} step")[0]
        factor = self._machine.factors(unit, (steps, 1), "step")[:, 0] * shared / MILLI
        whole = {
            "none": step.t_comp + step.separator,
            "communication": step.t_comm,
            "apart": step.apart or 0.0,
            "overlap": step.overlap,
        }[variant]
        parts = {
            "separator": step.separator,
            "interior": step.t_comp,
            "exchange": step.t_comm,
            "total": whole,
        }
        return {name: time * factor for name, time in parts.items()}

    def _record(
        self, unit: Unit, variant: Variant, seconds: Mapping[str, NDArray[np.float64]]
    ) -> dict[str, Any]:
        """The record of parts that took so long in each step."""
        sides: dict[str, Any] = {
            "comp": _durations(seconds["interior"], "rate"),
            "comm": _durations(seconds["exchange"]),
            "total": _durations(seconds["total"]),
            "separator": _durations(seconds["separator"]),
        }
        phases = [
            {
                "phase": phase,
                "index": index,
                "status": "ok",
                "flags": [],
                "measured_s": 0.0 if index else float(seconds["total"].sum()),
                **{name: sides[name] for name in names},
            }
            for index, (phase, names) in enumerate(_PHASES[variant].items())
        ]
        return repetition_record(unit, phases, self.facts())

    def _answer(self, threads: int) -> ProcessRates:
        """The node's bandwidths alone and together. Messages are as long as they are on average; each
        thread sends its piece of every one.
        """
        point, machine = self._point, self._machine
        work = Work(
            kernel=KERNEL,
            cursor=1,
            cores=machine.definition.shape.spread(point.n - point.n_other, point.n_other),
            comp_node=point.comp_node,
        )
        messages = Exchange(
            size=max(1, round(self.volumes.message_average / threads)),
            comm_node=point.comm_node,
            pattern="ring",
            threads=threads,
            far=machine.far(point.comm_core),
        )
        return machine.exact(work, messages)


def _durations(seconds: NDArray[np.float64], key: str = "value") -> dict[str, Any]:
    batches = MICRO * seconds
    return {key: float(np.median(batches)), "unit": "us", "batches": batches.tolist()}


def node_rates(answer: ProcessRates) -> Rates:
    """Rates (B/us) for a fluid simulation of `halo_steps`: computation over the bus, messages as they are."""
    kernel = find(KERNEL)
    assert kernel is not None
    assert answer.comp_alone is not None
    assert answer.comp_together is not None
    bus = kernel.bus_bytes / kernel.algorithmic_bytes
    comp = {False: answer.comp_alone * bus, True: answer.comp_together * bus}
    comm = {False: answer.comm_alone, True: answer.comm_together}

    def rates(active: frozenset[str]) -> dict[str, float]:
        sides = {name: comm if name.startswith("exchange") else comp for name in active}
        together = len({id(side) for side in sides.values()}) == 2
        return {name: side[together] for name, side in sides.items()}

    return rates
