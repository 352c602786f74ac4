"""Only instances at the same place of a step are compared; otherwise there is a bound, and it is named so."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confounded_traces import Truth, make_events
from elbowroom import api
from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.estimate import estimate
from elbowroom.trace.overlap.events import NONE, Events
from elbowroom.trace.overlap.instances import Instances, windows_of
from elbowroom.trace.overlap.spans import Spans, union
from made_overlap import Made, Span, kineto, scheduled


def analysed(folder: Path, made: Made, **options: bool) -> TraceOverlap:
    path = folder / "trace.json"
    path.write_bytes(kineto(made, **options))
    return api.trace_overlap(path)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("ramp", [0.0, 0.3])
def test_kernels_that_are_longer_where_the_schedule_hides_have_no_cost(
    tmp_path: Path, named: bool, ramp: float
) -> None:
    made = scheduled(longer=1.3, ramp=ramp)
    found = analysed(tmp_path, made, named=named)
    assert found.cost is None
    assert found.fraction_of_ideal is None
    assert not found.effect
    assert found.cost_at_most_s > 0
    assert "cannot be said" in found.verdict
    assert "The cost is at most" in found.verdict
    assert ("at each place of the step" if named else "names no steps") in found.verdict


@pytest.mark.parametrize(
    "recipe",
    [
        {"slowdown": 1.2},
        {"slowdown": 1.2, "longer": 1.3},
        {"slowdown": 1.2, "longer": 1.3, "ramp": 0.3},
        {"slowdown": 1.2, "cut": False},
        {"slowdown": 1.1, "cut": False, "where": range(12)},  # whole steps
        {"slowdown": 1.2, "cut": False, "where": range(1), "places": 1, "steps": 90},
        {"slowdown": 1.2, "cut": False, "where": range(20, 40), "places": 60, "steps": 6},
    ],
)
def test_a_slowdown_at_places_that_are_sometimes_covered_is_recovered(
    tmp_path: Path, recipe: dict[str, Any]
) -> None:
    made = scheduled(share=0.5, **recipe)
    found = analysed(tmp_path, made)
    assert found.cost is not None
    assert found.cost.low < made.cost_s < found.cost.high
    assert found.effect
    assert found.cost_at_most_s > made.cost_s


def test_places_that_are_sometimes_covered_rarely_have_a_cost_where_nothing_slows_down(
    tmp_path: Path,
) -> None:
    recipes: list[dict[str, Any]] = [{"longer": 1.3}, {"longer": 1.3, "ramp": 0.3}, {"cut": False}]
    wrong = 0
    for recipe in recipes:
        for seed in range(8):
            cost = analysed(tmp_path, scheduled(share=0.5, seed=seed, **recipe)).cost
            wrong += cost is not None and not cost.low < 0 < cost.high
    assert wrong <= 2  # of 24 intervals that hold with 95 %; benchmarks/trace_estimate.py counts a thousand


@pytest.mark.parametrize("slowdown", [1.0, 1.2])
def test_ranks_with_one_step_each_are_compared_with_each_other(tmp_path: Path, slowdown: float) -> None:
    files, costs = [], []
    for rank in range(10):
        made = scheduled(
            steps=1, places=60, where=range(10, 50), share=0.99, slowdown=slowdown, seed=rank, pace=rank
        )
        document = json.loads(kineto(made, rank=0))
        document["distributedInfo"] = {"rank": rank, "world_size": 10}
        files.append(tmp_path / f"{rank}.json")
        files[-1].write_text(json.dumps(document))
        costs.append(made.cost_s)
    found = api.trace_overlap(files)
    assert found.ranks == 10
    assert found.cost is not None
    assert found.cost.low < np.mean(costs) < found.cost.high
    assert found.effect == (slowdown > 1)


def test_the_user_may_name_the_steps(tmp_path: Path) -> None:
    made = scheduled(share=0.5, slowdown=1.2)
    path = tmp_path / "trace.json"
    path.write_bytes(kineto(made).replace(b"ProfilerStep#", b"my loop "))
    assert api.trace_overlap(path).cost is None
    found = api.trace_overlap(path, step=["^my loop"])
    assert (found.steps, found.cost is None) == (60, False)


def test_a_kernel_belongs_to_the_step_that_launched_it(tmp_path: Path) -> None:
    """The device runs a step behind the host, and its steps are not those of the host's time."""
    made = scheduled(share=0.5, slowdown=1.2, longer=1.3)
    whole = analysed(tmp_path, made)
    late = Made(steps=[(rank, step, begin / 50, 10.0) for rank, step, begin, _ in made.steps])
    for number, span in enumerate(made.spans):
        late.spans.append(Span(**{**span.__dict__, "correlation": number + 1}))
    path = tmp_path / "late.json"
    path.write_bytes(_launched_early(kineto(late), made))
    found = api.trace_overlap(path)
    assert found.cost == whole.cost


def _launched_early(trace: bytes, made: Made) -> bytes:
    document = json.loads(trace)
    begins = np.array([begin for _, _, begin, _ in made.steps])
    for one in [one for one in document["traceEvents"] if one["cat"] == "kernel"]:
        step = int(np.searchsorted(begins, one["ts"], side="right")) - 1
        at = begins[max(step, 0)] / 50 + 2
        document["traceEvents"].append(
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4000, "tid": 1, "ts": at,
             "dur": 0.001, "args": {"correlation": one["args"]["correlation"]}}
        )  # fmt: skip
    return json.dumps(document).encode()


def test_the_bound_of_a_class_that_never_runs_alone_is_all_that_is_shared(tmp_path: Path) -> None:
    made = scheduled(steps=12, where=range(12))
    found = analysed(tmp_path, made)
    assert found.cost_at_most_s == pytest.approx(found.hidden_s)


def table(own: np.ndarray, beside: np.ndarray) -> tuple[Instances, dict[int, Spans]]:
    """Instances one after the other, of shape (steps, places), each beside communication or not."""
    places = own.shape[1]
    lasts = own.ravel().astype(np.int64)
    start = np.cumsum(lasts + 10) - lasts
    covered = beside.ravel()
    number = np.arange(own.size)
    made = Instances(
        rank=np.zeros(own.size, dtype=np.int64),
        step=number // places,
        until=np.repeat(np.append(start[places::places], start[-1] + lasts[-1]), places),
        kernel=np.zeros(own.size, dtype=np.int64),
        place=number % places,
        start=start,
        own=lasts.astype(float),
        shared=np.where(covered, lasts, 0).astype(float),
        at_begin=covered,
        other=np.where(covered, 0, NONE),
    )
    return made, {0: union(start[covered], start[covered] + lasts[covered])}


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(3, 40),
    places=st.integers(4, 30),
    slowdown=st.floats(1.0, 2.0),
)
@settings(max_examples=40, deadline=None)
def test_levels_of_places_and_of_steps_cancel(seed: int, steps: int, places: int, slowdown: float) -> None:
    random = np.random.default_rng(seed)
    beside = random.random((steps, places)) < 0.5
    level = np.exp(random.normal(0, 0.5, places))[None, :] * np.exp(random.normal(0, 0.5, steps))[:, None]
    found = estimate(*table(1e7 * level * np.where(beside, slowdown, 1.0), beside))
    if found is not None and found.bounded:
        assert np.exp(found.of_all + found.value) == pytest.approx(slowdown, abs=1e-3)


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 20), places=st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_places_that_are_always_in_one_state_give_no_interval(seed: int, steps: int, places: int) -> None:
    random = np.random.default_rng(seed)
    beside = np.tile(random.random(places) < 0.5, (steps, 1))
    own = 1e5 * np.where(beside, 1.3, 1.0) * np.exp(random.normal(0, 0.02, (steps, places)))
    found = estimate(*table(own, beside))
    assert found is None or not found.bounded


def test_communication_that_moves_by_the_whole_step_covers_what_it_covered() -> None:
    made, active = table(np.full((3, 8), 1e6), np.random.default_rng(1).random((3, 8)) < 0.5)
    windows = windows_of(made, active)
    for shift in (0.0, 1.0):
        share = next(windows.shares(np.full((1, 3), shift), made.own))
        assert share == pytest.approx(made.at_begin.astype(float), abs=1e-4)


def test_what_runs_after_the_end_of_its_step_counts_from_the_begin_again() -> None:
    made, active = table(np.full((3, 8), 1e6), np.random.default_rng(1).random((3, 8)) < 0.5)
    windows = windows_of(made, active)
    late = dataclasses.replace(windows, since=windows.since + windows.length[windows.cell])
    shifts = np.random.default_rng(2).random((4, 3))
    for one, other in zip(*(of.shares(shifts, made.own) for of in (windows, late)), strict=True):
        assert one == pytest.approx(other)


def test_copies_of_steps_change_neither_the_estimate_nor_its_interval() -> None:
    events, _ = make_events(Truth(seed=3, steps=4, slowdown=1.2))
    span = int(events.end.max() - events.start.min())
    whole, eight = analyse(events, ["one"]), analyse(_copied(events, 8, span), ["eight"])
    assert eight.events == 8 * whole.events
    one, other = whole.estimate.slowdown, eight.estimate.slowdown
    assert one is not None
    assert other is not None
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high), rel=1e-6)
    assert "28 steps have exactly the durations of others" in " ".join(eight.notes)


def test_a_trace_whose_steps_are_all_copies_of_one_has_a_bound_only() -> None:
    events, _ = make_events(Truth(seed=3, steps=1, slowdown=1.2))
    found = analyse(_copied(events, 8, int(events.end.max() - events.start.min())), ["eight"])
    assert found.steps == 8
    assert found.estimate.grade == "bounded"


def _copied(events: Events, times: int, span: int) -> Events:
    """The events so many times one after the other, each time later by `span` ns."""
    later = np.repeat(np.arange(times) * span, len(events))
    columns = {
        name: np.tile(getattr(events, name), times) for name in ("kind", "lane", "launched", "duration")
    }
    return dataclasses.replace(
        events,
        start=np.tile(events.start, times) + later,
        issued=np.tile(events.issued, times) + later,
        **columns,
    )


def test_an_interval_that_is_too_wide_is_not_called_measured() -> None:
    events, _ = make_events(Truth(seed=4, steps=6, layers=8, slowdown=1.05, noise=0.6))
    found = analyse(events, ["noisy"]).estimate
    assert (found.grade, found.slowdown, found.cost) == ("bounded", None, None)
    assert "too wide to be of use" in found.reason
