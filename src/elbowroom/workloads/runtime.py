"""The program `runtime`: messages through StarPU-MPI, or by MPI beside StarPU's polling workers."""

from __future__ import annotations

from typing import ClassVar, Literal

from elbowroom.plan.workload import OwnContrast
from elbowroom.workloads.program import AppProgram, Build


class RuntimeProgram(AppProgram, frozen=True, kw_only=True, tag_field="name", tag="runtime"):
    """Messages through a runtime system (`overhead`), or by MPI beside its workers (`polling`)."""

    name: ClassVar[str] = "runtime"

    task: Literal["overhead", "polling"]
    build: Build = "starpu"

    @property
    def title(self) -> str:
        """Task and build: `polling x32 (starpu)`, `paused (starpu)`."""
        if self.backoff == 0:
            return f"paused ({self.build})"
        return f"{self.task}{'' if self.backoff is None else f' x{self.backoff}'} ({self.build})"

    @property
    def contrast(self) -> OwnContrast | None:
        """Polling workers beside paused ones, messages through StarPU beside MPI's."""
        if self.task == "overhead":
            return OwnContrast("runtime overhead", "messages through StarPU", "through MPI")
        if not self.backoff:
            return None
        return OwnContrast(
            "polling", f"StarPU's workers, which poll (backoff {self.backoff}),", "beside paused workers"
        )
