"""What a model lets a lever gain at most (guard/prediction.py), on a published machine."""

from __future__ import annotations

from typing import Any, cast

import pytest

from elbowroom.guard.guarding import _place_of
from elbowroom.guard.lever import NOT_IN_MODEL, GuardedProgram, Lever, LeverAccess, LeverReading
from elbowroom.guard.levers import progress, starpu
from elbowroom.guard.prediction import PredictedGains
from elbowroom.guard.steering import RunningLever
from elbowroom.models.published import of_published
from elbowroom.stats.interval import Interval

FAST, SLOW = 20e9, 2e9
CORES = 17


@pytest.fixture(scope="module")
def fast() -> PredictedGains:
    return PredictedGains(of_published("henri"), FAST)


def access_of(gains: PredictedGains | None, monkeypatch: pytest.MonkeyPatch) -> LeverAccess:
    program = GuardedProgram(words=("app",), libraries={}, env={})
    monkeypatch.setattr(LeverAccess, "cores", lambda _: frozenset(range(CORES)))
    nothing = cast("Any", None)
    return LeverAccess(
        program=program, board=nothing, keeper=nothing, processes=(), gains=gains, no_model="none is there"
    )


def test_a_lever_gains_more_where_more_bytes_move(fast: PredictedGains) -> None:
    slow = PredictedGains(of_published("henri"), SLOW)
    assert 0 < slow.gain(CORES, 0, of_messages=False).value < fast.gain(CORES, 0, of_messages=False).value
    assert PredictedGains(of_published("henri"), 0.0).gain(CORES, 0, of_messages=False).value == 0


def test_a_lever_gains_at_most_what_it_takes_from_the_memory(fast: PredictedGains) -> None:
    gains = [fast.gain(CORES, after, of_messages=True).value for after in (0, 12, CORES)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > gains[-1] == 0


def test_what_another_job_s_computation_loses_is_no_gain(fast: PredictedGains) -> None:
    both, messages = (fast.gain(CORES, 0, of_messages=which).value for which in (False, True))
    assert messages <= both


def test_the_interval_contains_the_gain_and_is_a_share_of_a_step(fast: PredictedGains) -> None:
    gain = fast.gain(10**6, 0, of_messages=False)
    assert gain.bounds is not None
    assert 0 <= gain.bounds[0] <= gain.value <= gain.bounds[1] <= 1


def test_a_setting_that_spares_half_of_the_workers_gains_less(
    fast: PredictedGains, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = access_of(fast, monkeypatch)
    spare, hold = (starpu.LEVER.predicted(setting, access) for setting in ("spare", "hold"))
    assert isinstance(spare, Interval)
    assert isinstance(hold, Interval)
    assert spare.value < hold.value


def test_what_is_not_predicted_has_its_reason(fast: PredictedGains, monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.LEVER.predicted("idle", access_of(fast, monkeypatch)) == NOT_IN_MODEL
    assert starpu.LEVER.predicted("hold", access_of(None, monkeypatch)) == "n/a: none is there"


def running(lever: Lever, predicted: float | None) -> RunningLever:
    gain = "n/a" if predicted is None else Interval(value=predicted, low=0.0, high=1.0)
    reading = LeverReading(setting="on", requested="on", got="on", works=True, predicted=gain)
    return RunningLever(lever, (reading,))


def test_levers_that_may_gain_most_are_tested_first_and_those_that_may_not_gain_last() -> None:
    class Numbered(Lever):
        def __init__(self, number: int) -> None:
            self.number = number  # type: ignore[misc]

    gains = {1: 0.001, 2: None, 3: 0.05, 4: 0.2}
    order = sorted((running(Numbered(number), gain) for number, gain in gains.items()), key=_place_of)
    assert [one.lever.number for one in order] == [4, 3, 2, 1]
