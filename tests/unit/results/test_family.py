"""Holm's procedure over the sides of a run."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.results.family import chance, is_uncertain, judge_sides, losing_sides, rejected, without_chance
from elbowroom.results.quiet import verdict
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, Side, Summary
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval
from sampled import only, rows

probabilities = st.dictionaries(st.integers(0, 30), st.floats(0, 1), max_size=20)


@given(probabilities)
def test_no_more_are_found_than_one_by_one_and_no_fewer_than_by_bonferroni(chances: dict[int, float]) -> None:
    found = set(rejected(chances))
    assert found <= {key for key, value in chances.items() if value <= 0.05}
    assert found >= {key for key, value in chances.items() if value <= 0.05 / len(chances)}


@given(probabilities, st.floats(0, 1))
def test_a_further_side_never_adds_another(chances: dict[int, float], more: float) -> None:
    assert set(rejected({**chances, -1: more})) - {-1} <= set(rejected(chances))


def test_the_chance_of_an_interval_that_ends_at_one_is_that_of_the_interval() -> None:
    kept = Kept(value=0.9, low=0.81, high=1.0)
    assert abs(chance(kept, 20) - 0.05) < 1e-9
    assert chance(Kept(value=0.9), 20) == 0.0


def test_of_twelve_sides_that_lose_nothing_one_is_found_in_about_one_run_of_twenty() -> None:
    rng = np.random.default_rng(7)
    for repetitions in (5, 10, 40):
        wrong = alone = 0
        for _ in range(400):
            chances = {}
            for side in range(12):
                values = rng.normal(0, 0.1, repetitions)
                low, high = rank_interval(values) or (0.0, 0.0)
                value, low, high = np.exp([pseudo_median(values), low, high]).tolist()
                kept = Kept(value=value, low=low, high=high)
                chances[side] = chance(kept, repetitions)
                alone += kept.high is not None and kept.high < 1
            wrong += bool(rejected(chances))
        assert wrong / 400 < 0.1, repetitions
        assert alone / 400 > 0.2


def sides(*keeps: Kept) -> list[PointResult]:
    """A point for each, whose communication keeps that much in seven repetitions."""
    alone = Summary(median=100.0, d1=99.0, d9=101.0, low=99.0, high=101.0, count=7, unit="MB/s")
    return [
        msgspec.structs.replace(
            only(rows()), id=f"p{number}", comp=Side(), comm=Side(alone=alone, together=alone, kept=kept)
        )
        for number, kept in enumerate(keeps)
    ]


UNSURE = Kept(value=0.85, low=0.73, high=0.99)
SURE = Kept(value=0.5, low=0.48, high=0.52)
WHOLE = Kept(value=1.0, low=0.98, high=1.02)


def finding(*points: str) -> Finding:
    return Finding(key="cores", level="interference", text="The network suffers.", points=points)


def test_one_side_of_a_dozen_whose_interval_just_ends_below_one_is_no_interference() -> None:
    [found] = without_chance([finding("p0", "p1")], sides(UNSURE, *[WHOLE] * 11))
    assert found.level == "note"
    assert is_uncertain(found)
    assert found.text.startswith(
        "The network suffers. Of 12 sides that lose nothing, one may look so by chance"
    )
    assert verdict([found], []).interference is None


def test_the_only_side_of_a_run_that_is_measured_needs_no_correction() -> None:
    assert without_chance([finding("p0")], sides(UNSURE)) == (finding("p0"),)


def test_a_sure_loss_stays_interference_among_any_number_of_sides() -> None:
    points = sides(UNSURE, SURE, *[WHOLE] * 30)
    assert without_chance([finding("p0", "p1")], points) == (finding("p0", "p1"),)


def test_a_finding_that_rests_on_no_side_of_its_points_stays() -> None:
    assert without_chance([finding("p1")], sides(UNSURE, *[WHOLE] * 11)) == (finding("p1"),)
    assert without_chance([finding()], sides(UNSURE, *[WHOLE] * 11)) == (finding(),)


def test_the_findings_of_a_run_and_a_study_take_the_same_sides_for_losing() -> None:
    points = sides(UNSURE, SURE, Kept(value=0.9, low=0.87, high=0.93), *[WHOLE] * 9)
    judged = judge_sides(points, "comm")
    sure = {point.id for point, judgement in zip(points, judged, strict=True) if judgement == "confirmed"}
    assert sure == {point for point, _ in losing_sides(points)}
    assert judged[0] == "undecided"
    assert judged[-1] == "refuted"
