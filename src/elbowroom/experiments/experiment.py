"""What every experiment is: how a plan becomes points, and what its results say and look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elbowroom.draw.figure import Figure
from elbowroom.machine.topology import Machine
from elbowroom.plan.point import Expansion
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult


@dataclass(frozen=True)
class Experiment:
    """One experiment; its file declares it as `EXPERIMENT` and is found by its name.

    `expand` gives points and notes (n/a with the reason); `findings` says in words and numbers what the
    results show; `figures` draws them with the paper's conventions. All three are pure.
    """

    name: str
    question: str
    expand: Callable[[Plan, Machine], Expansion]
    findings: Callable[[Sequence[PointResult], Machine], tuple[Finding, ...]]
    figures: Callable[[Sequence[PointResult], Machine], tuple[Figure, ...]]
