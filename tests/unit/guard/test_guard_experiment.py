"""The online experiment of a guard, on simulated programs: what it claims, and what it must not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elbowroom.guard.experiment import AS_IT_IS, FIRST_LOOK, OnlineExperiment, confidence_of_look, looks

STEP = 0.01


def run(
    experiment: OnlineExperiment, gains: dict[str, float], rounds: int, seed: int, noise: float = 0.03
) -> int:
    """Runs blocks of a simulated program whose steps drift and have heavy tails, until it is decided; the
    rounds that took.
    """
    generator = np.random.default_rng(seed)
    drift = 0.0
    for done in range(rounds):
        for _ in range(len([*gains, AS_IT_IS])):
            arm = experiment.next_arm()
            drift += generator.normal(0, noise / 10)
            noisy = STEP * math.exp(drift + noise * generator.standard_t(3))
            experiment.add(noisy * (1 - gains.get(arm, 0.0)))
        if experiment.is_decided:
            return done + 1
    return rounds


def test_a_gain_of_ten_percent_is_found_in_nearly_every_program() -> None:
    verdicts = []
    for seed in range(60):
        experiment = OnlineExperiment(["hold"], seed=seed)
        run(experiment, {"hold": 0.10}, 60, seed)
        verdicts.append(experiment.verdict)
    assert verdicts.count("pays") >= 57


def test_a_lever_that_does_nothing_is_claimed_to_pay_in_fewer_than_five_programs_of_a_hundred() -> None:
    claimed = 0
    for seed in range(200):
        experiment = OnlineExperiment(["hold", "spare"], seed=seed)
        run(experiment, {"hold": 0.0, "spare": 0.0}, 60, seed)
        claimed += experiment.verdict == "pays"
    assert claimed <= 10


def test_a_lever_that_costs_time_is_off_early() -> None:
    experiment = OnlineExperiment(["hold"], seed=1)
    rounds = run(experiment, {"hold": -0.2}, 100, 1)
    assert (experiment.verdict, rounds) == ("off", FIRST_LOOK)


def test_the_better_of_two_settings_that_pay_is_chosen() -> None:
    experiment = OnlineExperiment(["some", "more"], seed=2)
    run(experiment, {"some": 0.05, "more": 0.2}, 200, 2)
    best = experiment.best
    assert best is not None
    assert best.gain is not None
    assert best.arm == "more"
    assert best.gain.low < 0.2 < best.gain.high


def test_every_round_has_each_arm_that_is_left_once_in_an_order_that_changes() -> None:
    experiment = OnlineExperiment(["a", "b"], seed=3)
    orders = set()
    for _ in range(FIRST_LOOK - 1):
        order = []
        for _ in range(3):
            order.append(experiment.next_arm())
            experiment.add(STEP)
        assert sorted(order) == ["a", "b", AS_IT_IS]
        orders.add(tuple(order))
    assert len(orders) > 2


def test_a_round_that_was_abandoned_leaves_no_value() -> None:
    experiment = OnlineExperiment(["a"], seed=4)
    experiment.add(STEP)
    experiment.abandon_round()
    for _ in range(2 * FIRST_LOOK):
        experiment.add(STEP if experiment.next_arm() == AS_IT_IS else STEP / 2)
    (result,) = experiment.results
    assert result.rounds == FIRST_LOOK
    assert result.gain is not None
    assert result.gain.value == pytest.approx(0.5)


def test_all_looks_together_err_no_more_than_one_would() -> None:
    errors = [1 - confidence_of_look(number) for number in range(1, 400)]
    assert 0.049 < sum(errors) <= 0.05
    assert looks(30) == (8, 12, 17, 24)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_duration_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="the duration of a step must be above 0"):
        OnlineExperiment(["a"]).add(seconds)


@pytest.mark.parametrize("arms", [[], ["a", "a"], [AS_IT_IS]])
def test_arms_are_given_once_and_none_is_the_program_as_it_is(arms: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one, each once"):
        OnlineExperiment(arms)
