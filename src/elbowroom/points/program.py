"""Programs of apps/ that answer as the probe does (docs/reference/protocol.md); among them `runtime`, which
sends messages through StarPU-MPI, or by MPI beside StarPU's polling workers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Literal

import msgspec

from elbowroom.machine.topology import Machine
from elbowroom.points.point import USUAL, Facts, Needs, OwnContrast, Point, Steady, Times, register
from elbowroom.points.probe import FIRST_TOUCH, START, ProbeWorkload, placements, unit_times
from elbowroom.points.unit import Startup

START_UP = 120.0
"""Seconds that a program may take before its `hello` record: it makes and distributes matrices first."""


@register
class AppProgram(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    """A program and its task, in one of its builds, with so many ranks.

    Matrices are of `order`, in blocks of `block`, and take `iterations` at most (0: none, or chosen);
    `backoff` is the most nops between two polls of StarPU's workers (0: they are paused).
    """

    key: ClassVar[str] = "program"
    facts: ClassVar[Facts] = Facts(program_facts=True, duration="time", order="last")
    virtual_refusal: ClassVar[str] = "a virtual machine runs no programs: measured on a real one"

    name: ClassVar[str]
    """The tag of the members, under `name` in their plain data."""

    task: str
    build: str
    ranks: int = 2
    order: int = 0
    block: int = 0
    iterations: int = 0
    backoff: int | None = None

    def id(self, point: Point) -> str:
        parts = [self.task, self.build, f"n{point.n}", f"{self.ranks}ranks"]
        parts += [f"{point.size}B", point.metric] if point.size else []
        parts += [f"comp{point.comp_node}", f"comm{point.comm_node}", f"core{point.comm_core}"]
        for name in ("order", "block", "iterations"):
            if getattr(self, name):
                parts.append(f"{name}{getattr(self, name)}")
        if self.backoff is not None:
            parts.append(f"backoff{self.backoff}")
        return "-".join(parts)

    @property
    def title(self) -> str:
        """Task and build: `gemm (starpu)`."""
        return f"{self.task} ({self.build})"

    @property
    def program(self) -> str:
        return self.name

    @property
    def needs(self) -> Needs:
        return Needs(starpu=self.build == "starpu")

    def rank_count(self, point: Point, machine: Machine) -> int:
        return self.ranks

    def group(self, point: Point, ranks: int) -> tuple[Hashable, ...]:
        """Points that differ in nothing but their messages."""
        return (
            self,
            point.comp_cores,
            point.comm_cores,
            point.peer_cores,
            point.placements,
            point.comp_node,
            point.comm_node,
        )

    def startup(self, point: Point) -> Startup:
        settings = startup_settings(point, msgspec.to_builtins(self))
        return Startup(name=self.name, ranks=self.ranks, settings=settings, patience=START_UP)


def startup_settings(point: Point, program: dict[str, Any]) -> dict[str, Any]:
    """What a program of apps/ is, where its processes compute and communicate, and whether two threads on one
    core are wanted (docs/reference/protocol.md).
    """
    computing = [core for place in point.placements for core in place.comp_cores]
    return {
        "program": program,
        "comp_cores": list(point.comp_cores),
        "comm_cores": list(point.comm_cores or (point.comm_core,)),
        "peer_cores": list(point.peer_cores),
        "comp_node": point.comp_node,
        "comm_node": point.comm_node,
        "placements": placements(point),
        "scheduling": point.scheduling or len(set(computing)) < len(computing),
    }


class SolverProgram(AppProgram, msgspec.Struct, frozen=True, kw_only=True):
    """A program whose phases are whole solutions of matrices, however long one takes."""

    @property
    def program(self) -> str:
        """An executable for each build (launch.build.APPLICATIONS)."""
        return f"{self.name}-{self.build}"

    @property
    def memory(self) -> float:
        """Bytes of all processes together."""
        raise NotImplementedError

    def phase_seconds(self, point: Point) -> float:
        """How long a solution usually takes on slow cores."""
        raise NotImplementedError

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """Messages alone are short beside computing. Each point starts the program and makes its matrices."""
        phases, phase = self.sequence(point, closing), self.phase_seconds(point)
        return unit_times(point, len(phases) - phases.count("B"), phase)._replace(
            patience=unit_times(point, len(phases), phase).patience,
            preparation={point.id: START + self.memory / FIRST_TOUCH},
        )


def cores_each(point: Point) -> float:
    """Computing cores that a process has for itself: those that several share are divided among them."""
    if not point.placements:
        return max(1, len(point.comp_cores))
    cores = {core for place in point.placements for core in place.comp_cores}
    return max(1, len(cores)) / len(point.placements)


class RuntimeProgram(AppProgram, frozen=True, kw_only=True, tag_field="name", tag="runtime"):
    """Messages through a runtime system (`overhead`), or by MPI beside its workers (`polling`)."""

    name: ClassVar[str] = "runtime"

    task: Literal["overhead", "polling"]
    build: Literal["openmp", "starpu"] = "starpu"
    scheduler: str = ""
    """StarPU's; its own default when empty."""

    def id(self, point: Point) -> str:
        return "-".join(filter(None, (super().id(point), self.scheduler)))

    @property
    def title(self) -> str:
        """Task and build: `polling x32 (starpu)`, `paused (starpu)`."""
        if self.backoff == 0:
            return f"paused ({self.build})"
        return f"{self.task}{'' if self.backoff is None else f' x{self.backoff}'} ({self.build})"

    @property
    def facts(self) -> Facts:  # type: ignore[override]
        """With its contrast: polling workers beside paused ones, messages through StarPU beside MPI's."""
        contrast = None
        if self.task == "overhead":
            contrast = OwnContrast("runtime overhead", "messages through StarPU", "through MPI")
        elif self.backoff:
            workers = f"StarPU's workers, which poll (backoff {self.backoff}),"
            contrast = OwnContrast("polling", workers, "beside paused workers")
        return msgspec.structs.replace(AppProgram.facts, contrast=contrast)
