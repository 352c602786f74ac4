"""What an accelerator's model answers, flags and refuses."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase, decode, holds_cases, over_counts, parse_shape
from elbowroom.models.gpu.model import GpuModel, penalty_table
from elbowroom.models.predict import FittedModel
from elbowroom.store.models import read_model, write_model
from gpu_samples import document, of_first_product, published_part, two_node_part

SHAPE = (8192, 4096, 7168)


def model() -> GpuModel:
    return GpuModel(published_part())


def test_a_measured_case_is_answered_with_its_measurement() -> None:
    case = DeviceCase(victim="gemm", mover="sm_idle", sms=20)
    answer = model().predict((case,))[0]
    assert answer.kept.value == 0.489
    assert answer.flags == ("measured",)
    assert model().predict((case,), law=True)[0].kept.value > 0.6


def test_a_case_that_leaves_the_shape_open_is_that_of_the_only_product() -> None:
    assert model().resolved(DeviceCase(victim="gemm", mover="sm_idle", sms=8)).shape == SHAPE


@pytest.mark.parametrize(
    ("case", "flag"),
    [
        (DeviceCase(victim="gemm", mover="sm_idle", sms=64), "extrapolated"),
        (
            DeviceCase(victim="triad", mover="sm_target", sms=8),
            "triad/sm_target not measured",
        ),
        (DeviceCase(victim="gemm", mover="sm_idle", sms=8, shape=(64, 64, 64)), "shape not measured"),
        (DeviceCase(victim="gemm", mover="sm_idle", sms=6, first="victim"), "victim first not measured"),
    ],
)
def test_what_was_not_measured_is_flagged(case: DeviceCase, flag: str) -> None:
    assert flag in model().predict((case,))[0].flags


def test_between_measured_numbers_of_sms_the_interval_is_as_wide_as_the_errors_held_out() -> None:
    answer = model().predict((DeviceCase(victim="gemm", mover="sm_idle", sms=12),))[0].kept
    assert answer.high / answer.low > 1.5


def test_a_copy_needs_a_node_where_several_were_measured() -> None:
    with pytest.raises(UsageError, match="measured nodes: 0, 1"):
        GpuModel(two_node_part()).predict((DeviceCase(victim="gemm", mover="copy", direction="d2h"),))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"mover": "sm_idle", "sms": 0}, "sms"),
        ({"mover": "sm_idle", "sms": 132}, "sms"),
        ({"mover": "copy", "direction": "host"}, "direction"),
        ({"mover": "copy", "direction": "d2d", "sms": 3}, "sms"),
        ({"mover": "sm_copy", "direction": "hbm", "sms": 3, "pace_mb_s": -1.0}, "pace"),
        ({"mover": "sm_idle", "sms": 3, "shape": [1, 2]}, "shape"),
        ({"victim": "cores", "mover": "copy", "direction": "d2h"}, "victim"),
    ],
)
def test_what_no_accelerator_can_have_is_refused(fields: dict[str, object], field: str) -> None:
    case = msgspec.convert({"victim": "gemm"} | fields, DeviceCase)
    with pytest.raises(UsageError) as refused:
        model().predict((case,))
    assert refused.value.field == field


def test_draws_of_a_measured_case_are_around_its_measurement() -> None:
    draws = model().draws((DeviceCase(victim="gemm", mover="sm_idle", sms=20),))
    assert draws.kept[0, 0] == 0.489
    assert abs(float(draws.kept[1:, 0].mean()) - 0.489) < 0.002


def test_the_penalty_table_has_every_measured_pair_and_no_extrapolated_one() -> None:
    table = penalty_table(published_part(), "made")
    measured = [item for item in table.penalties if item.measured]
    assert len(measured) == len(of_first_product())
    assert all("extrapolated" not in item.flags for item in table.penalties)
    worst = max(table.penalties, key=lambda item: item.victim_slowdown.value)
    assert worst.case.direction == "host"
    assert worst.victim_slowdown.low <= worst.victim_slowdown.value <= worst.victim_slowdown.high


def test_a_model_file_keeps_its_accelerator(tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", document(published_part()))
    assert read_model(tmp_path / "M.json").gpu == published_part()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sms": 1}, "gpu.sms"),
        ({"draws": ()}, "gpu.draws"),
        ({"names": ("hbm",)}, "gpu.names"),
        ({"values": (1.0,)}, "gpu.values"),
        ({"errors": ()}, "gpu.errors"),
    ],
)
def test_a_damaged_accelerator_is_refused(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    broken = msgspec.structs.replace(published_part(), **changes)
    write_model(tmp_path / "M.json", document(broken))
    with pytest.raises(UsageError) as refused:
        read_model(tmp_path / "M.json")
    assert refused.value.field == field


def test_a_file_of_an_accelerator_alone_has_no_model_of_the_host() -> None:
    with pytest.raises(UsageError, match="only an accelerator is in it"):
        FittedModel(document(published_part()))


def test_cases_are_read_from_toml() -> None:
    text = '[[gpu]]\nvictim = "gemm"\nmover = "sm_idle"\nsms = 4\n'
    assert holds_cases(text, "x")
    assert decode(text, "x") == (DeviceCase(victim="gemm", mover="sm_idle", sms=4),)
    assert not holds_cases("[messages]\nnode = 0\n", "x")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[[gpu]]\nvictim = "gemm"\nmovers = "copy"\n', "gpu.movers"),
        ('[[gpu]]\nvictim = "warp"\n', "gpu.victim"),
        ("gpu = []\n", "load"),
        ("gpu = 3\n", "gpu"),
    ],
)
def test_wrong_cases_of_a_file_are_refused(text: str, field: str) -> None:
    with pytest.raises(UsageError) as refused:
        decode(text, "x.toml")
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["", "1x2", "0x0x", "axbxc", "1x2x3x4"])
def test_a_wrong_shape_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not the shape of a product"):
        parse_shape(text)


def test_without_a_number_of_sms_several_are_asked_for() -> None:
    counts = [case.sms for case in over_counts(DeviceCase(victim="gemm", mover="sm_idle"), 10)]
    assert counts == [1, 2, 4, 8]
