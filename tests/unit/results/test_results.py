"""From samples to summaries, ratios, points and curves, with known truths."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import pytest

from elbowroom.results.curves import affected, onset, recovery, steps
from elbowroom.results.points import results
from elbowroom.stats.interval import Kept, LogMean, Side, Summary
from elbowroom.stats.summary import Samples, kept, side_of, summarise
from sampled import only, point, rows, samples

# Summaries


def test_a_summary_holds_median_deciles_and_count() -> None:
    found = summarise(list(range(1, 12)), "us")
    assert (found.median, found.d1, found.d9, found.count, found.unit) == (6, 2, 10, 11, "us")
    assert found.low <= found.median <= found.high


def test_a_summary_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        summarise([], "us")


def test_a_summary_is_the_same_every_time() -> None:
    values = np.random.default_rng(3).normal(10, 1, 30)
    assert summarise(values, "us", seed=5) == summarise(values, "us", seed=5)


def test_the_interval_of_the_median_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(200):
        found = summarise(rng.normal(100, 5, 22), "MB/s", seed=seed)
        hits += found.low <= 100 <= found.high
    assert 0.88 <= hits / 200 <= 0.995


def test_the_interval_narrows_with_more_samples() -> None:
    rng = np.random.default_rng(2)
    few, many = summarise(rng.normal(100, 5, 10), "x"), summarise(rng.normal(100, 5, 400), "x")
    assert many.high - many.low < few.high - few.low


def test_kept_is_the_ratio_inside_the_repetitions() -> None:
    alone = {repetition: [100.0, 102.0] for repetition in range(10)}
    together = {repetition: [50.0, 52.0] for repetition in range(10)}
    found = kept(alone, together)
    assert found is not None
    assert found.value == pytest.approx(51 / 101)


def test_kept_of_a_duration_is_alone_over_together() -> None:
    alone, together = ({number: [value] for number in range(5)} for value in (1.0, 2.0))
    log = LogMean(mean=math.log(0.5), error=0.0, count=5)
    assert kept(alone, together, duration=True) == Kept(value=0.5, low=0.5, high=0.5, log=log)


def test_kept_above_one_is_not_clamped() -> None:
    found = kept(*({number: [value] for number in range(5)} for value in (10.0, 11.0)))
    assert found is not None
    assert found.value > 1
    assert found.above(1.0)


def test_kept_of_one_side_only_is_none() -> None:
    assert kept({}, {0: [1.0]}) is None
    assert kept({0: [1.0]}, {}) is None
    assert kept({0: [0.0]}, {0: [1.0]}) is None


def test_a_drift_common_to_both_sides_cancels_in_the_ratio() -> None:
    """Resampling repetitions, not samples: the machine that doubles its speed half way keeps 0.8
    throughout.
    """
    speed = np.linspace(1, 2, 20)
    alone = {repetition: [100 * pace] for repetition, pace in enumerate(speed)}
    together = {repetition: [80 * pace] for repetition, pace in enumerate(speed)}
    found = kept(alone, together)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.8, 0.8))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        Samples([0], [0], [False], ["A"], ["comp"], [1.0, 2.0], ["us"], ["ok"])


# Points


def test_a_point_has_both_baselines_and_both_ratios() -> None:
    found = only(rows())
    assert found.status == "ok"
    assert found.comp.kept is not None
    assert found.comm.kept is not None
    assert found.comp.kept.value == pytest.approx(0.64, abs=0.02)
    assert found.comm.kept.value == pytest.approx(0.8, abs=0.02)
    assert found.comp.kept.high < 1
    assert found.comp.alone is not None
    assert (found.comp.alone.count, found.comp.alone.unit) == (20, "MB/s")
    assert found.arithmetic_intensity == pytest.approx(2 / 24)


def test_a_latency_that_doubles_keeps_a_half() -> None:
    found = only(rows(comm=(1.5, 3.0), unit="us"))
    assert found.comm.kept is not None
    assert found.comm.kept.value == pytest.approx(0.5, abs=0.02)


def test_void_samples_are_counted_and_left_out() -> None:
    made = [
        *rows(),
        (0, 3, False, "AB", "comp", 1e9, "MB/s", "void"),
        (0, 4, False, "A", "comp", 0.0, "MB/s", "void"),
    ]
    assert only(made).comp == only(rows()).comp
    assert "void:2" in only(made).flags


def test_a_point_of_void_samples_only_has_failed() -> None:
    found = only([(*row[:7], "void") for row in rows()])
    assert (found.status, found.comp, found.comm) == ("failed", Side(), Side())
    assert "void" in found.reason


def test_a_point_without_samples_has_failed() -> None:
    assert only([]).status == "failed"


def test_a_dead_rank_is_the_reason_of_the_failure() -> None:
    found = only(rows(repetitions=2), failures={point().id: "rank 1 died"})
    assert (found.status, found.reason) == ("failed", "rank 1 died")


def test_fewer_repetitions_than_asked_are_incomplete() -> None:
    assert only(rows(repetitions=6), repetitions=10).status == "incomplete"
    assert only(rows(repetitions=10), repetitions=10).status == "ok"


@pytest.mark.parametrize(("share", "status"), [(0.2, "ok"), (0.3, "not_stable")])
def test_more_than_a_quarter_of_unstable_phases_is_not_stable(share: float, status: str) -> None:
    made = rows()
    count = int(share * len(made))
    found = only([(*row[:7], "not_stable" if i < count else "ok") for i, row in enumerate(made)])
    assert found.status == status
    assert f"not_stable:{count}" in found.flags
    assert found.comp.alone is not None
    assert found.comp.alone.count == 20


def test_closing_baselines_are_compared_and_not_mixed_in() -> None:
    same = [(0, 0, True, "A", "comp", 100.0, "MB/s", "ok"), (0, 0, True, "B", "comm", 10.0, "MB/s", "ok")]
    moved = [(0, 0, True, "A", "comp", 80.0, "MB/s", "ok"), (0, 0, True, "B", "comm", 10.0, "MB/s", "ok")]
    assert only([*rows(), *same]).flags == ()
    assert only([*rows(), *moved]).flags == ("drift:comp",)
    assert only([*rows(), *moved]).comp == only(rows()).comp


def test_flags_of_the_probe_are_kept_once() -> None:
    assert only(rows(), flags_by_point={point().id: ["migrated", "migrated"]}).flags == ("migrated",)


def test_communication_only_has_no_computing_side() -> None:
    found = only([row for row in rows() if row[4] == "comm" and row[3] == "B"])
    assert found.comp == Side()
    assert found.comm.alone is not None
    assert found.comm.kept is None


def test_results_do_not_depend_on_the_order_of_the_samples() -> None:
    made = [*rows(0), *rows(1, together=90.0)]
    points = [point(1), point(2)]
    mixed = [made[index] for index in np.random.default_rng(0).permutation(len(made))]
    assert results(points, samples(made)) == results(points, samples(mixed))


def test_a_point_costs_less_than_ten_sorts_of_its_resamples() -> None:
    """What lets 10,000 points finish in seconds, as a ratio, so that a loaded machine does not matter."""
    made = [row for index in range(500) for row in rows(index)]
    points = [point(index + 1) for index in range(500)]
    table = samples(made)
    start = time.process_time()
    for _ in range(500):
        np.sort(np.random.default_rng(0).normal(size=20_000))
    unit = time.process_time() - start
    start = time.process_time()
    assert len(results(points, table)) == 500
    assert time.process_time() - start < 10 * unit


# Curves


def sure(value: float) -> Kept:
    return Kept(value=value, low=value - 0.01, high=value + 0.01)


def test_an_onset_is_the_first_x_from_which_it_stays_affected() -> None:
    found = onset([1, 2, 3, 4, 5], [sure(v) for v in (1.0, 0.9, 1.0, 0.8, 0.5)])
    assert (found.x, found.first, found.last, found.worst, found.worst_x) == (4, 2, 5, 0.5, 5)


def test_what_recovers_has_no_lasting_onset() -> None:
    found = onset([1, 2, 3, 4], [sure(v) for v in (1.0, 0.8, 0.75, 1.0)])
    assert (found.x, found.first, found.last, found.worst_x) == (None, 2, 3, 3)


def test_a_wide_interval_is_not_an_effect() -> None:
    assert not affected(Kept(value=0.8, low=0.5, high=1.1))
    assert onset([1, 2], [Kept(value=0.8, low=0.5, high=1.1)] * 2).first is None


def test_a_loss_within_the_tolerance_is_no_effect() -> None:
    assert not affected(Kept(value=0.97, low=0.969, high=0.971))


@pytest.mark.parametrize(
    ("values", "manner"),
    [
        ((1.0, 0.9, 0.8, 0.7, 0.6), "steadily"),
        ((1.0, 1.0, 0.5, 0.48, 0.45), "abruptly"),
        ((1.0, 1.0, 1.0), None),
    ],
)
def test_a_drop_in_one_step_is_abrupt(values: Sequence[float], manner: str | None) -> None:
    assert onset(range(1, len(values) + 1), [sure(v) for v in values]).manner == manner


def test_two_points_are_too_few_for_a_manner() -> None:
    assert onset([1, 2], [sure(1.0), sure(0.5)]).manner is None


def test_nothing_measured_is_no_onset() -> None:
    assert onset([1, 2], [None, None]).worst is None


def test_recovery_is_the_first_x_after_the_last_effect() -> None:
    assert recovery([1, 2, 4, 8], [sure(v) for v in (0.4, 0.5, 1.0, 1.0)]) == 4
    assert recovery([1, 2], [sure(0.4), sure(0.5)]) is None


def latency(value: float, width: float = 0.01) -> Summary:
    low, high = value * (1 - width), value * (1 + width)
    return Summary(median=value, d1=low, d9=high, low=low, high=high, count=20, unit="us")


def test_the_eager_to_rendezvous_switch_is_found_between_its_neighbours() -> None:
    sizes = [4, 64, 1024, 4096, 4099, 8192]
    found = steps(sizes, [latency(v) for v in (1.0, 1.0, 1.2, 1.8, 3.6, 5.0)])
    assert [(step.before, step.after) for step in found] == [(4096, 4099)]
    assert found[0].factor == pytest.approx(2 * 4096 / 4099)


def test_a_latency_that_grows_with_the_size_has_no_step() -> None:
    assert steps([64, 128, 256], [latency(v) for v in (1.0, 2.0, 4.0)]) == ()


def test_a_faster_protocol_is_a_step_down() -> None:
    assert [step.after for step in steps([64, 67, 128], [latency(v) for v in (3.0, 2.0, 2.1)])] == [67]


def test_a_step_within_the_intervals_is_none() -> None:
    assert steps([64, 67], [latency(1.0, 0.4), latency(1.3, 0.4)]) == ()


def test_what_is_added_to_a_duration_is_a_difference_in_which_drift_cancels() -> None:
    repetitions = np.repeat(np.arange(12), 2)
    alone = 1.0 + 0.5 * repetitions  # the machine gets slower, both alike
    side = side_of(alone, repetitions, alone + 19.0, repetitions, unit="us")
    assert side.added is not None
    assert (side.added.value, side.added.low, side.added.high) == pytest.approx((19.0, 19.0, 19.0))
    assert side.alone is not None
    assert side.alone.high > side.alone.low + 1


def test_nothing_is_added_to_a_rate_and_less_than_nothing_stays_so() -> None:
    repetitions = np.arange(6)
    values = np.full(6, 5.0)
    assert side_of(values, repetitions, values, repetitions, unit="MB/s").added is None
    faster = side_of(values, repetitions, values - 1.0, repetitions, unit="us").added
    assert faster is not None
    assert faster.value == pytest.approx(-1.0)
