"""The online experiment of a guard, on simulated programs: what it claims, and what it must not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elbowroom.guard.experiment import (
    AS_IT_IS,
    PLACEBO,
    OnlineExperiment,
    error_of_look,
    first_look,
    looks,
)

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
        seconds = {}
        for arm in experiment.order():
            drift += generator.normal(0, noise / 10)
            noisy = STEP * math.exp(drift + noise * generator.standard_t(3))
            seconds[arm] = noisy * (1 - gains.get(arm, 0.0))
        experiment.add_round(seconds)
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
    assert experiment.verdict == "off"
    assert rounds <= first_look()


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
    for _ in range(first_look() - 1):
        order = experiment.order()
        experiment.add_round(dict.fromkeys(order, STEP))
        assert sorted(order) == ["a", "b", AS_IT_IS]
        orders.add(order)
    assert len(orders) > 2


def test_a_placebo_decides_nothing_and_where_it_pays_nothing_does() -> None:
    experiment = OnlineExperiment(["a", PLACEBO], seed=4)
    run(experiment, {"a": 0.1, PLACEBO: -0.001}, 60, 4, noise=0.001)
    assert experiment.verdict == "pays"
    assert experiment.placebo is not None
    assert experiment.placebo.low < 0 < experiment.placebo.value + 0.01
    wrong = OnlineExperiment(["a", PLACEBO], seed=4)
    run(wrong, {"a": 0.1, PLACEBO: 0.05}, 60, 4, noise=0.001)
    assert wrong.verdict == "cannot say"


def test_rounds_of_earlier_runs_count() -> None:
    first = OnlineExperiment(["a"], seed=5)
    for _ in range(first_look() - 1):
        first.add_round({AS_IT_IS: STEP, "a": STEP / 2})
    assert first.verdict == "cannot say"
    second = OnlineExperiment(["a"], seed=6, earlier=first.logs)
    second.add_round({AS_IT_IS: STEP, "a": STEP / 2})
    (result,) = second.results
    assert (second.verdict, result.rounds) == ("pays", first_look())


def test_an_arm_whose_lever_is_gone_gets_no_blocks_and_does_not_pay() -> None:
    experiment = OnlineExperiment(["a", "b"], seed=7)
    run(experiment, {"a": 0.1, "b": 0.2}, 60, 7)
    experiment.give_up("b")
    assert "b" not in experiment.order()
    assert experiment.best is None or experiment.best.arm == "a"


def test_all_looks_together_err_no_more_than_one_would() -> None:
    errors = [error_of_look(number) for number in range(1, 400)]
    assert 0.049 < sum(errors) <= 0.05
    assert looks(30) == (6, 9, 13, 19, 27)


@pytest.mark.parametrize("arms", range(1, 9))
def test_the_first_look_is_where_signed_ranks_can_have_its_error(arms: int) -> None:
    rounds = first_look(arms)
    assert 0.5**rounds <= error_of_look(1, arms) < 0.5 ** (rounds - 1)


def test_a_large_gain_is_seen_at_the_first_look() -> None:
    experiment = OnlineExperiment(["a", PLACEBO], seed=1)
    assert run(experiment, {"a": 0.3}, 60, 1, noise=0.01) == first_look()


def test_settings_that_do_nothing_are_off_and_one_that_pays_is_not() -> None:
    off = []
    for seed in range(40):
        still = OnlineExperiment(["a", "b"], seed=seed)
        run(still, {}, 200, seed, noise=0.01)
        gains = OnlineExperiment(["a", "b"], seed=seed)
        run(gains, {"b": 0.03}, 200, seed, noise=0.01)
        off += [(still.verdict, gains.verdict)]
    assert sum(one == "off" for one, _ in off) >= 36
    assert sum(one == "off" for _, one in off) <= 2


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_duration_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="the duration of a step must be above 0"):
        OnlineExperiment(["a"]).add_round({AS_IT_IS: STEP, "a": seconds})


@pytest.mark.parametrize("arms", [[], ["a", "a"], [AS_IT_IS]])
def test_arms_are_given_once_and_none_is_the_program_as_it_is(arms: list[str]) -> None:
    with pytest.raises(ValueError, match="at least one, each once"):
        OnlineExperiment(arms)
