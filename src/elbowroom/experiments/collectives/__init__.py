"""Collectives beside a kernel: how much is hidden, by which policy of progress, and what that costs."""

from __future__ import annotations

from elbowroom.experiments.common.calls import experiment_of
from elbowroom.experiments.common.calls.points import CollectiveKeys

EXPERIMENT = experiment_of(
    "collectives",
    "Does a collective proceed while the ranks compute, what makes it, and what does that cost?",
    CollectiveKeys,
)
