"""Slowdowns of pairs from profiles of each alone: jobs of which the answer is known."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.forecast import NO_MODEL, Contended, Factor, forecast
from elbowroom.profile.profile import read_profile
from elbowroom.profile.replay import Replay, stretch
from elbowroom.profile.replay_job import half_nodes, replay_job
from made_profiles import MS, MadeJob

NIC = NicCurve(total=(1e9,))


def bursts(folder: Path, *, steps: int = 60, seed: int = 0) -> Analysis:
    """Like FT: 10 ms of computation, then all-to-all for 4 ms; two ranks on each of four nodes."""
    job = MadeJob(8, nodes=4, seed=seed)
    for _ in range(steps):
        job.compute(10 * MS, noise=0.3)
        job.alltoall(4_000_000 // 12)
    return analyse(read_profile(job.write(folder)), NIC)


def steady(folder: Path, *, steps: int = 100) -> Analysis:
    """Like CG: exchanges for 4 of each 4.1 ms."""
    job = MadeJob(8, nodes=4)
    for _ in range(steps):
        job.compute(MS // 10)
        job.exchange(2_000_000)
    return analyse(read_profile(job.write(folder)), NIC)


def computing(folder: Path) -> Analysis:
    """Like EP."""
    job = MadeJob(8, nodes=4)
    for _ in range(60):
        job.compute(14 * MS)
        job.allreduce()
    return analyse(read_profile(job.write(folder)), NIC)


def test_a_replay_alone_takes_as_long_as_the_profile(tmp_path: Path) -> None:
    for number, job in enumerate((bursts(tmp_path / "a"), steady(tmp_path / "b"))):
        part = stretch(replay_job(job), 0.0, job.duration)
        assert Replay([part], NIC.totals(8)).run()[0] == pytest.approx(job.duration, rel=0.01), number


def test_two_jobs_that_always_send_take_twice_as_long(tmp_path: Path) -> None:
    a, b = steady(tmp_path / "a"), steady(tmp_path / "b")
    result = forecast(a, b, offsets=8)
    # 4 ms of 4.1 ms are on the network, and a NIC that is always in use gives each job half of it.
    assert result.slowdown_a.value == pytest.approx(8 / 4.1, rel=0.02)
    assert result.slowdown_b.value == pytest.approx(8 / 4.1, rel=0.02)


def test_a_job_without_communication_disturbs_nobody(tmp_path: Path) -> None:
    result = forecast(bursts(tmp_path / "a"), computing(tmp_path / "b"), offsets=8)
    assert result.slowdown_a.value == pytest.approx(1, abs=0.01)
    assert result.slowdown_b.value == pytest.approx(1, abs=0.01)
    assert NO_MODEL in result.notes


def test_bursts_suffer_little_beside_bursts(tmp_path: Path) -> None:
    beside_bursts = forecast(bursts(tmp_path / "a"), bursts(tmp_path / "b", seed=1), offsets=8).slowdown_a
    steady_twice = forecast(steady(tmp_path / "c"), steady(tmp_path / "d"), offsets=8).slowdown_a
    assert 1 < beside_bursts.value < steady_twice.value


def test_an_exchange_of_all_gets_more_of_a_nic_than_one_message_beside_it(tmp_path: Path) -> None:
    # Six connections of each rank beside one: 4 ms of a burst become 4 * 7/6, and 4 ms of the other one's
    # exchanges 4 * 7 while a burst lasts.
    result = forecast(bursts(tmp_path / "a"), steady(tmp_path / "b"), offsets=8)
    assert result.slowdown_a.value == pytest.approx(1 + 4 / 6 / 14, abs=0.02)
    assert result.slowdown_b.value > 1.25


def test_bursts_gain_from_half_of_the_cores_beside_bursts_and_steady_jobs_do_not(tmp_path: Path) -> None:
    ft = forecast(bursts(tmp_path / "a"), bursts(tmp_path / "b", seed=1), half=True, offsets=8)
    cg = forecast(steady(tmp_path / "c"), steady(tmp_path / "d"), half=True, offsets=8)
    # 14 ms could become 12.3; 4.1 ms become 4 where the other's computation hides behind one's messages.
    assert ft.slowdown_a.high < 0.93
    assert cg.slowdown_a.low > 0.95
    assert ft.spread_a is not None
    assert ft.spread_a.value < ft.slowdown_a.value


def test_a_late_rank_delays_its_partners(tmp_path: Path) -> None:
    job = MadeJob(2)
    for _ in range(20):
        job.compute(10 * MS)
        job.exchange(1_000_000)
    alone = analyse(read_profile(job.write(tmp_path / "a")), NIC)
    # One of the two messages of an exchange is three times as long; both ranks of the job wait for that.
    part = stretch(replay_job(alone), 0.0, alone.duration)
    longer = part.flows.out.tolist().index(0)
    slow = [
        [(flow, work * (3 if flow == longer else 1), groups) for flow, work, groups in units]
        for units in part.units
    ]
    changed = msgspec.structs.replace(part, units=slow)
    # 20 transfers of 1 ms become 3 ms each; every rank's step is 2 ms longer, so the job is 40 ms longer.
    assert Replay([changed], NIC.totals(2)).run()[0] == pytest.approx(alone.duration + 0.04, rel=0.01)


def test_a_model_of_memory_slows_the_computation_down(tmp_path: Path) -> None:
    a, b = computing(tmp_path / "a"), computing(tmp_path / "b")
    found = Contended(a=Factor(value=1.5, low=1.5, high=1.5), notes=("stated",))
    result = forecast(a, b, contention=lambda _a, _b: found, offsets=4)
    assert result.slowdown_a.value == pytest.approx(1.5, rel=0.02)
    assert result.slowdown_b.value == pytest.approx(1.0, rel=0.02)
    assert "stated" in result.notes


def test_the_interval_of_a_slowdown_has_that_of_the_model(tmp_path: Path) -> None:
    a, b = computing(tmp_path / "a"), computing(tmp_path / "b")
    found = Contended(a=Factor(value=1.5, low=1.3, high=1.8))
    slower = forecast(a, b, contention=lambda _a, _b: found, offsets=4).slowdown_a
    # Both compute nearly always, and their offsets change nothing.
    assert slower.value == pytest.approx(1.5, rel=0.02)
    assert slower.low == pytest.approx(1.3, rel=0.02)
    assert slower.high == pytest.approx(1.8, rel=0.02)


def test_memory_matters_only_while_the_companion_computes(tmp_path: Path) -> None:
    job = MadeJob(8, nodes=4)
    for _ in range(60):
        job.compute(7 * MS)
        job.alltoall(7_000_000 // 12)
    half = analyse(read_profile(job.write(tmp_path / "half")), NIC)
    found = Contended(a=Factor(value=2.0, low=2.0, high=2.0))
    slower = forecast(computing(tmp_path / "a"), half, contention=lambda _a, _b: found, offsets=4).slowdown_a
    assert slower.value == pytest.approx(1.5, rel=0.05)


def test_the_interval_holds_the_value_and_the_seed_decides(tmp_path: Path) -> None:
    a, b = bursts(tmp_path / "a", steps=20), bursts(tmp_path / "b", steps=30, seed=1)
    first, again, other = (forecast(a, b, offsets=6, seed=seed) for seed in (1, 1, 2))
    assert first.slowdown_a.low <= first.slowdown_a.value <= first.slowdown_a.high
    assert first == again
    assert first != other


def test_half_of_each_nodes_ranks_go_to_a_node_of_their_own() -> None:
    assert half_nodes(np.array([0, 0, 0, 1, 1, 1])).tolist() == [0, 0, 1, 2, 2, 3]


def test_jobs_of_different_width_share_the_first_nodes(tmp_path: Path) -> None:
    job = MadeJob(2)
    job.compute(5 * MS)
    narrow = analyse(read_profile(job.write(tmp_path / "a")), NIC)
    result = forecast(narrow, bursts(tmp_path / "b", steps=5), offsets=2)
    assert any("2 and 4 nodes: they share the first 2" in note for note in result.notes)
