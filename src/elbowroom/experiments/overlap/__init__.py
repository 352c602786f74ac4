"""Messages beside a kernel: how much of a ping-pong or an exchange with neighbours is hidden, by which policy
of progress, and what that costs.
"""

from __future__ import annotations

from elbowroom.experiments.common.calls import experiment_of
from elbowroom.experiments.common.calls.points import MessageKeys

EXPERIMENT = experiment_of(
    "overlap",
    "Does a message proceed while the ranks compute, what makes it, and what does that cost?",
    MessageKeys,
)
