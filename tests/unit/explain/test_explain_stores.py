"""Runs of one machine, explained together, count their traffic with the store factor that one measured."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from elbowroom.explain.explainer import ObservedRun, explain
from elbowroom.results.result import PointResult
from studies import HENRI, study


def traffic(*runs: Sequence[PointResult]) -> dict[int, set[float | None]]:
    """That of the points of each run beside the largest message, as an explanation of all runs has it."""
    found = explain([ObservedRun(run=str(number), results=items) for number, items in enumerate(runs)], HENRI)
    large = [case for case in found.cases if case.metric == "bandwidth"]
    return {run: {case.traffic for case in large if case.run == run} for run in range(len(runs))}


def test_the_store_factor_that_one_run_measured_counts_in_all() -> None:
    _, without = study("contrast", HENRI, lambda _: (9000.0, 6000.0, 9000.0, 6000.0), kernels=("triad",))
    measured = [msgspec.structs.replace(item, store_factor=1.0) for item in without]
    moved = pytest.approx(6000 + 6000, rel=0.02)
    assert all(value == pytest.approx(6000 * 4 / 3 + 6000, rel=0.02) for value in traffic(without)[0])
    of_both = traffic(without, measured)
    assert of_both[0]
    assert all(value == moved for values in of_both.values() for value in values)
