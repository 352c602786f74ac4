"""Numbers of one overlap: ours, those of OSU and IMB, and what each side keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from elbowroom.stats.overlap.measures import measures
from elbowroom.stats.overlap.samples import arrival_skew, collective_time, samples_of
from simulated_overlaps import Bucket, Overlap, answers, simulate

QUIET = Overlap(comp=1.05e-3, noise=0.005, stalls=0.0)


def by_hand() -> dict[str, Any]:
    """One iteration of two ranks; rank 1 arrives 1 s later, and waits in MPI_Test for 0.5 s."""
    return {
        "message": {"enter": [[0.0, 1.0]], "leave": [[5.0, 5.0]]},
        "computation": {"enter": [[0.0, 0.0]], "leave": [[6.0, 6.0]]},
        "together": {
            "enter": [[0.0, 1.0]],
            "posted": [[0.5, 1.5]],
            "computed": [[7.0, 8.5]],
            "leave": [[9.0, 9.0]],
            "tests_s": [[0.0, 0.5]],
        },
    }


def test_time_of_a_collective_is_from_the_last_arrival_to_the_last_departure() -> None:
    enter, leave = np.array([[0.0, 1.0, 3.0]]), np.array([[4.0, 9.0, 7.0]])
    assert collective_time(enter, leave).tolist() == [6.0]
    assert arrival_skew(enter).tolist() == [3.0]


def test_numbers_of_one_iteration_are_those_by_hand() -> None:
    found = measures(samples_of([by_hand()]))
    assert (found.message.value, found.computation.value, found.together.value) == (4, 6, 8)
    assert found.overlap.value == (4 + 6 - 8) / 4
    # OSU: overall 8.5, compute 6.5 with 0.25 in tests, pure 4.5, each the mean of both ranks.
    assert found.osu_overlap.value == pytest.approx(1 - (8.5 - 6.5) / 4.5)
    # IMB: rank 0 has the longest overlapped time, 9; pure 5, computation beside the message 6.5.
    assert found.imb_overlap.value == pytest.approx((5 + 6.5 - 9) / 5)
    # Computing: 6.5 and 6.5 s.
    assert found.kept_comp.value == pytest.approx(6 / 6.5)


def test_perfect_overlap_is_one_and_none_is_zero() -> None:
    assert measures(simulate(QUIET)).overlap.value == pytest.approx(1.0, abs=0.02)
    assert measures(simulate(replace(QUIET, progresses=False))).overlap.value == pytest.approx(0.0, abs=0.02)


def test_overlap_is_that_of_osu_without_contention() -> None:
    draws = np.random.default_rng(5)
    near = 0
    for seed in range(20):
        starting, ratio = draws.uniform(0, 0.5), draws.uniform(1.02, 1.15)
        wanted = Overlap(
            seed=seed,
            repetitions=5,
            comp=1e-3 * ratio,
            stalls=1e-3,
            starting=starting,
            progresses=bool(seed % 2),
        )
        found = measures(simulate(wanted))
        near += abs(found.overlap.value - found.osu_overlap.value) <= 0.01
    assert near >= 19


def test_loss_of_a_computation_is_in_our_overlap_and_not_in_that_of_osu() -> None:
    found = measures(simulate(replace(QUIET, kept_comp=0.6)))
    assert found.osu_overlap.value > 0.95
    assert found.overlap.value < 0.65
    assert found.kept_comp.value < 0.8
    assert found.imb_overlap.value > 0.95


def test_overlap_that_costs_is_below_zero() -> None:
    # Each rank's time includes 0.6 ms that its computation lost: more than hiding 0.3 ms saves.
    found = measures(simulate(replace(QUIET, comm=3e-4, kept_comp=0.3, kept_comm=0.5)))
    assert found.overlap.high < 0


def test_a_hidden_message_keeps_all_and_a_waiting_one_half() -> None:
    assert measures(simulate(QUIET)).kept_comm.value == pytest.approx(1.0, abs=0.02)
    waits = measures(simulate(replace(QUIET, progresses=False)))
    assert waits.kept_comm.value == pytest.approx(0.5, abs=0.02)


def test_fraction_of_ideal_is_of_the_measured_sequence() -> None:
    samples = simulate(QUIET)
    plain, measured = measures(samples), measures(samples, sequence=2.5e-3)
    assert plain.fraction_of_ideal is not None
    assert measured.fraction_of_ideal is not None
    assert plain.fraction_of_ideal.value == pytest.approx(plain.overlap.value)
    assert measured.fraction_of_ideal.value == pytest.approx((2.5 - 1.05) / (2.5 - 1.05), abs=0.03)
    assert measures(samples, sequence=1e-3).fraction_of_ideal is None


def test_skew_is_that_of_the_late_rank() -> None:
    assert measures(simulate(replace(QUIET, late=4e-4))).skew.value == pytest.approx(4e-4, rel=0.02)


def test_intervals_of_repetitions_hold_the_truth() -> None:
    held = 0
    for seed in range(10):
        found = measures(simulate(replace(QUIET, seed=seed, repetitions=6, bucket=Bucket(slower=2, burst=0))))
        held += found.message.low <= 2.01e-3 and found.message.high >= 1.99e-3
        assert found.overlap.low <= found.overlap.value <= found.overlap.high
    assert held >= 9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["together"].update(posted=[[1.0]]), "together.posted of repetition 1"),
        (lambda one: one["message"].update(enter=[]), "message.enter of repetition 1 is not a table"),
    ],
)
def test_tables_of_another_shape_are_refused(change: Any, said: str) -> None:
    broken = by_hand()
    change(broken)
    with pytest.raises(ValueError, match=said):
        samples_of([by_hand(), broken])


def test_repetitions_of_other_ranks_are_refused() -> None:
    three = answers(replace(QUIET, ranks=3, iterations=1))
    with pytest.raises(ValueError, match="different numbers of ranks"):
        samples_of([by_hand(), *three])


def test_no_repetitions_are_refused() -> None:
    with pytest.raises(ValueError, match="no repetitions"):
        samples_of([])
