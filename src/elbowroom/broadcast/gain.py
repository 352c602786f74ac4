"""What trees are worth to a factorization, without simulating it: from the least times of its workers, of its
busiest link, and of its longest chain of tasks and messages (question of Swartvagher 2022, section 4.5.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elbowroom.broadcast.factorizations import FactorizationBounds


class GainModel(NamedTuple):
    """Seconds of a factorization: the norm of order `power` of its least times, each by its factor."""

    work: float
    links: float
    path: float
    power: float

    def seconds(self, bounds: FactorizationBounds) -> float:
        """Of a factorization with those least times."""
        parts = (self.work * bounds.work, self.links * bounds.links, self.path * bounds.path)
        largest = max(parts)
        return largest * float(sum((part / largest) ** self.power for part in parts) ** (1 / self.power))

    def gain(self, without: FactorizationBounds, tree: FactorizationBounds) -> float:
        """How many times as fast the tree is as a message to each recipient."""
        return self.seconds(without) / self.seconds(tree)


def fit_gain_model(bounds: Sequence[FactorizationBounds], seconds: Sequence[float]) -> GainModel:
    """By least squares of the logarithms of the times."""
    from scipy.optimize import least_squares

    times = np.log(seconds)

    def errors(logarithms: np.ndarray) -> np.ndarray:
        model = GainModel(*np.exp(logarithms))
        return np.log([model.seconds(one) for one in bounds]) - times

    start = np.log([1.1, 1.1, 1.1, 3.0])
    return GainModel(*(float(value) for value in np.exp(least_squares(errors, start).x)))


MODELS: Mapping[str, GainModel] = {
    "cholesky": GainModel(work=0.418, links=1.6, path=1.02, power=1.9),
    "qr": GainModel(work=0.971, links=1.74, path=1.01, power=2.72),
}
"""By task: of `python benchmarks/broadcast_gain.py --fit --seed 101 --count 240`."""
