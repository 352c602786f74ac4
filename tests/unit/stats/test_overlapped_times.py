"""Overlap, OSU's figure and the fraction of ideal of one pair of times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.stats.overlapped_times import OverlappedTimes

TIMES = st.floats(min_value=1e-3, max_value=1e3)


def test_perfect_overlap_is_one() -> None:
    times = OverlappedTimes(comp=4, comm=1, together=4)
    assert (times.overlap, times.osu_overlap, times.fraction_of_ideal) == (1, 1, 1)


def test_overlap_that_costs_is_below_zero_and_osu_clamps_it() -> None:
    times = OverlappedTimes(comp=4, comm=1, together=6)
    assert (times.overlap, times.osu_overlap, times.fraction_of_ideal) == (-1, 0, -1)


def test_a_measured_sequence_is_what_overlap_is_compared_with() -> None:
    times = OverlappedTimes(comp=4, comm=1, together=4, sequence=6)
    assert times.fraction_of_ideal == 1
    assert times.overlap == 2


@pytest.mark.parametrize(("comp", "comm"), [(0.0, 1.0), (1.0, 0.0)])
def test_without_a_side_there_is_no_overlap(comp: float, comm: float) -> None:
    times = OverlappedTimes(comp=comp, comm=comm, together=1.0)
    assert times.overlap is None
    assert times.fraction_of_ideal is None


@given(comp=TIMES, comm=TIMES, share=st.floats(min_value=-1, max_value=1))
def test_all_agree_where_communication_is_shorter(comp: float, comm: float, share: float) -> None:
    longer, shorter = max(comp, comm), min(comp, comm)
    times = OverlappedTimes(comp=longer, comm=shorter, together=longer + shorter * (1 - share))
    assert times.overlap == pytest.approx(share, abs=1e-6)
    assert times.fraction_of_ideal == pytest.approx(share, abs=1e-6)
    assert times.osu_overlap == pytest.approx(max(0.0, share), abs=1e-6)
