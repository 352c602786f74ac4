"""What points run, a file for each workload; importing the package makes them known (points/point.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from elbowroom.points.accesses import ExtraneousAccesses
from elbowroom.points.broadcasts import Forwarding
from elbowroom.points.calls import CallBesideComputation
from elbowroom.points.factorizations import FactorizationProgram
from elbowroom.points.gpu import GpuCase
from elbowroom.points.kernel import KernelBesideMessages
from elbowroom.points.matrices import MatrixProgram
from elbowroom.points.point import Workload
from elbowroom.points.program import AppProgram, RuntimeProgram
from elbowroom.points.steps import ApplicationSteps, Losses

__all__ = [
    "AppProgram",
    "ApplicationSteps",
    "CallBesideComputation",
    "ExtraneousAccesses",
    "FactorizationProgram",
    "Forwarding",
    "GpuCase",
    "KernelBesideMessages",
    "Losses",
    "MatrixProgram",
    "RuntimeProgram",
    "running",
]


class _Running(Protocol):
    @property
    def workload(self) -> Workload: ...


_Item = TypeVar("_Item", bound=_Running)
_Member = TypeVar("_Member", bound=Workload)


def running(items: Iterable[_Item], member: type[_Member]) -> list[tuple[_Item, _Member]]:
    """The points or results that run a workload of an experiment's own, each with it."""
    return [(item, item.workload) for item in items if isinstance(item.workload, member)]
