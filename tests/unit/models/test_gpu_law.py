"""The law of an accelerator, on cases whose answer follows from arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.law import PARAMETERS, arrays, rates

SMS = 132
VALUES = {
    "hbm": 4e6, "issue": 1.5, "corner": 50.0, "traffic": 1.0, "quant": 1.0, "hold": 1.0, "late": 0.0,
    "engine": 8e4, "sm_hbm": 2e4, "sm_host": 1e4, "store": 2.5e4, "engine_weight": 0.1, "sm_weight": 1.0,
    "stall_gemm": 0.5, "stall_triad": 0.5, "stall_chain": 0.5, "stall_power": 1.0, "launch_engine": 0.25,
    "launch_sm": 1.0, "link_d2h_0": 3e4,
}  # fmt: skip


def values(**changes: float) -> dict[str, Array]:
    return {name: np.array([[value]]) for name, value in (VALUES | changes).items()}


def kept(case: DeviceCase, tiles: float = 0.0, traffic: float = 0.0, **changes: float) -> float:
    return float(rates(values(**changes), arrays(SMS, [case], [tiles], [traffic])).kept[0, 0])


def target(sms: int) -> DeviceCase:
    return DeviceCase(victim="gemm", mover="sm_target", sms=sms)


def idle(sms: int, victim: str = "gemm", first: str = "mover") -> DeviceCase:
    return DeviceCase(victim=victim, mover="sm_idle", sms=sms, first=first)  # type: ignore[arg-type]


def test_every_parameter_of_the_law_has_a_value_here() -> None:
    assert {item.name for item in PARAMETERS} == {name for name in VALUES if not name.startswith("link_")}


@pytest.mark.parametrize(("sms", "waves"), [(4, 8), (16, 9), (32, 11), (68, 16)])
def test_a_planned_product_takes_whole_waves_of_its_tiles(sms: int, waves: int) -> None:
    """1024 tiles on 132 SMs are 8 waves."""
    assert kept(target(sms), tiles=1024) == pytest.approx(8 / waves, rel=1e-6)


def test_a_product_without_waves_loses_in_proportion_to_its_sms() -> None:
    assert kept(target(33), tiles=1024, quant=0.0) == pytest.approx(0.75)


def test_held_sms_may_cost_more_sms_than_they_are() -> None:
    assert kept(idle(10), hold=2.0) == pytest.approx(kept(target(20)))


def test_sms_that_are_asked_for_last_are_not_lost() -> None:
    assert kept(idle(20, first="victim"), late=0.0) == pytest.approx(1.0)
    assert kept(idle(20, first="victim"), late=0.5) == pytest.approx(kept(idle(10)))


def test_a_copied_byte_inside_the_device_takes_its_memory_twice() -> None:
    copy = DeviceCase(victim="triad", mover="copy", direction="d2d", pace_mb_s=5e4)
    to_host = DeviceCase(victim="triad", mover="copy", direction="d2h", node=0)
    assert kept(copy) == pytest.approx(1 - 1e5 / 4e6, rel=1e-3)
    assert kept(to_host) == pytest.approx(1 - 3e4 / 4e6, rel=1e-3)


def test_a_product_that_hardly_moves_data_does_not_feel_a_copy_engine() -> None:
    copy = DeviceCase(victim="gemm", mover="copy", direction="d2d")
    assert kept(copy, tiles=1024, traffic=4e5) == pytest.approx(1.0, abs=1e-3)


def test_idle_sms_cost_a_triad_nothing_until_the_others_ask_for_less_than_the_memory_carries() -> None:
    assert kept(idle(20, "triad")) == pytest.approx(1.0, abs=1e-3)
    assert kept(idle(88, "triad")) == pytest.approx(1.5 / 3, rel=1e-3)


def test_stores_stall_only_where_they_are_faster_than_their_link() -> None:
    def case(sms: int, pace: float) -> DeviceCase:
        return DeviceCase(victim="gemm", mover="sm_copy", direction="host", sms=sms, pace_mb_s=pace)

    assert kept(case(8, 2e4)) == pytest.approx(kept(idle(8)))
    assert kept(case(8, 0.0)) == pytest.approx(kept(idle(8)) / (1 + 0.5 * 8))
    assert kept(case(8, 5e4)) == pytest.approx(kept(case(8, 0.0)))


def test_launches_wait_for_what_they_share_the_device_with() -> None:
    copy = DeviceCase(victim="chain", mover="copy", direction="d2h", node=0)
    assert kept(copy) == pytest.approx(0.8)
    assert kept(idle(4, "chain")) == pytest.approx(0.5)


def test_sms_that_copy_beside_a_triad_share_its_memory_and_both_lose() -> None:
    case = DeviceCase(victim="triad", mover="sm_copy", direction="hbm", sms=66)
    got = rates(values(), arrays(SMS, [case], [0.0], [0.0]))
    assert got.mover_alone[0, 0] == pytest.approx(1.32e6)
    assert got.mover_together[0, 0] == pytest.approx(1e6)
    assert got.kept[0, 0] == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("mover", ["sm_idle", "sm_target"])
def test_what_moves_nothing_has_no_rate(mover: str) -> None:
    case = DeviceCase(victim="gemm", mover=mover, sms=4)  # type: ignore[arg-type]
    got = rates(values(), arrays(SMS, [case], [1024.0], [0.0]))
    assert got.mover_alone[0, 0] == got.mover_together[0, 0] == 0.0
    assert math.isfinite(got.kept[0, 0])
