"""The change of the cost of hiding between two traces holds what was planted, and skew is not transfer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from confounded_traces import Truth, make_events
from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.comparison import compare_overlaps
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Lane
from elbowroom.trace.overlap.operations import operation_of
from elbowroom.verbs.trace_overlap import ReportOverlap
from planted_traces import PATTERNS, Pattern, halves, plant


@pytest.mark.parametrize("more", [1.0, 1.1])
def test_the_interval_of_a_change_holds_what_was_planted(more: float) -> None:
    wrong = found = 0
    for seed in range(6):
        first = Truth(seed=seed, steps=5, slowdown=1.2, noise=0.02)
        made = [
            make_events(one)
            for one in (first, dataclasses.replace(first, seed=seed + 100, slowdown=1.2 * more))
        ]
        change = compare_overlaps(*(analyse(events, ["one"]) for events, _ in made)).cost_change
        assert change is not None
        wrong += not change.low <= (made[1][1] - made[0][1]) / 5 <= change.high
        found += change.low > 0
    assert wrong <= 1
    assert (found >= 5) == (more > 1)


def test_two_halves_of_a_trace_are_alike() -> None:
    events, _ = make_events(Truth(seed=5, steps=10, slowdown=1.2))
    first, second = (analyse(half, ["half"]) for half in halves(events))
    assert (first.steps, second.steps) == (5, 5)
    change = compare_overlaps(first, second).cost_change
    assert change is not None
    assert change.low < 0 < change.high


def test_skew_is_what_ranks_wait_for_the_last_one_and_not_the_transfer() -> None:
    """Rank 0 begins each collective `late` before rank 1, and both end together, 50 us after that."""
    late = np.array([10, 0, 30, 20]) * 1000
    found = analyse(_two_ranks(late), ["made"])
    assert found.skew_s == pytest.approx(late.sum() / 2 / 1e9)


def test_ranks_that_begin_together_have_no_skew_and_one_rank_has_none_to_tell() -> None:
    assert analyse(_two_ranks(np.zeros(4, dtype=np.int64)), ["made"]).skew_s == 0
    assert analyse(make_events(Truth(seed=1))[0], ["one"]).skew_s is None


def _two_ranks(late: np.ndarray) -> Events:
    """A step of two ranks, with a collective each 200 us, and a kernel before each."""
    lanes = [Lane(rank=rank, name=name, device=name != "host", file=rank)
             for rank in (0, 1) for name in ("host", "7", "13")]  # fmt: skip
    rows = []
    for rank in (0, 1):
        clock = 7_000_000 * rank
        rows.append((0, 3 * rank, clock, 1_000_000))
        for number, wait in enumerate(late.tolist()):
            at = clock + 200_000 * number + 1000
            rows.append((1, 3 * rank + 1, at, 80_000))
            begin = at + 90_000 - (wait if rank == 0 else 0)
            rows.append((2, 3 * rank + 2, begin, at + 140_000 - begin))
    kind, lane, start, duration = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    names = ("ProfilerStep#1", "gemm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
    categories = ("step", "kernel", "kernel")
    return Events(
        format="json",
        classes=tuple(
            EventClass(name=name, category=category) for name, category in zip(names, categories, strict=True)
        ),
        lanes=tuple(lanes),
        ranks=("rank 0", "rank 1"),
        kind=kind.astype(np.int32),
        lane=lane.astype(np.int32),
        start=start,
        duration=duration,
        launched=np.full(len(rows), NONE, dtype=np.int32),
        issued=start,
    )


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(x)", "reduce-scatter"),
        ("ncclDevKernel_Reduce_Sum_f32", "reduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "all-gather"),
        ("nccl:_all_gather_base", "all-gather"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", "send/receive"),
        ("Memcpy HtoD (Pinned -> Device)", "copy"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t", "broadcast"),
        ("rcclGenericKernel", "communication"),
    ],
)
def test_names_say_the_operation(name: str, operation: str) -> None:
    assert operation_of(name).name == operation


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_planting_costs_what_it_says(pattern: Pattern) -> None:
    events, _ = make_events(Truth(seed=3, steps=3))
    planted, cost, slowdown = plant(events, 1.2, pattern)
    before, after = analyse(events, ["one"]), analyse(planted, ["one"])
    assert after.hidden_s - before.hidden_s == pytest.approx(cost, abs=1e-6)
    assert after.hidden_s == pytest.approx(before.hidden_s * slowdown, abs=1e-6)
    assert pattern != "alike" or slowdown == pytest.approx(1.2)


def test_the_next_command_after_a_pipe_names_a_file() -> None:
    result = analyse(make_events(Truth(seed=3, steps=3))[0], ["standard input"])
    for piped in ("-", "/dev/fd/63"):
        following = ReportOverlap(files=(piped, "other.json")).answer(result).next
        assert following == "elbowroom trace overlap trace.json other.json -o overlap.html"
