"""The model of what trees are worth to a factorization."""

from __future__ import annotations

from random import Random

import pytest

from elbowroom.broadcast.factorizations import FactorizationBounds
from elbowroom.broadcast.gain import MODELS, GainModel, fit_gain_model


def _bounds(random: Random) -> FactorizationBounds:
    return FactorizationBounds(
        work=random.uniform(0.1, 3), links=random.uniform(0.1, 3), path=random.uniform(0.1, 3)
    )


def test_the_fit_finds_the_model_that_made_the_times() -> None:
    random, planted = Random(1), GainModel(work=1.0, links=1.7, path=1.1, power=2.5)
    bounds = [_bounds(random) for _ in range(40)]
    fitted = fit_gain_model(bounds, [planted.seconds(one) for one in bounds])
    assert fitted == pytest.approx(planted, rel=1e-4)


@pytest.mark.parametrize("task", ["cholesky", "qr"])
def test_a_tree_that_changes_no_bound_gains_nothing_and_one_that_frees_links_gains(task: str) -> None:
    model = MODELS[task]
    busy = FactorizationBounds(work=1, links=5, path=1)
    assert model.gain(busy, busy) == 1
    assert model.gain(busy, FactorizationBounds(work=1, links=1, path=1)) > 2
