"""Comparing runs, with known truths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from elbowroom.points.point import Point
from elbowroom.results.comparison import ComparedRun, agreement, compare, values_of, worse
from elbowroom.results.points import results
from sampled import Row, point, rows, samples


def as_run(made: Sequence[Row], points: Sequence[Point] = (point(),)) -> ComparedRun:
    return ComparedRun(results=results(points, samples(made)), values=values_of(points, samples(made)))


def test_a_run_equals_itself() -> None:
    found = as_run(rows())
    changes = compare(found, found)
    assert {(c.side, c.phase) for c in changes} == {
        (side, phase) for side in ("comp", "comm") for phase in ("alone", "together", "kept")
    }
    assert all(c.better == "same" and not c.significant for c in changes)
    assert all(c.change == pytest.approx(0, abs=1e-3) for c in changes)
    assert agreement(changes) == 1


def test_more_of_a_rate_is_better_and_less_of_a_latency_is() -> None:
    a = as_run(rows(comm=(2.0, 4.0), unit="us"))
    b = as_run(rows(alone=120.0, comm=(1.0, 2.0), unit="us"))
    by = {(c.side, c.phase): c for c in compare(a, b)}
    assert by["comp", "alone"].better == "b"
    assert by["comp", "alone"].change == pytest.approx(0.2, abs=0.02)
    assert by["comm", "alone"].better == "b"
    assert by["comm", "alone"].change == pytest.approx(-0.5, abs=0.02)
    assert not by["comm", "alone"].higher_is_better
    assert by["comp", "kept"].better == "a"
    assert {change.side for change in worse(list(by.values()), 0.05)} == {"comp"}


def test_points_of_one_run_only_are_not_compared() -> None:
    assert compare(as_run(rows()), as_run(rows(), [point(7)])) == []


def test_a_change_within_the_noise_is_not_significant() -> None:
    a, b = as_run(rows(0, noise=0.1)), as_run(rows(0, alone=101, noise=0.1))
    assert not next(c for c in compare(a, b) if (c.side, c.phase) == ("comp", "alone")).significant


def test_a_sure_change_that_is_too_small_to_matter_is_not_claimed() -> None:
    a, b = as_run(rows(0, noise=0.0005)), as_run(rows(0, alone=100.5, noise=0.0005))
    small = next(c for c in compare(a, b) if (c.side, c.phase) == ("comp", "alone"))
    assert small.adjusted < 0.001
    assert not small.significant
    assert any(c.significant for c in compare(a, b, at_least=0.001))


def test_of_many_values_that_differ_by_chance_hardly_a_pair_of_runs_claims_one() -> None:
    """Sixty values a pair: without the false discovery rate nearly every pair would claim some."""
    points = [point(n) for n in range(1, 11)]
    claimed = raw = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pair = []
        for _ in range(2):
            made = [row for index in range(10) for row in rows(index, repetitions=7)]
            pair.append(as_run([(*r[:5], r[5] * rng.normal(1, 0.03), *r[6:]) for r in made], points))
        changes = compare(*pair)
        assert len(changes) == 60
        claimed += any(change.significant for change in changes)
        raw += any(change.p < 0.05 for change in changes)
    assert raw > 15
    assert claimed <= 3


def test_a_change_in_one_curve_is_found_among_many_values() -> None:
    points = [point(n) for n in range(1, 11)]
    a, b = ([row for index in range(10) for row in rows(index + start)] for start in (0, 10))
    b = [(row[0] - 10, *row[1:]) for row in b]
    b = [(*r[:5], r[5] * (0.97 if r[4] == "comp" and r[3] == "AB" else 1), *r[6:]) for r in b]
    found = [change for change in compare(as_run(a, points), as_run(b, points)) if change.significant]
    assert len(found) >= 15
    assert {change.side for change in found} == {"comp"}


def test_several_runs_are_compared_with_the_first() -> None:
    a, b = as_run(rows()), as_run(rows(alone=120.0))
    assert {change.run for change in compare(a, a, b) if change.significant} == {2}


def test_values_of_fewer_than_five_repetitions_are_not_compared() -> None:
    assert compare(as_run(rows(repetitions=4)), as_run(rows(repetitions=4))) == []
