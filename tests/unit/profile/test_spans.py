"""Spans of time, against what a count of small cells says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.profile.spans import amounts, levels, union

END = 40
SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, END), st.integers(0, 9)).map(
        lambda one: (one[0], one[1], min(END, one[1] + one[2]))
    ),
    min_size=1,
    max_size=30,
)


def columns(spans: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    return (
        np.array([one[0] for one in spans]),
        np.array([float(one[1]) for one in spans]),
        np.array([float(one[2]) for one in spans]),
    )


def cells(spans: list[tuple[int, int, int]], group: int) -> np.ndarray[Any, Any]:
    """How many spans of a group are in each cell of length 1."""
    count = np.zeros(END)
    for own, begin, end in spans:
        if own == group:
            count[begin:end] += 1
    return count


@given(SPANS, st.integers(0, END), st.integers(0, END))
def test_a_union_covers_the_cells_of_its_spans(spans: list[tuple[int, int, int]], a: int, b: int) -> None:
    a, b = min(a, b), max(a, b)
    joined = union(*columns(spans))
    for group in range(4):
        got = joined.covered(np.array([group]), np.array([float(a)]), np.array([float(b)]))
        assert got[0] == pytest.approx((cells(spans, group)[a:b] > 0).sum())


@given(SPANS)
def test_levels_count_the_cells_with_so_many_spans(spans: list[tuple[int, int, int]]) -> None:
    _, begin, end = columns(spans)
    count = sum(cells(spans, group) for group in range(3))
    got = levels(begin, end, float(END), 5)
    assert got.tolist() == pytest.approx([(np.minimum(count, 5) == n).sum() for n in range(6)])


@given(SPANS)
def test_amounts_are_those_of_the_cells(spans: list[tuple[int, int, int]]) -> None:
    _, begin, end = columns(spans)
    expected = np.zeros(END)
    for _, first, last in spans:
        if last > first:
            expected[first:last] += 6.0 / (last - first)
        else:
            expected[min(first, END - 1)] += 6.0
    got = amounts(begin, end, np.full(len(spans), 6.0), np.arange(END + 1.0))
    assert got.tolist() == pytest.approx(expected.tolist(), abs=1e-9)


def test_nothing_covers_nothing() -> None:
    none = np.zeros(0)
    joined = union(none.astype(int), none, none)
    assert joined.covered(np.array([0]), np.array([0.0]), np.array([5.0])).tolist() == [0.0]
    assert levels(none, none, 2.0, 1).tolist() == [2.0, 0.0]
