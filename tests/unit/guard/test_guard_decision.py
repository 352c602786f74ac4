"""What a guard decides from the steps of programs, some of them on virtual machines."""

from __future__ import annotations

import numpy as np

from elbowroom.guard.decision import THREADS_ARM, Decision
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.thread_search import StepObservation, ThreadSearch
from elbowroom.models import published
from elbowroom.virtual.credits import credits
from virtual_runtime import StepGraph, decide, noisy, rates_of, step_seconds

BEST = {(0, 2): 0.010, (0, 1): 0.020, (1, 2): 0.015, (1, 1): 0.005}
"""Seconds of two phases with two threads and with one."""


def run_phases(
    decision: Decision, times: dict[tuple[int, int], float], steps: int, got: int = 0
) -> list[float]:
    """Steps of a program with two phases whose time depends on its number of threads, 2 as it is; `got`: the
    number that phase 1 has, whatever is asked.
    """
    rng = np.random.default_rng(0)
    taken = []
    while len(taken) < steps:
        block = decision.next_block()
        arm = decision.arms[block.arm]
        observations = []
        for _ in range(block.steps):
            counts = {phase: arm.threads.get(phase, 0) or 2 for phase in (0, 1)}
            counts |= {1: got} if got else {}
            noise = 1 + 0.02 * rng.standard_normal(2)
            phases = {phase: times[phase, counts[phase]] * noise[phase] for phase in (0, 1)}
            observations.append(StepObservation(sum(phases.values()), phases, dict(arm.threads), counts))
            taken.append(observations[-1].seconds)
        decision.add(block, observations)
    return taken


def test_the_best_number_of_threads_of_each_phase_is_kept_within_fifty_steps() -> None:
    decision = Decision({}, {}, search=ThreadSearch([1, 2], 2), seed=1)
    seconds = run_phases(decision, BEST, 200)
    assert decision.arms[THREADS_ARM].threads == {1: 1}
    assert (decision.verdict, decision.chosen) == ("pays", THREADS_ARM)
    best, own = 0.015, 0.025
    assert (own - np.mean(seconds[50:])) / (own - best) >= 0.8


def test_one_slow_step_shows_that_a_long_phase_needs_all_threads() -> None:
    decision = Decision({}, {}, search=ThreadSearch([1, 2], 2))
    seconds = run_phases(decision, {(0, 2): 0.10, (0, 1): 0.20, (1, 2): 0.15, (1, 1): 0.30}, 400)
    assert decision.verdict == "off"
    assert decision.gain is None
    assert decision.notes == ["threads: no other number of threads makes any phase shorter"]
    assert sum(one > 0.3 for one in seconds) == 1


def test_a_number_of_threads_that_the_program_fixes_is_seen_and_left() -> None:
    decision = Decision({}, {}, search=ThreadSearch([1, 2], 2))
    run_phases(decision, BEST, 100, got=2)
    assert THREADS_ARM not in decision.arms
    assert any("the program fixes the number of threads" in note for note in decision.notes)


def test_a_setting_that_costs_a_tenth_is_switched_off_after_a_few_rounds_and_said() -> None:
    decision = Decision({"x=1": {1: 2}}, {1: 1}, seed=2)
    _, counts = decide(decision, noisy({AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 1.1}, 0.01, 2), 300)
    assert counts["x=1"] <= 8
    assert any("x=1: costs" in note for note in decision.notes)
    assert decision.chosen == AS_IT_IS


def test_a_setting_that_pays_and_later_harms_is_switched_off() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.8}
    decision = Decision({"x=1": {1: 2}}, {1: 1}, seed=3)
    steps = noisy(base, 0.01, 3)
    decide(decision, steps, 200)
    assert decision.chosen == "x=1"
    base["x=1"] = 1.03
    decide(decision, steps, 600)
    assert decision.chosen == AS_IT_IS
    assert any("does not pay any more" in note for note in decision.notes)


def test_where_the_steps_of_the_program_change_the_levers_are_tested_again() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.8}
    decision = Decision({"x=1": {1: 2}}, {1: 1}, seed=3)
    steps = noisy(base, 0.01, 3)
    decide(decision, steps, 100)
    assert (decision.chosen, decision.phases) == ("x=1", 1)
    base.update({AS_IT_IS: 3.0, PLACEBO: 3.0, "x=1": 2.0})
    decide(decision, steps, 200)
    assert (decision.chosen, decision.phases) == ("x=1", 2)
    assert decision.gain is not None
    assert decision.gain.low < 1 / 3 < decision.gain.high
    assert "the steps of the program changed: the levers were tested again" in decision.notes


def test_numbers_of_threads_are_searched_again_where_the_steps_change() -> None:
    times = dict(BEST)
    decision = Decision({}, {}, search=ThreadSearch([1, 2], 2), seed=1)
    run_phases(decision, times, 100)
    assert decision.arms[THREADS_ARM].threads == {1: 1}
    times.update({(0, 1): 0.002, (0, 2): 0.030, (1, 1): 0.030, (1, 2): 0.015})
    run_phases(decision, times, 200)
    assert decision.arms[THREADS_ARM].threads == {0: 1}
    assert decision.chosen == THREADS_ARM


def test_noise_alone_makes_no_new_phase() -> None:
    decision = Decision({"x=1": {1: 2}}, {1: 1}, seed=3)
    decide(decision, noisy({AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.8}, 0.03, 3), 3000)
    assert decision.phases == 1


def test_one_interrupted_trial_drops_no_number_of_threads() -> None:
    search = ThreadSearch([1, 2], 2)
    for _ in range(3):
        search.add(StepObservation(0.01, {0: 0.01}, {}, {}))
    for seconds in (0.09, 0.007, 0.007, 0.09, 0.007, 0.007, 0.007, 0.007, 0.007):
        assert search.next_trial() == {0: 1}
        search.add(StepObservation(seconds, {0: seconds}, {0: 1}, {0: 1}))
        search.add(StepObservation(0.01, {0: 0.01}, {}, {}))
    assert search.is_done
    assert search.best == {0: 1}


def test_trials_of_threads_that_differ_are_no_reason_to_say_off() -> None:
    decision = Decision({}, {}, search=ThreadSearch([1, 2], 2))
    times = iter([0.02, 0.02, 0.02, *(0.02 if number % 3 else 0.002 for number in range(200))])
    for _ in range(60):
        block = decision.next_block()
        threads = dict(decision.arms[block.arm].threads)
        seconds = next(times) if threads else 0.02
        decision.add(block, [StepObservation(seconds, {0: seconds}, threads, threads)])
    assert decision.is_settled
    assert decision.verdict == "cannot say"
    assert decision.notes == [
        "threads: no other number of threads makes any phase shorter for certain: its trials differ"
    ]


def test_experiments_cost_no_more_than_the_budget() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 1.009, "x=2": 1.009}
    decision = Decision({"x=1": {1: 2}, "x=2": {1: 3}}, {1: 1}, seed=4, budget=0.001)
    _, counts = decide(decision, noisy(base, 0.03, 4), 3000)
    lost = 0.009 * (counts.get("x=1", 0) + counts.get("x=2", 0))
    assert lost < 0.005 * 3000


def test_a_run_that_resumes_begins_with_the_rounds_of_the_one_before() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.9}
    first = Decision({"x=1": {1: 2}}, {1: 1}, seed=5)
    decide(first, noisy(base, 0.01, 5), 14)
    assert first.verdict == "cannot say"
    assert first.experiment is not None
    second = Decision({"x=1": {1: 2}}, {1: 1}, seed=6, earlier=first.experiment.logs)
    decide(second, noisy(base, 0.01, 6), 20)
    assert second.verdict == "pays"


def test_a_lever_that_is_gone_is_not_planned_any_more() -> None:
    decision = Decision({"x=1": {1: 2}, "y=1": {2: 2}}, {1: 1}, seed=7)
    decision.give_up("x=1", "x: is gone")
    arms = {decision.next_block().arm for _ in range(9)}
    assert arms <= {AS_IT_IS, PLACEBO, "y=1"}
    assert "x: is gone" in decision.notes


def test_on_a_virtual_machine_a_setting_is_kept_where_it_pays_and_none_where_nothing_does() -> None:
    truth = credits(published.load("henrisubnuma").model)
    rates = rates_of(truth, 17)
    graph = StepGraph(
        memory_tasks=22, memory_bytes=4.08e6, compute_tasks=12, compute_seconds=1.6e-3, message_bytes=25.2e6,
        behind=3,
    )  # fmt: skip
    base = {f"hold={hold}": step_seconds(graph, rates, 17, hold) for hold in (0, 4)}
    base[AS_IT_IS] = base[PLACEBO] = step_seconds(graph, rates, 17, None)
    assert base["hold=4"] < 0.95 * base[AS_IT_IS] < base["hold=0"]
    decision = Decision({"hold=0": {1: 2}, "hold=4": {1: 3}}, {1: 1}, seed=8, block_seconds=0)
    decide(decision, noisy(base, 0.01, 8), 300)
    assert decision.chosen == "hold=4"
    still = Decision({"hold=0": {1: 2}}, {1: 1}, seed=9, block_seconds=0)
    decide(still, noisy({AS_IT_IS: 1.0, PLACEBO: 1.0, "hold=0": 1.0}, 0.005, 9), 600)
    assert (still.chosen, still.verdict) == (AS_IT_IS, "off")


def test_levers_are_tested_one_after_the_other_and_kept_together() -> None:
    base = {AS_IT_IS: 1.0, "x=1": 0.9, "x=1 + y=1": 1.0, "x=1 + y=2": 0.81, "x=1 + y=2 + z=1": 0.81}
    base |= {arm: base[arm.removesuffix(" + placebo")] for arm in ("x=1 + placebo", "x=1 + y=2 + placebo")}
    decision = Decision(
        {"x=1": {1: 2}, "y=1": {2: 2}, "y=2": {2: 3}, "z=1": {3: 2}}, {1: 1, 2: 1, 3: 1}, seed=1
    )
    _, counts = decide(decision, noisy(base, 0.005, 1), 1500)
    assert decision.chosen == "x=1 + y=2"
    assert decision.arms["x=1 + y=2"].settings == {1: 2, 2: 3}
    assert decision.arms["x=1 + y=2 + placebo"].settings == {1: 2, 2: 3, 3: 1}
    assert [one.verdict for one in decision.results] == ["pays", "pays", "off"]
    assert [one.reference for one in decision.results] == [AS_IT_IS, "x=1", "x=1 + y=2"]
    assert decision.verdict == "pays"
    assert decision.gain is not None
    assert decision.gain.low < 0.19 < decision.gain.high
    assert counts["x=1 + y=2"] > 700


def test_a_setting_that_pays_is_kept_while_the_others_are_still_tested() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.85, "x=2": 0.86}
    acting = {"x=1": {1: 2}, "x=2": {1: 3}}
    decision = Decision(acting, {1: 1}, seed=3, block_seconds=0.0)
    decide(decision, noisy(base, 0.03, 3), 100)
    assert (decision.verdict, decision.is_settled) == ("pays", False)
    earlier = decision.experiments[0].logs
    resumed = Decision(acting, {1: 1}, seed=4, block_seconds=0.0, earlier=earlier)
    _, counts = decide(resumed, noisy(base, 0.03, 4), 40)
    assert counts[resumed.chosen] >= 0.85 * 40
    assert min(counts["x=1"], counts["x=2"]) >= 1


def test_short_runs_that_resume_are_under_the_setting_that_pays_and_have_a_round_together() -> None:
    base = {AS_IT_IS: 1.0, PLACEBO: 1.0, "x=1": 0.85}
    logs, until_round, kept, rounds = {"x=1": [0.16] * 9, PLACEBO: [0.0] * 9}, 20, 0, 0
    for run in range(12):
        decision = Decision({"x=1": {1: 2}}, {1: 1}, seed=run, earlier=logs, until_round=until_round)
        _, counts = decide(decision, noisy(base, 0.01, run), 10)
        kept += counts["x=1"]
        assert decision.experiment is not None
        rounds += len(decision.experiment.logs["x=1"]) - len(logs["x=1"])
        logs = {arm: list(values) for arm, values in decision.experiment.logs.items()}
        until_round = decision.until_round
    assert kept > 0.85 * 120
    assert rounds >= 3
