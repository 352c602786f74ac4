"""Fast forms of simple functions over times: the same results as the simple ones."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.diagnose.bins import count_until
from elbowroom.diagnose.slowdown import first_decile
from elbowroom.profile.matching import dense
from elbowroom.profile.rank_file import RECORD, columns_of

TIMES = st.lists(st.integers(-50, 50), max_size=40)
VALUES = st.one_of(TIMES, st.lists(st.integers(-(1 << 40), 1 << 40), max_size=20))


@given(TIMES, TIMES)
def test_edges_before_each_time_are_those_that_a_search_finds(edges: list[int], time: list[int]) -> None:
    ordered, times = np.sort(np.array(edges, np.int64)), np.sort(np.array(time, np.int64))
    assert (count_until(ordered, times) == np.searchsorted(ordered, times, side="right")).all()
    assert (count_until(ordered, times, before=True) == np.searchsorted(ordered, times, side="left")).all()


@given(VALUES)
def test_dense_numbers_are_places_among_the_different_values(values: list[int]) -> None:
    given_ = np.array(values, np.int64)
    assert (dense(given_) == np.unique(given_, return_inverse=True)[1]).all()


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1 << 45)), max_size=60))
def test_the_first_decile_of_a_place_is_that_of_its_sorted_lengths(spans: list[tuple[int, int]]) -> None:
    place, length = (np.array([span[at] for span in spans], np.int64) for at in (0, 1))
    for one, decile in zip(place, first_decile(place, length), strict=True):
        own = np.sort(length[place == one])
        assert decile == own[len(own) // 10]


def test_columns_of_more_records_than_a_block_are_their_fields() -> None:
    records = np.zeros(40_000, RECORD)
    records["begin"], records["kind"] = np.arange(len(records)), np.arange(len(records)) % 12
    columns = columns_of(records)
    assert set(columns) == set(RECORD.names or ())
    assert all((columns[name] == records[name]).all() for name in columns)
