"""The slowdown is the mean over the shared time, whatever it depends on (tests/planted_traces.py)."""

from __future__ import annotations

import numpy as np
import pytest

from confounded_traces import Truth, make_events
from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.document import Estimate
from elbowroom.trace.overlap.pooling import pool_rows
from planted_traces import PATTERNS, Pattern, plant

TRACES = 8


def planted(pattern: Pattern, slowdown: float, seed: int) -> tuple[Estimate, float]:
    """The estimate, and the mean slowdown over the shared time."""
    events, _ = make_events(Truth(seed=seed, steps=6, ranks=2, jitter=0.8))
    events, _, right = plant(events, slowdown, pattern, (seed,))
    return analyse(events, ["planted"]).estimate, right


@pytest.mark.parametrize("pattern", PATTERNS[1:])
def test_an_interval_holds_the_mean_where_slowdowns_differ(pattern: Pattern) -> None:
    found = [planted(pattern, 1.3, seed) for seed in range(TRACES)]
    intervals = [(one.slowdown, right) for one, right in found if one.slowdown is not None]
    assert len(intervals) >= TRACES - 2
    # benchmarks/trace_estimate.py counts hundreds.
    assert sum(not one.low <= right <= one.high for one, right in intervals) <= TRACES / 4


def test_time_that_earlier_instances_lost_does_not_bias_the_estimate() -> None:
    found = [planted("alike", 1.3, seed) for seed in range(2 * TRACES)]
    errors = [one.slowdown.value - right for one, right in found if one.slowdown is not None]
    assert abs(np.mean(errors)) < 0.006


def test_the_share_is_not_the_instrument_where_losses_do_not_follow_it() -> None:
    instruments = [planted("dose", 1.4, seed)[0].instrument for seed in range(TRACES)]
    assert instruments.count("any") > TRACES / 2


@pytest.mark.parametrize("compared", [0.5, 0.2])
def test_the_mean_is_less_sure_where_rows_differ_and_compare_less_than_they_share(compared: float) -> None:
    place = np.repeat(np.arange(200), 2)
    late = place >= 100
    beside = np.tile([0.0, 1.0], 200)
    # Late places compare less: communication covers part of both of their instances.
    state = np.where(late, beside * compared / 0.5, beside)
    noise = np.random.default_rng(1).normal(0, 0.02, 400)
    ones = np.ones(400)
    pool = pool_rows(place, np.zeros(400, dtype=np.int64), late.astype(np.int64), ones, 0.02**2 * ones, state,
                     state, noise + state * np.where(late, 0.3, 0.0), ones, np.zeros(2), 1.0)  # fmt: skip
    assert pool is not None
    assert pool.spread > 0
    assert (pool.unweighted > 1e-3) == (compared < 0.5)


def test_communication_that_is_nearly_always_hidden_has_no_slowdown_of_its_own() -> None:
    for seed in range(TRACES):
        events, _ = make_events(Truth(seed=seed, covered=0.95, jitter=0.1))
        found = analyse(events, ["hidden"])
        assert found.hidden_share > 0.9
        assert found.comm_cost is None
