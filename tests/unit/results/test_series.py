"""Windows of extraneous accesses: what is told of each size, of the floors between caches, of the sides."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from accessed import FLOOR, L1, L2, L3, cached, flat, stairs, study, times
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.points import accesses as series
from elbowroom.points.accesses import ExtraneousAccesses, WindowTimes
from elbowroom.points.point import Point
from elbowroom.results.judgement import above
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval
from sampled import with_payload

HERE = cached()
USUAL = study(HERE)
WINDOW = ExtraneousAccesses(who="sender", access="write", first=0, step=400, count=3, exchanges=2)


def phase(name: str, batches: list[float], **more: object) -> dict[str, object]:
    return {"phase": name, "status": "ok", "comm": {"value": 1.0, "unit": "us", "batches": batches}, **more}


def case(who: str, results: list[PointResult]) -> AccessCase:
    return next(one for one in cases(results, HERE) if one.who == who)


def test_batches_are_sorted_out_size_by_size() -> None:
    found = WindowTimes()
    record = {"phases": [phase("B", [9.0] * 6), phase("AB", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]}
    assert series.add(found, WINDOW.count, record) == ""
    assert found.after[0].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert found.without[0].shape == (3, 2)


def test_a_wrong_number_of_batches_is_told_and_a_void_phase_is_left_out() -> None:
    found = WindowTimes()
    assert "4 one-way times were answered for 3 sizes" in series.add(
        found, WINDOW.count, {"phases": [phase("AB", [1.0] * 4)]}
    )
    assert series.add(found, WINDOW.count, {"phases": [phase("AB", [1.0] * 6, status="void")]}) == ""
    assert found.after == []


def test_misses_are_averaged_over_repetitions_and_keep_their_source() -> None:
    found = WindowTimes()
    for counts in ([0, 4, 8], [0, 6, 8]):
        misses = {"source": "modelled", "sender": {"L1": counts, "L2": [1, 1, 1]}, "receiver": {"L9": counts}}
        record = {"phases": [phase("B", [1.0] * 6), phase("AB", [1.0] * 6, misses=misses)]}
        assert series.add(found, WINDOW.count, record) == ""
    point = next(iter(USUAL))
    told = series.window_series(Point(workload=WINDOW, **_axes(point)), WINDOW.sizes, found)
    assert told is not None
    assert [(one.level, one.rank, one.source, one.count) for one in told.misses] == [
        ("L1", "sender", "modelled", (0.0, 5.0, 8.0)),
        ("L2", "sender", "modelled", (1.0, 1.0, 1.0)),
    ]


def test_what_a_model_says_of_a_level_stays_beside_what_was_counted() -> None:
    found = WindowTimes()
    counted = {"source": "measured", "sender": {"L1": [3, 5, 7]}}
    misses = {"source": "modelled", "sender": {"L1": [0, 4, 8], "L2": [1, 1, 1]}, "measured": counted}
    series.add(
        found, WINDOW.count, {"phases": [phase("B", [1.0] * 6), phase("AB", [1.0] * 6, misses=misses)]}
    )
    told = series.window_series(Point(workload=WINDOW, **_axes(next(iter(USUAL)))), WINDOW.sizes, found)
    assert told is not None
    assert [(one.level, one.source, one.count) for one in told.misses] == [
        ("L1", "measured", (3.0, 5.0, 7.0)),
        ("L1", "modelled", (0.0, 4.0, 8.0)),
        ("L2", "modelled", (1.0, 1.0, 1.0)),
    ]


def _axes(point: PointResult) -> dict[str, object]:
    names = ("plan", "kernel", "n", "size", "comp_node", "comm_node", "comm_core", "metric")
    return {name: getattr(point, name) for name in names}


def test_a_point_says_what_its_messages_took_alone_and_after_accesses() -> None:
    point = max(USUAL, key=lambda item: _series(item).sizes[0])
    assert point.comm.alone is not None
    assert point.comm.together is not None
    assert point.comm.kept is not None
    assert point.comm.alone.count == point.comm.together.count == len(_series(point).sizes) * 20 * 3
    assert point.comm.alone.median == pytest.approx(FLOOR, rel=0.03)
    assert point.comm.kept.value == pytest.approx(1 / 1.5, abs=0.02)
    assert point.comm.kept.low <= point.comm.kept.value <= point.comm.kept.high


def _series(point: PointResult) -> series.WindowSeries:
    window = series.series_of(point.payload)
    assert window is not None
    return window


def test_the_floor_rises_past_each_cache_by_what_was_put_there_and_the_control_stays() -> None:
    found = {row.name: row for row in case("sender", USUAL).regions}
    assert list(found) == ["without", "within L1", "past L1", "past L2"]
    assert found["without"].floor == pytest.approx(FLOOR, rel=0.02)
    for name, rise in (("within L1", 0.0), ("past L1", 0.05), ("past L2", 1.5 / 1.05 - 1)):
        estimate = found[name].rise
        assert estimate is not None
        assert estimate.value == pytest.approx(rise, abs=0.01)
        assert estimate.low - 0.005 <= rise <= estimate.high + 0.005
    for name in ("past L1", "past L2"):
        control = found[name].control
        assert control is not None
        assert control.value == pytest.approx(0.0, abs=0.01)
    over = found["past L2"].over
    assert over is not None
    assert over.excludes_zero
    assert over.value == pytest.approx(0.5, abs=0.01)


def test_what_moves_from_repetition_to_repetition_is_no_rise() -> None:
    row = case("sender", study(HERE, flat, drift=0.1, repetitions=6)).regions[-1]
    assert row.over is not None
    assert row.control is not None
    assert abs(row.over.value) < 0.01
    assert row.control.high - row.control.low > 0.02


def test_a_region_reaches_from_one_cache_to_the_next() -> None:
    rows = case("sender", study(HERE, settings={"accesses": "0,64MiB", "access_step": "256KiB"})).regions
    for row, (low, high) in zip(rows[1:], ((-1, L1), (L1, L2), (L2, L3), (L3, np.inf)), strict=True):
        assert low < row.low <= row.high <= high
    assert rows[-1].over is not None
    assert rows[-1].over.value == pytest.approx(1.0, abs=0.05)


def test_a_cache_that_several_cores_access_is_outgrown_sooner() -> None:
    found = study(cached(4), settings={"who": "sender,both,bystanders", "n": "2"})
    edges = {one.who: one.levels for one in cases(found, cached(4))}
    assert edges["sender"] == {1: L1, 2: L2, 3: L3}
    assert edges["both"] == {1: L1, 2: L2, 3: L3 / 2}
    assert edges["bystanders"] == {3: L3 / 2}


def test_bounds_are_the_least_and_the_greatest_of_each_window() -> None:
    point = USUAL[0]
    one = sides.bounds([point])[0]
    means = _series(point).after.mean
    assert (one.lower, one.upper) == (min(means), max(means))
    assert sides.bounds([point], of="minimum")[0].lower == min(_series(point).after.minimum)
    assert sides.bounds([point], after=False)[0].upper == max(_series(point).without.mean)


def test_the_variance_of_averages_is_that_of_all_sizes_together() -> None:
    found = case("sender", USUAL)
    means = np.concatenate([_series(item).after.mean for item in found.windows])
    assert found.scatter is not None
    assert found.scatter.average.value == pytest.approx(means.mean())
    assert found.scatter.variance.value == pytest.approx(means.var(ddof=1))
    assert found.scatter.variance.low <= found.scatter.variance.value <= found.scatter.variance.high


def test_the_side_that_hurts_more_is_told_in_us() -> None:
    found = study(HERE, wider=4.0)
    sender, receiver = case("sender", found), case("receiver", found)
    told = sides.difference(sender.windows, receiver.windows, sender.levels)
    assert told is not None
    assert told.regions["past L2"].value == pytest.approx(-0.25 * FLOOR, abs=0.02 * FLOOR + 0.01)
    assert above(told.regions["past L2"]) == "refuted"
    assert above(told.spread) == "confirmed"
    other = sides.difference(receiver.windows, sender.windows, sender.levels)
    assert other is not None
    assert other.median.value == pytest.approx(-told.median.value)


def test_sides_without_windows_of_the_same_sizes_are_not_compared() -> None:
    found = USUAL
    assert sides.difference(case("sender", found).windows[:3], case("receiver", found).windows[5:]) is None


def test_the_first_observation_is_confirmed_where_the_floor_rises() -> None:
    found = case("sender", USUAL)
    told = sides.first_observation(found.windows, found.regions)
    assert told.verdict == "confirmed"
    assert told.trend is not None
    assert told.trend.low > 0


def test_the_first_observation_is_refuted_where_the_floor_stays() -> None:
    found = case("sender", study(HERE, flat))
    assert sides.first_observation(found.windows, found.regions).verdict == "refuted"


def test_the_first_observation_is_undecided_with_few_windows() -> None:
    found = case("sender", study(HERE, settings={"window_sizes": "250"}))
    told = sides.first_observation(found.windows, found.regions)
    assert (told.verdict, told.trend) == ("undecided", None)


def test_the_first_observation_is_undecided_where_the_control_moved() -> None:
    found = case("sender", USUAL)
    moved = Interval(value=0.2, low=0.15, high=0.25)
    rows = [*found.regions[:-1], msgspec.structs.replace(found.regions[-1], control=moved)]
    told = sides.first_observation(found.windows, rows)
    assert told.moved
    assert told.verdict == "undecided"


def test_beyond_how_many_bytes_the_average_never_falls_below_a_limit() -> None:
    windows = case("sender", USUAL).windows
    beyond = sides.never_below(windows, 1.3 * FLOOR)
    assert beyond is not None
    assert L2 - 8000 <= beyond <= L2
    assert sides.never_below(windows, 0.5 * FLOOR) is None
    assert sides.never_below(windows, 5 * FLOOR) is None


def test_misses_plateau_where_nine_tenths_of_them_are_reached() -> None:
    def with_misses(item: PointResult) -> PointResult:
        counts = tuple(min(8.0, size / 1e5) for size in _series(item).sizes)
        one = series.Misses(level="L1", rank="sender", source="modelled", count=counts)
        return with_payload(item, series=msgspec.structs.replace(_series(item), misses=(one,)))

    windows = [with_misses(item) for item in case("sender", USUAL).windows]
    [line] = sides.miss_lines(windows, "sender")
    assert line.plateau == pytest.approx(0.9 * 8 * 1e5, abs=80_000)
    assert sides.miss_lines(windows, "receiver") == []
    follows = sides.follows(windows, line)
    assert follows is not None
    assert 0 < follows.low < follows.value < follows.high < 1


def test_times_above_the_floor_only() -> None:
    window = msgspec.structs.replace(WINDOW, first=L2, count=5)
    assert min(one.min() for one in times(window).after) >= FLOOR * (1 + stairs("sender", L2))
