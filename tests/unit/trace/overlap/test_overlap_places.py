"""Only instances at the same place of a step are compared; otherwise there is a bound, and it is named so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom import api
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.matching import Instances, compare
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("recipe", [{"longer": 1.3}, {"longer": 1.3, "ramp": 0.3}, {"cut": False}])
def test_places_that_are_sometimes_covered_have_no_cost_where_nothing_slows_down(
    tmp_path: Path, recipe: dict[str, Any], seed: int
) -> None:
    found = analysed(tmp_path, scheduled(share=0.5, seed=seed, **recipe))
    assert found.cost is None or found.cost.low < 0 < found.cost.high


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


def instances(own: np.ndarray, shared: np.ndarray, beside: np.ndarray) -> Instances:
    """Of shape (steps, places)."""
    steps, places = own.shape
    return Instances(
        place=np.tile(np.arange(places), steps),
        cell=np.repeat(np.arange(steps), places),
        lane=np.zeros(own.size, dtype=np.int32),
        own=own.ravel(),
        shared=shared.ravel(),
        beside=beside.ravel(),
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(2, 40),
    places=st.integers(2, 30),
    slowdown=st.floats(1.0, 2.0),
)
@settings(max_examples=60, deadline=None)
def test_levels_of_places_and_of_steps_cancel(seed: int, steps: int, places: int, slowdown: float) -> None:
    random = np.random.default_rng(seed)
    beside = random.random((steps, places)) < 0.5
    alone = 1e5 * np.ones((steps, places))
    shared = np.where(beside, alone * slowdown, 0.0)
    level = np.exp(random.normal(0, 0.5, places))[None, :]
    found = compare(instances(np.where(beside, alone * slowdown, alone) * level, shared * level, beside))
    assert np.allclose(found.longer, (1 - 1 / slowdown) * found.shared, atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 40), places=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
def test_places_that_are_always_in_one_state_give_no_comparison(seed: int, steps: int, places: int) -> None:
    random = np.random.default_rng(seed)
    beside = np.tile(random.random(places) < 0.5, (steps, 1))
    own = 1e5 * np.where(beside, 1.3, 1.0) * np.exp(random.normal(0, 0.02, (steps, places)))
    assert not len(compare(instances(own, np.where(beside, own, 0.0), beside)))
