"""How sure a run is of interference: in made-up data, and over thousands of runs without any."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.results.family import adjusted, main_point, side_chances
from elbowroom.results.grades import SMALL, GradedPoint, assess, loss_text, sentence
from elbowroom.results.result import LostShare, PointResult
from elbowroom.stats.interval import Kept, LogMean, Side, Summary
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval
from sampled import only, rows

BASE = only(rows())
ALONE = Summary(median=1.0, d1=1.0, d9=1.0, low=1.0, high=1.0, count=5, unit="MB/s")


def side(logs: np.ndarray) -> Side:
    """A side that kept that much in each repetition."""
    ends = rank_interval(logs)
    low, high = (None, None) if ends is None else (math.exp(ends[0]), math.exp(ends[1]))
    log = LogMean(
        mean=float(logs.mean()), error=float(logs.std(ddof=1)) / math.sqrt(logs.size), count=logs.size
    )
    kept = Kept(value=math.exp(pseudo_median(logs)), low=low, high=high, log=log)
    return Side(alone=ALONE, together=ALONE, kept=kept)


def points(logs: np.ndarray) -> list[PointResult]:
    """Points of which both sides kept that much: shape (points, 2, repetitions); the last one is the main."""
    return [
        msgspec.structs.replace(
            BASE, id=f"p{size}", size=10**size, comp=side(of_point[0]), comm=side(of_point[1])
        )
        for size, of_point in enumerate(logs, start=1)
    ]


def steady(kept: float, spread: float = 0.01, repetitions: int = 10) -> np.ndarray:
    """Repetitions that agree but for a known scatter."""
    return math.log(kept) + spread * np.linspace(-1, 1, repetitions)


def run_of(*kepts: tuple[float, float], spread: float = 0.01, repetitions: int = 10) -> GradedPoint:
    """The grade of points that kept that much."""
    logs = np.array([[steady(kept, spread, repetitions) for kept in pair] for pair in kepts])
    assessment = assess(points(logs))
    assert assessment is not None
    return assessment


def test_a_sure_loss_of_the_main_point_is_yes() -> None:
    found = run_of((1.0, 1.0), (0.69, 0.9))
    assert (found.grade, found.point.id, found.losing) == ("yes", "p2", ("comp", "comm"))
    assert "loses 31.0 % (" in sentence(found) or "loses 31 % (" in sentence(found)
    assert "keeps" not in sentence(found)


def test_a_sure_loss_elsewhere_is_yes_and_names_the_point_that_loses_most() -> None:
    found = run_of((1.0, 0.6), (0.8, 1.0), (1.0, 1.0))
    assert (found.grade, found.point.id, found.losing) == ("yes", "p1", ("comm",))


def test_a_loss_that_only_the_main_points_own_interval_shows_is_likely() -> None:
    found = run_of(*[(1.0, 1.0)] * 11, (0.7, 1.0), spread=0.65, repetitions=10)
    assert found.grade == "likely"
    assert "This run would have seen a loss of" in sentence(found)


def test_sides_that_certainly_lose_less_than_the_smallest_visible_effect_are_no() -> None:
    found = run_of((1.0, 1.0), (0.99, 1.0))
    assert found.grade == "no"
    assert found.visible == pytest.approx(0.05)
    assert sentence(found).startswith("No interference of 5 % or more was measured here: TRIAD")


def test_a_noisy_run_gives_a_bound_instead_of_nothing() -> None:
    found = run_of((1.0, 1.0), (1.0, 0.97), spread=0.2)
    assert found.grade == "at most"
    assert found.bound is not None
    assert sentence(found).startswith(f"Neither side loses more than {100 * found.bound:.0f} % here")
    assert found.visible is not None
    assert found.visible > SMALL


def test_a_run_that_is_too_noisy_for_a_bound_says_what_it_would_have_seen() -> None:
    found = run_of((1.0, 1.0), spread=2.0)
    assert found.grade == "cannot say"
    assert "This run would have seen a loss of" in sentence(found)


def test_two_repetitions_have_no_bound_and_three_have_one() -> None:
    two, three = (run_of((1.0, 1.0), spread=0.01, repetitions=count) for count in (2, 3))
    assert (two.grade, two.bound) == ("cannot say", None)
    assert three.bound is not None
    assert three.grade in ("no", "at most")


def test_another_side_that_seems_to_lose_makes_no_a_bound() -> None:
    logs = np.array([[steady(1.0)] * 2 for _ in range(12)])
    logs[0, 0] = steady(0.8, 0.4)
    found = assess(points(logs))
    assert found is not None
    assert found.grade == "at most"
    assert "Of 24 sides that lose nothing, one may look so by chance" in sentence(found)


def test_an_untrusted_run_is_never_certain() -> None:
    assert run_of((0.5, 0.5)).doubted().grade == "likely"
    assert run_of((1.0, 1.0)).doubted().grade == "at most"


def test_a_loss_has_a_decimal_where_its_interval_is_narrow() -> None:
    assert loss_text(LostShare(loss=0.31, low=0.24, high=0.38)) == "31 % (24 to 38 %)"
    assert loss_text(LostShare(loss=-0.0004, low=-0.004, high=0.003)) == "0.0 % (-0.4 to 0.3 %)"
    assert loss_text(LostShare(loss=0.31)) == "31 % (no interval)"


@given(st.dictionaries(st.integers(0, 20), st.floats(1e-9, 1), min_size=1, max_size=12))
def test_corrected_probabilities_keep_their_order_and_never_shrink(chances: dict[int, float]) -> None:
    corrected = adjusted(chances)
    assert all(corrected[key] >= chances[key] for key in chances)
    assert list(corrected.values()) == sorted(corrected.values())
    single = adjusted(chances, dict.fromkeys(chances, 3.0))
    assert single == pytest.approx(corrected)


@settings(max_examples=30)
@given(st.integers(3, 10), st.integers(1, 12), st.sampled_from([2, 4, 100]), st.integers(0, 2**32 - 1))
def test_the_main_point_is_chosen_without_looking_at_values(
    repetitions: int, count: int, freedom: int, seed: int
) -> None:
    made = points(np.random.default_rng(seed).standard_t(freedom, (count, 2, repetitions)))
    main = main_point(made)
    assert main is not None
    assert main.id == f"p{count}"
    assert set(side_chances(made)) == {(item.id, name) for item in made for name in ("comp", "comm")}


@pytest.mark.parametrize("repetitions", [3, 5, 10])
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "half speed"])
def test_without_a_loss_yes_is_rare_and_a_third_is_found(noise: str, repetitions: int) -> None:
    """A small version of benchmarks/quick_grades.py --simulate: 7 points, 200 runs."""
    rng = np.random.default_rng([repetitions, len(noise)])

    def phases() -> np.ndarray:
        shape = (7, 2, repetitions)
        if noise == "normal":
            return rng.normal(0, 0.05, shape)
        if noise == "heavy tails":
            return 0.05 * rng.standard_t(2, shape)
        return rng.normal(0, 0.03, shape) - 0.69 * (rng.random(shape) < 0.2)

    grades = [assess(points(phases() - phases())) for _ in range(200)]
    assert sum(item is not None and item.grade == "yes" for item in grades) <= 0.05 * 200
    if noise == "normal" and repetitions >= 5:
        lost = [assess(points(phases() - phases() + math.log(0.67))) for _ in range(50)]
        assert sum(item is not None and item.grade in ("yes", "likely") for item in lost) >= 45
