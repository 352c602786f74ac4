"""The best pairing of applications."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.schedule.matrix import Array, Matrix
from elbowroom.schedule.pairing import (
    best_pairing,
    companion_bound,
    match,
    mean_of,
    parse_apart,
    random_mean,
)
from schedule_fixture import published_half, published_matrix

cells = st.floats(min_value=50, max_value=200)
matrices = st.integers(min_value=1, max_value=8).flatmap(
    lambda count: st.lists(
        st.lists(cells, min_size=count, max_size=count), min_size=count, max_size=count
    ).map(np.array)
)


def pairings(indices: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """All pairings of even numbers, and of odd ones with each of them left out."""
    if len(indices) % 2:
        for place in range(len(indices)):
            yield from pairings(indices[:place] + indices[place + 1 :])
        return
    if not indices:
        yield ()
        return
    for place in range(1, len(indices)):
        rest = indices[1:place] + indices[place + 1 :]
        yield from (((indices[0], indices[place]), *others) for others in pairings(rest))


def means(percent: Array) -> list[float]:
    return [mean_of(percent, pairs) for pairs in pairings(tuple(range(len(percent))))]


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_no_pairing_is_better(percent: Array) -> None:
    found = mean_of(percent, match(percent))
    assert found == pytest.approx(min(means(percent)), rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_the_expectation_of_a_random_pairing_is_exact(percent: Array) -> None:
    assert random_mean(percent) == pytest.approx(float(np.mean(means(percent))), rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(matrices)
def test_no_pairing_is_below_the_bound(percent: Array) -> None:
    assert companion_bound(percent) <= min(means(percent)) * (1 + 1e-9)


def test_the_published_matrix_has_its_published_answers() -> None:
    found = best_pairing(published_matrix(), half=published_half())
    assert {frozenset(pair) for pair in found.pairs} == {
        frozenset(pair) for pair in (("IS", "MG"), ("FT", "LU"), ("CG", "EP"), ("BT", "SP"))
    }
    assert found.mean == pytest.approx(91.6, abs=0.05)
    assert found.random == pytest.approx(93.8, abs=0.05)
    assert found.half_cores == pytest.approx(91.06, abs=0.01)
    assert found.bound == pytest.approx(91.05, abs=0.01)
    assert found.alone == ()


def test_one_of_an_odd_number_stays_alone() -> None:
    whole = published_matrix()
    matrix = Matrix(names=whole.names[:7], percent=tuple(row[:7] for row in whole.percent[:7]))
    found = best_pairing(matrix)
    assert len(found.pairs) == 3
    assert len(found.alone) == 1


def test_pairs_that_are_kept_apart_do_not_share() -> None:
    found = best_pairing(published_matrix(), apart=[("EP", "CG"), ("LU", "FT")])
    assert ("CG", "EP") in found.apart
    assert not {("CG", "EP"), ("FT", "LU")} & set(found.pairs)
    assert len(found.pairs) == 4
    assert found.mean > best_pairing(published_matrix()).mean


def test_a_slowdown_beyond_the_limit_keeps_a_pair_apart() -> None:
    matrix = published_matrix()
    found = best_pairing(matrix, limit=100.4)
    for a, b in found.pairs:
        assert max(matrix.slowdown(a, companion=b), matrix.slowdown(b, companion=a)) <= 1.004
    assert ("CG", "SP") in found.apart


def test_all_stay_alone_where_none_may_share() -> None:
    found = best_pairing(published_matrix(), limit=50)
    assert found.pairs == ()
    assert found.mean == 100
    assert found.bound == 100


def test_pairs_that_lose_together_are_named() -> None:
    assert best_pairing(published_matrix()).losing == (("EP", "LU"),)


def test_as_many_as_possible_share_even_where_they_lose() -> None:
    """The question is who shares with whom; that a pair loses is said in `losing`."""
    found = best_pairing(Matrix(names=("A", "B"), percent=((100, 150), (160, 100))))
    assert found.pairs == (("A", "B"),)
    assert found.losing == (("A", "B"),)


def test_an_application_to_keep_apart_must_be_in_the_matrix() -> None:
    with pytest.raises(UsageError, match=r"apart 'XX': is not in the matrix"):
        best_pairing(published_matrix(), apart=[("CG", "XX")])


def test_pairs_to_keep_apart_are_read_from_text() -> None:
    assert parse_apart("CG:CG, FT:IS") == (("CG", "CG"), ("FT", "IS"))


@pytest.mark.parametrize("text", ["CG", "CG:", ":CG", "CG:FT,", "CG:FT:IS"])
def test_other_texts_are_no_pairs(text: str) -> None:
    with pytest.raises(UsageError, match="is not a pair"):
        parse_apart(text)
