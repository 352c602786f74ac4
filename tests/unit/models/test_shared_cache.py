"""What two jobs keep in one cache: known cases, and a simulated cache as the truth."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.models.node_sharing import CacheUse, SharedCache, hits, hits_alone, hits_beside

CACHE = SharedCache(size=1 << 20, ways=16)


def job(share: float, *, reuse: float = 1.0, stream: float = 0.0) -> CacheUse:
    return CacheUse(working_set=share * CACHE.size, reuse=reuse, stream=stream)


def simulated(
    jobs: tuple[CacheUse, CacheUse], sets: int = 256, passes: int = 6, *, random: bool = False
) -> list[float]:
    """Shares of the accesses that hit in sets of 16 ways, chosen at random for each line; the first of a set
    leaves: the least recently used one, or a random one.
    """
    rng = np.random.default_rng(1)
    lines = [int(one.working_set / CACHE.size * sets * CACHE.ways) for one in jobs]
    period = max(count / one.reuse for count, one in zip(lines, jobs, strict=True))
    where = [rng.integers(0, sets, count).tolist() for count in lines]
    events = sorted(
        (number / one.reuse, which, number % lines[which])
        for which, one in enumerate(jobs)
        for number in range(int(passes * period * one.reuse))
    )
    content: list[list[tuple[int, int]]] = [[] for _ in range(sets)]
    counts = [[0, 0], [0, 0]]
    for time, which, line in events:
        tags, tag = content[where[which][line]], (which, line)
        if time > passes * period / 2:
            counts[which][tag in tags] += 1
        if tag in tags:
            tags.remove(tag)
        elif len(tags) == CACHE.ways:
            tags.pop(int(rng.integers(CACHE.ways)) if random else 0)
        tags.append(tag)
    return [hit / (hit + miss) for miss, hit in counts]


def test_a_small_working_set_stays_and_a_large_one_does_not() -> None:
    assert hits(CACHE, 0) == 1
    assert hits(CACHE, 0.3 * CACHE.size) > 0.999
    assert hits(CACHE, 3 * CACHE.size) < 0.001
    # Half of the sets of an LRU cache got more lines than they hold.
    assert hits(CACHE, CACHE.size) == pytest.approx(0.47, abs=0.02)


def test_two_jobs_that_fit_together_keep_everything() -> None:
    assert hits_beside(CACHE, job(0.25), job(0.25)) > 0.98


def test_two_jobs_that_do_not_fit_lose_alike() -> None:
    one = hits_beside(CACHE, job(0.8), job(0.8))
    assert one < 0.1
    assert hits_alone(CACHE, job(0.8)) > 0.75


def test_the_slower_job_loses_its_lines_to_the_faster_one() -> None:
    slow, fast = job(0.5, reuse=0.1), job(0.6)
    assert hits_beside(CACHE, slow, fast) < 0.35
    assert hits_beside(CACHE, fast, slow) > 0.9


def test_a_stream_pushes_lines_out_and_loses_nothing() -> None:
    stream = CacheUse(working_set=0, reuse=0, stream=3.0)
    assert hits_beside(CACHE, job(0.5), stream) < 0.05
    assert hits_beside(CACHE, stream, job(0.5)) == 1


@pytest.mark.parametrize(
    ("a", "b", "speed"), [(0.3, 0.6, 1.0), (0.5, 0.6, 1.0), (0.6, 0.4, 3.0), (0.9, 0.2, 0.5)]
)
def test_a_simulated_cache_agrees(a: float, b: float, speed: float) -> None:
    jobs = (job(a), job(b, reuse=speed))
    true = simulated(jobs)
    assert hits_beside(CACHE, jobs[0], jobs[1]) == pytest.approx(true[0], abs=0.07)
    assert hits_beside(CACHE, jobs[1], jobs[0]) == pytest.approx(true[1], abs=0.07)


@pytest.mark.parametrize(("a", "b", "speed"), [(0.6, 0.6, 1.0), (0.6, 0.8, 1.0), (0.9, 0.4, 3.0)])
def test_a_simulated_cache_where_random_lines_leave_agrees(a: float, b: float, speed: float) -> None:
    jobs = (job(a), job(b, reuse=speed))
    true = simulated(jobs, passes=10, random=True)
    cache = SharedCache(size=CACHE.size, ways=CACHE.ways, random=True)
    assert hits_beside(cache, jobs[0], jobs[1]) == pytest.approx(true[0], abs=0.1)
    assert hits_beside(cache, jobs[1], jobs[0]) == pytest.approx(true[1], abs=0.1)
