"""The QR factorization on a grid of processes: how complete broadcasts are when the data are ready, and what
each tree is worth (Swartvagher 2022, section 4.4.3, Figs. 4.13 and 4.14).
"""

from __future__ import annotations

from elbowroom.experiments.common.factorizations import experiment_of
from elbowroom.experiments.common.factorizations.points import QrKeys

EXPERIMENT = experiment_of(
    "qr",
    "How fast is a QR factorization with each tree of broadcasts, and how many are complete?",
    QrKeys,
)
