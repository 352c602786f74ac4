"""What ranks would wait for each other with a core for each."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.diagnose.scheduled import Scheduled
from elbowroom.diagnose.uneven import RankWaits, RankWork, uneven_waits

MS = 1_000_000
STEPS = 20


def samples(waited: float) -> Scheduled:
    """Of a rank that waits so many ns for a core in each step of 10 ms, while it computes."""
    begin = np.arange(0, STEPS * 10 * MS, 10 * MS, dtype=np.float64)
    return Scheduled(begin, begin + 10 * MS, np.full(STEPS, waited), np.zeros(STEPS))


def waits(partner: int, waited: int) -> RankWaits:
    """A wait in each step, until its end, since the computation from its begin."""
    end = (np.arange(STEPS) + 1) * 10 * MS
    full = np.full(STEPS, waited)
    return RankWaits(end - waited, end, end - 10 * MS, full, np.full(STEPS, partner), end)


def shares(of: dict[int, RankWaits], scheduled: dict[int, Scheduled]) -> dict[int, float]:
    uneven = uneven_waits(of, scheduled)
    return {rank: float(uneven[rank].sum() / own.waited.sum()) for rank, own in of.items()}


def test_a_wait_for_a_rank_without_a_core_would_be_none_with_one() -> None:
    there = shares({1: waits(0, 4 * MS)}, {0: samples(4 * MS), 1: samples(0)})
    assert there[1] == pytest.approx(0.0, abs=0.01)


def test_a_wait_for_a_rank_that_waits_for_one_without_a_core_would_be_none_either() -> None:
    of = {1: waits(0, 4 * MS), 2: waits(1, 4 * MS), 3: waits(2, 4 * MS)}
    scheduled = {0: samples(4 * MS), 1: samples(0), 2: samples(0), 3: samples(0)}
    assert max(shares(of, scheduled).values()) == pytest.approx(0.0, abs=0.01)


def test_waits_for_ranks_that_have_their_cores_stay() -> None:
    of = {1: waits(0, 4 * MS), 2: waits(1, 4 * MS)}
    assert set(shares(of, {rank: samples(0) for rank in range(3)}).values()) == {1.0}


def test_a_wait_without_samples_stays() -> None:
    assert shares({1: waits(0, 4 * MS)}, {0: samples(4 * MS)}) == {1: 1.0}


def work(each: int) -> RankWork:
    """Of a rank that works so many ns in the first 6 ms of each step, and then waits."""
    begin = np.arange(STEPS, dtype=np.int64) * 10 * MS
    done = np.arange(STEPS, dtype=np.int64) * each
    return RankWork(
        np.stack([begin, begin + 6 * MS], axis=1).ravel(), np.stack([done, done + each], 1).ravel()
    )


@pytest.mark.parametrize("more", [0, 2 * MS])
def test_a_wait_is_uneven_as_far_as_the_late_rank_worked_longer(more: int) -> None:
    """Rank 0 comes 4 ms later than rank 1, for `more` ns of which it worked; samples do not say why."""
    of, scheduled = {0: waits(1, 0), 1: waits(0, 4 * MS)}, {rank: samples(0) for rank in (0, 1)}
    left = uneven_waits(of, scheduled, {0: work(5 * MS + more), 1: work(5 * MS)})
    assert left[1] == pytest.approx(more, abs=2)
