"""How far off FLOW is: what its intervals hold, by side and by noise."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.models.curves import Curves, Situation
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.least_squares import LEAST_DISCREPANCY, by_side, linear
from elbowroom.models.flow.model import bands
from elbowroom.models.flow.part import Discrepancies

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return runpy.run_path(str(BENCHMARKS / "intervals.py"))
    finally:
        sys.path.remove(str(BENCHMARKS))


def sides_of(local: float, remote: float, noise: float) -> Discrepancies:
    """Of residuals that scatter by so much more than the noise on local and on remote data."""
    rng = np.random.default_rng(1)
    stream = np.tile(np.arange(4), 200)
    is_local = np.repeat([True, False], 400)
    own = np.where(stream == 1, 0.0, np.where(is_local, local, remote))
    missed = np.hypot(noise, own) * rng.standard_normal(800)
    found = linear(missed, np.zeros((800, 1)), stream, np.ones(1))
    return by_side(found, stream, is_local, ~is_local)


def test_a_side_that_the_model_follows_worse_gets_a_larger_discrepancy() -> None:
    sides = sides_of(local=0.01, remote=0.05, noise=0.005)
    assert sides.local[2] == pytest.approx(0.01, rel=0.3)
    assert sides.remote[2] == pytest.approx(0.05, rel=0.3)


def test_both_sockets_together_are_followed_no_better_than_either() -> None:
    sides = sides_of(local=0.01, remote=0.05, noise=0.005)
    for both, local, remote in zip(sides.both, sides.local, sides.remote, strict=True):
        assert both >= max(local, remote)


def test_noise_does_not_hide_that_a_model_is_never_exact() -> None:
    sides = sides_of(local=0.0, remote=0.0, noise=0.03)
    assert all(one >= least for one, least in zip(sides.local, LEAST_DISCREPANCY, strict=True))


def test_intervals_are_wider_where_both_sockets_compute(benchmark: dict[str, Any]) -> None:
    case = benchmark["Case"]("henri", 1000, 0.01, 0)
    curves: Curves = benchmark["calibrations"](case)[2][1]
    fitted = flow_fit.fit(curves)
    alike = msgspec.structs.replace(fitted, discrepancies=None)
    asked = [Situation(comp_node=0, comm_node=0, n=6, n_other=5)]
    (own,), (same,) = (bands(one, curves.shape, asked)[2][2] for one in (fitted, alike))
    assert own > same


def test_intervals_hold_about_nine_of_ten_truths_of_machines_moved_at_random(
    benchmark: dict[str, Any],
) -> None:
    cases = [
        benchmark["Case"](name, variant, 0.01, 0)
        for name in ("henri", "bora", "pyxis")
        for variant in (2000, 2001)
    ]
    found = [item for case in cases for item in benchmark["solve"](case, ("points",))]
    assert 80 <= benchmark["share"](found) <= 98


def test_machines_with_other_numbers_are_other_machines(benchmark: dict[str, Any]) -> None:
    at = Situation(comp_node=0, comm_node=0, n=9)
    one, same, other = (benchmark["machine_of"]("henri", n).streams(at) for n in (1, 1, 2))
    assert one == same
    assert one != other
