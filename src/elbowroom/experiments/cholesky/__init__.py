"""The Cholesky factorization on a grid of processes: how complete broadcasts are when the data are ready, and
what each tree is worth (Swartvagher 2022, section 4.4.2, Figs. 4.9 to 4.12).
"""

from __future__ import annotations

from elbowroom.experiments.common.factorizations import experiment_of
from elbowroom.experiments.common.factorizations.points import FactorizationKeys

EXPERIMENT = experiment_of(
    "cholesky",
    "How fast is a Cholesky factorization with each tree of broadcasts, and how many are complete?",
    FactorizationKeys,
)
