"""What other modules need of a run folder (`Run`), which itself imports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from elbowroom.machine.topology import Machine
    from elbowroom.results.result import Finding, PointResult, Verdict
    from elbowroom.store.folder import Manifest


class MeasuredRun(Protocol):
    """What models are fitted to and compared with."""

    @property
    def path(self) -> Path:
        """The run folder."""

    @property
    def manifest(self) -> Manifest:
        """What the run was asked for and where it ran."""

    @property
    def machine(self) -> Machine:
        """The machine of the run."""

    def points(self) -> list[PointResult]:
        """One result per point."""


class JudgedRun(MeasuredRun, Protocol):
    """What the answer of a run is made of."""

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the run, and what it says."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the data."""
