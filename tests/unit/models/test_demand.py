"""Sensitivity and pressure beside a known load, and what they predict of pairs, on virtual machines."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.measure.demand import ProgramRun, measure_demand, turns
from elbowroom.models.demand import (
    DEMAND,
    LEVELS,
    SHARES,
    Axis,
    Demand,
    LoadBesideLoad,
    LoadFacts,
    LoadLevel,
    demand_of_profile,
    not_falling,
    predicted_slowdown,
)

FULL = 10e9


class Machine:
    """Two programs share memory and cache: one takes 1 + sum over axes of weakness x strength of the
    other.
    """

    def __init__(self, memory: float = 0.8, cache: float = 0.4, noise: float = 0.0) -> None:
        self.reporters: dict[Axis, float] = {"memory": memory, "cache": cache}
        self.noise = noise
        self.random = random.Random(7)

    def noisy(self, value: float) -> float:
        return value * self.random.lognormvariate(0.0, self.noise) if self.noise else value


class Program:
    """A virtual program: what it loses beside the largest load of each axis, and its shares as a load."""

    def __init__(self, machine: Machine, weakness: dict[Axis, float], strength: dict[Axis, float]) -> None:
        self.machine, self.weakness, self.strength = machine, weakness, strength
        self.waited = 0.0

    @property
    def facts(self) -> LoadFacts:
        return LoadFacts(
            command=("./app",),
            ranks=1,
            host="virtual",
            cores=(0,),
            load_cores=(1,),
            cache=1 << 25,
            full_rate=FULL,
        )

    def run(self, level: LoadLevel | None) -> ProgramRun:
        if level is None:
            return ProgramRun(self.machine.noisy(2.0))
        seconds = 2.0 * (1 + self.weakness[level.axis] * level.share)
        kept = 1 / (1 + self.machine.reporters[level.axis] * self.strength[level.axis])
        return ProgramRun(self.machine.noisy(seconds), self.machine.noisy(kept * FULL), FULL, self.waited)

    def load_beside_load(self, axis: Axis, share: float) -> LoadBesideLoad:
        rate = FULL / (1 + self.machine.reporters[axis] * share)
        return LoadBesideLoad(axis=axis, share=share, rate=self.machine.noisy(rate), rate_alone=FULL)


def program(
    machine: Machine, weak: tuple[float, float] = (0.6, 0.2), strong: tuple[float, float] = (0.5, 0.5)
) -> Program:
    return Program(machine, {"memory": weak[0], "cache": weak[1]}, {"memory": strong[0], "cache": strong[1]})


def measured(one: Program, repetitions: int = 5) -> Demand:
    return measure_demand(one, repetitions=repetitions)


def test_the_sensitivity_is_what_the_program_loses_at_each_load() -> None:
    memory, cache = measured(program(Machine())).sensitivity
    assert [one.value for one in memory.slower] == pytest.approx([1.15, 1.3, 1.6])
    assert [one.value for one in cache.slower] == pytest.approx([1.05, 1.1, 1.2])


def test_the_pressure_is_the_load_that_costs_the_load_as_much() -> None:
    memory, cache = measured(program(Machine(), strong=(0.5, 0.25))).pressure
    assert memory.share.value == pytest.approx(0.5)
    assert cache.share.value == pytest.approx(0.25)


def test_the_traffic_is_that_of_the_load_of_the_same_pressure() -> None:
    assert measured(program(Machine(), strong=(0.5, 0.25))).traffic == pytest.approx(0.5 * FULL)


def test_a_pair_loses_what_the_program_loses_beside_a_load_of_the_companions_pressure() -> None:
    machine = Machine()
    a = measured(program(machine, weak=(0.6, 0.0)))
    b = measured(program(machine, strong=(0.75, 0.0)))
    assert predicted_slowdown(a, b).value == pytest.approx(1 + 0.6 * 0.75)


def test_of_both_axes_the_larger_loss_counts() -> None:
    machine = Machine()
    a = measured(program(machine, weak=(0.2, 0.6)))
    b = measured(program(machine, strong=(0.5, 0.5)))
    assert predicted_slowdown(a, b).value == pytest.approx(1.3)


def test_intervals_hold_the_truth_of_noisy_runs() -> None:
    held = 0
    for seed in range(20):
        machine = Machine(noise=0.01)
        machine.random = random.Random(seed)
        curve = measured(program(machine), repetitions=9).sensitivity[0]
        held += curve.slower[2].low <= 1.6 <= curve.slower[2].high
    assert held >= 15


def test_a_machine_that_drifts_changes_no_sensitivity() -> None:
    one = program(Machine())
    run, runs = one.run, [0]

    def slower_and_slower(level: LoadLevel | None) -> ProgramRun:
        runs[0] += 1
        now = run(level)
        return now._replace(seconds=now.seconds * (1 + 0.002 * runs[0]))

    one.run = slower_and_slower  # type: ignore[method-assign]
    assert measured(one).sensitivity[0].slower[2].value == pytest.approx(1.6, rel=0.002)


def test_loads_that_share_nothing_leave_the_pressure_open() -> None:
    demand = measured(program(Machine(memory=0.005)))
    memory = demand.pressure[0]
    assert "share too little" in memory.unresolved
    assert (memory.share.low, memory.share.high) == (0.0, 1.0)
    assert demand.traffic is None


def test_a_busy_machine_can_say_nothing() -> None:
    demand = measured(program(Machine(noise=0.3)))
    assert not demand.trusted
    assert "runs alone differ" in demand.notes[0]


def test_a_load_that_waited_for_its_cores_was_no_known_load() -> None:
    one = program(Machine())
    one.waited = 0.3
    demand = measured(one)
    assert not demand.trusted
    assert "30%" in demand.notes[0]


def test_every_load_has_a_run_alone_near_it() -> None:
    order = [level for _, level in turns(4, seed=3)]
    alone = [place for place, level in enumerate(order) if level is None]
    assert alone[0] == 0
    assert alone[-1] == len(order) - 1
    assert max(np.diff(alone)) <= 4
    assert sorted(filter(None, order)) == sorted(LEVELS * 4)


def test_after_the_budget_two_repetitions_are_there() -> None:
    demand = measure_demand(program(Machine()), repetitions=9, budget=0.0)
    assert demand.repetitions == 2


def test_the_file_of_a_profile_is_what_was_measured(tmp_path: Path) -> None:
    assert demand_of_profile(tmp_path) is None
    demand = measured(program(Machine()))
    DEMAND.write(tmp_path / "demand.json", demand)
    assert demand_of_profile(tmp_path) == demand


def squares(values: list[float], fit: list[float]) -> float:
    return sum((one - other) ** 2 for one, other in zip(values, fit, strict=True))


@given(st.lists(st.floats(0.5, 3.0), min_size=1, max_size=8))
def test_the_nearest_sequence_that_does_not_fall(values: list[float]) -> None:
    fit = not_falling(values, [1.0] * len(values)).tolist()
    assert all(left <= right + 1e-12 for left, right in pairwise(fit))
    assert sum(fit) == pytest.approx(sum(values))
    assert squares(values, fit) <= squares(values, np.maximum.accumulate(values).tolist()) + 1e-9


@given(st.lists(st.floats(1.03, 3.0), min_size=3, max_size=3), st.floats(0.0, 1.0))
def test_a_share_is_found_again_by_what_it_costs(values: list[float], share: float) -> None:
    machine = Machine()
    one = program(machine)
    losses = dict(zip(SHARES, sorted(values), strict=True))

    def beside(axis: Axis, at: float) -> LoadBesideLoad:
        return LoadBesideLoad(axis=axis, share=at, rate=FULL / losses[at], rate_alone=FULL)

    one.load_beside_load = beside  # type: ignore[method-assign,assignment]
    curve = measured(one, repetitions=2).loads[0]
    cost = float(np.interp(share, (0.0, *SHARES), (1.0, *sorted(values))))
    again = curve.share_of(cost)
    assert again is not None
    assert np.interp(again, (0.0, *SHARES), (1.0, *sorted(values))) == pytest.approx(cost, abs=1e-6)
