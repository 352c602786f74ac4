"""A hardware counter is suspect where it disagrees with the bytes that a kernel is known to move."""

from __future__ import annotations

from typing import Any

import pytest

from elbowroom.measure.measurements import ratios, suspects
from elbowroom.plan.kernels import Kernel, find


def kernel(name: str) -> Kernel:
    found = find(name)
    assert found is not None
    return found


def record(observed: dict[str, Any], phase: str = "A", **more: Any) -> dict[str, Any]:
    """A repetition of one phase in which a million items were computed."""
    comp = {"items": 900_000, "items_all": 1_000_000}
    return {"flags": [], "phases": [{"phase": phase, "comp": comp, "observed": observed}], **more}


def misses(count: float) -> dict[str, Any]:
    return {"counters": {"llc_misses": count, "cycles": 1e9}}


@pytest.mark.parametrize(
    ("name", "brought"),
    [("triad", 24), ("triad_nt", 16), ("copy", 16), ("load", 8)],
)
def test_misses_are_compared_with_the_lines_that_a_kernel_brings(name: str, brought: int) -> None:
    found = ratios(kernel(name), record(misses(1_000_000 * brought / 64)))
    assert found == {"llc_misses": [pytest.approx(1.0)]}


def test_bytes_of_the_memory_controllers_are_compared_with_all_that_goes_over_the_bus() -> None:
    observed = {"memory_bytes": {"total": 32_000_000, "local": 32_000_000}}
    assert ratios(kernel("triad"), record(observed)) == {"memory_bytes": [pytest.approx(1.0)]}


@pytest.mark.parametrize(("name", "read", "moved"), [("triad", 16, 24), ("copy", 8, 16)])
def test_a_counter_of_a_core_that_avoids_the_read_before_a_write_is_not_suspect(
    name: str, read: int, moved: int
) -> None:
    observed = misses(1_000_000 * read / 64) | {"memory_bytes": {"total": 1_000_000 * moved}}
    found = ratios(kernel(name), record(observed))
    assert found == {"llc_misses": [pytest.approx(1.0)], "memory_bytes": [pytest.approx(1.0)]}
    fewer = misses(700_000 * read / 64) | {"memory_bytes": {"total": 700_000 * moved}}
    assert suspects(ratios(kernel(name), record(fewer))) == ("llc_misses", "memory_bytes")


def test_bytes_of_the_whole_machine_say_nothing_where_other_ranks_compute() -> None:
    answer = record({"memory_bytes": {"total": 64_000_000}})
    answer["phases"][0]["ranks"] = [{"rank": 0, "comp": {}}, {"rank": 1, "comp": {}}]
    assert ratios(kernel("triad"), answer) == {}


def test_a_counter_that_is_absent_is_not_judged() -> None:
    assert ratios(kernel("triad"), record({})) == {}
    assert ratios(kernel("triad"), record({"counters": {"cycles": 1e9}})) == {}


@pytest.mark.parametrize("name", ["prime", "triad_cache", "triad_llc", "memset_nt"])
def test_kernels_that_bring_nothing_from_memory_do_not_judge_misses(name: str) -> None:
    assert ratios(kernel(name), record(misses(0))) == {}


def test_arrays_that_partly_stay_in_the_cache_do_not_judge_a_counter() -> None:
    assert ratios(kernel("triad"), record(misses(0), flags=["working_set_small"])) == {}


def test_phases_with_communication_are_not_compared() -> None:
    assert ratios(kernel("triad"), record(misses(0), phase="AB")) == {}


def test_a_counter_is_suspect_where_its_median_is_more_than_a_fifth_off() -> None:
    assert suspects({"llc_misses": [1.0, 0.81, 1.19], "memory_bytes": [1.0, 1.3, 1.4]}) == ("memory_bytes",)
    assert suspects({"llc_misses": [0.1, 0.7, 1.0]}) == ("llc_misses",)
    assert suspects({}) == ()
