"""The time left that is shown: recorded and random timings are played again."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from elbowroom.measure.campaign import measured_seconds
from elbowroom.progress import SLACK, TimeLeft
from elbowroom.store.journal import read_journal

RECORDED = Path(__file__).parents[1] / "data" / "quick" / "samples.jsonl"
LATER = 1.02
"""Ends are compared to a fiftieth."""


def shown(estimates: Sequence[float], seconds: Sequence[float]) -> Iterator[tuple[float, float, float]]:
    """Time, seconds left as shown and seconds more than before, at each second and after each part."""
    left = TimeLeft(sum(estimates), len(estimates), 0.0)
    ends = list(itertools.accumulate(seconds))
    beats = [float(second) for second in range(min(500, int(ends[-1]) + 1))]
    parts = dict(enumerate(estimates))
    done = 0
    for now in sorted({*ends, *beats}):
        while done < len(ends) and ends[done] <= now:
            left.step(parts[done], ends[done])
            done += 1
        value, more = left.look(now)
        assert value is not None
        yield now, value, more


def check(estimates: Sequence[float], seconds: Sequence[float]) -> list[float]:
    """The end that is shown never moves later by more than a tenth of the time without a word, and the time
    left never grows without one; how many seconds more were said, each time.
    """
    earliest, before = float("inf"), float("inf")
    grown = []
    for now, left, more in shown(estimates, seconds):
        if more:
            earliest = before = float("inf")
            grown.append(more)
        assert left <= before + 1e-9
        assert now + left <= earliest * (1 + SLACK) * LATER + 1e-9
        before, earliest = left, min(earliest, now + left)
    return grown


TIMES = st.lists(st.floats(0.01, 20), min_size=1, max_size=60)


@given(TIMES, st.data())
def test_an_end_moves_later_only_with_a_word(estimates: list[float], data: st.DataObject) -> None:
    slow = st.lists(st.floats(0.2, 8), min_size=len(estimates), max_size=len(estimates))
    factors = data.draw(slow)
    check(estimates, [one * factor for one, factor in zip(estimates, factors, strict=True)])


@given(TIMES, st.floats(0.3, 1.0))
def test_nothing_is_said_where_all_goes_as_estimated_or_faster(estimates: list[float], factor: float) -> None:
    same = [sum(estimates) / len(estimates)] * len(estimates)
    assert check(same, [one * factor for one in same]) == []


@given(TIMES)
def test_at_the_end_nothing_is_left(estimates: list[float]) -> None:
    left = TimeLeft(sum(estimates), len(estimates), 0.0)
    for now, one in enumerate(estimates, 1):
        left.step(one, float(now))
    value, _ = left.look(float(len(estimates)))
    assert value == pytest.approx(0, abs=1e-6)


def test_a_machine_that_becomes_three_times_as_slow_is_said_a_few_times() -> None:
    said = check([1.0] * 100, [1.0] * 50 + [3.0] * 50)
    assert 1 <= len(said) <= 12
    assert sum(said) > 60


def test_a_recorded_run_is_played_again() -> None:
    """Each repetition is estimated to take as long as its point does on average; on another machine half and
    twice that.
    """
    times: dict[tuple[str, bool], list[float]] = {}
    entries = read_journal(RECORDED)[0]
    for entry in entries:
        times.setdefault((entry.point, entry.closing), []).append(measured_seconds(entry.record))
    seconds = [measured_seconds(entry.record) for entry in entries]
    assert min(seconds) > 0
    means = [statistics.fmean(times[entry.point, entry.closing]) for entry in entries]
    # One repetition of this run took three times as long as the others.
    assert sum(check(means, seconds)) < max(seconds) + sum(seconds) / 10
    assert check([2 * one for one in means], seconds) == []
    assert sum(check([one / 2 for one in means], seconds)) > 0
