"""An accelerator's model fitted to samples: what it recovers, and what it admits."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import gpu_samples
from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.fit import fit, tiles_of
from elbowroom.models.gpu.law import arrays, rates
from elbowroom.models.gpu.model import GpuModel
from elbowroom.models.gpu.samples import GpuSample
from gpu_samples import LINKS, OTHER_PRODUCT, of_first_product, published, published_part, two_node_part

SMS = 108
TRUE = {
    "hbm": 1.9e6, "issue": 1.8, "corner": 6.0, "traffic": 2.0, "quant": 0.8, "hold": 1.3, "late": 0.4,
    "engine": 6e4, "sm_hbm": 9e3, "sm_host": 4e3, "store": 2e4, "engine_weight": 0.2, "sm_weight": 0.9,
    "stall_gemm": 0.3, "stall_triad": 0.7, "stall_chain": 0.2, "stall_power": 1.1, "launch_engine": 0.02,
    "launch_sm": 0.1, "link_d2h_0": 2.4e4, "link_h2d_0": 2.5e4,
}  # fmt: skip
SHAPE, TILE = (4096, 4096, 4096), (128, 128)
FITTED, UNSEEN = (2, 5, 8, 13, 16, 24, 32), (4, 10, 20, 28)


def cases(counts: tuple[int, ...]) -> list[DeviceCase]:
    found = []
    for victim in ("gemm", "triad"):
        for mover, direction in (("sm_idle", ""), ("sm_copy", "hbm"), ("sm_copy", "host")):
            found += [(victim, mover, direction, count) for count in counts]
    found += [("gemm", "sm_target", "", count) for count in counts]
    found += [(victim, "copy", way, 0) for victim in ("gemm", "triad", "chain") for way in ("d2h", "d2d")]
    plain = [
        {"victim": v, "mover": m, "direction": d, "sms": k, "node": 0 if d == "d2h" and m == "copy" else -1}
        for v, m, d, k in found
    ]
    return [
        msgspec.convert(item | ({"shape": SHAPE} if item["victim"] == "gemm" else {}), DeviceCase)
        for item in plain
    ]


def made(counts: tuple[int, ...], noise: float = 0.0) -> list[GpuSample]:
    """Samples that the law itself makes."""
    wanted = cases(counts)
    tiles = [float(tiles_of(case.shape, TILE)) for case in wanted]
    traffic = [2e5 if case.victim == "gemm" else 0.0 for case in wanted]
    values = {name: np.array([[value]]) for name, value in TRUE.items()}
    got = rates(values, arrays(SMS, wanted, tiles, traffic))
    factors = 1 + noise * np.random.default_rng(7).standard_normal((3, len(wanted)))
    return [
        GpuSample(
            case=case,
            kept=float(got.kept[0, k] * factors[0, k]),
            victim_alone=float(got.triad_alone[0, k]) or 250.0,
            unit="MB/s" if case.victim == "triad" else "TFLOP/s",
            mover_alone=float(got.mover_alone[0, k] * factors[1, k]) or None,
            mover_together=float(got.mover_together[0, k] * factors[2, k]) or None,
            spread=(max(noise, 0.001), None, None),
            traffic=float(got.triad_alone[0, k]) or traffic[k],
        )
        for k, case in enumerate(wanted)
    ]


@pytest.fixture(scope="module")
def recovered() -> GpuModel:
    return GpuModel(fit(made(FITTED), SMS, device="made"))


def test_numbers_of_sms_that_were_not_measured_are_predicted(recovered: GpuModel) -> None:
    truth = [item for item in made(UNSEEN) if item.case.sms]
    predicted = recovered.predict([item.case for item in truth])
    errors = [abs(p.kept.value - item.kept) / item.kept for p, item in zip(predicted, truth, strict=True)]
    assert np.mean(errors) < 0.02
    inside = [p.kept.low <= item.kept <= p.kept.high for p, item in zip(predicted, truth, strict=True)]
    assert np.mean(inside) > 0.8


def test_the_tiles_of_a_product_are_found(recovered: GpuModel) -> None:
    product = next(item for item in recovered.part.victims if item.victim == "gemm")
    assert product.tiles == tiles_of(SHAPE, TILE)


@pytest.mark.parametrize("name", ["hold", "engine", "sm_hbm", "store", "launch_engine", "link_d2h_0"])
def test_parameters_that_samples_tell_of_are_recovered(recovered: GpuModel, name: str) -> None:
    part = recovered.part
    assert part.values[part.names.index(name)] == pytest.approx(TRUE[name], rel=0.1)


def test_what_no_sample_tells_of_is_named(recovered: GpuModel) -> None:
    assert set(recovered.part.unknown) == {"late", "stall_chain", "launch_sm"}
    assert any("launch_sm" in note for note in recovered.part.notes)


def test_of_the_published_table_plans_are_predicted_and_held_sms_are_not() -> None:
    errors = {item.family: item for item in published_part().errors}
    planned, held = errors["gemm/sm_target"], errors["gemm/sm_idle"]
    assert planned.held_out is not None
    assert planned.held_out < 0.02 < planned.share_rule
    assert held.held_out is not None
    assert held.held_out > 0.1
    assert held.discrepancy > 0.1


def test_a_published_product_that_was_not_fitted_is_predicted_where_it_is_planned() -> None:
    model = GpuModel(published_part())
    unseen = [item for item in published() if item.case.shape == OTHER_PRODUCT and item.case.planned]
    predicted = model.predict([item.case for item in unseen])
    errors = [abs(p.kept.value - item.kept) / item.kept for p, item in zip(predicted, unseen, strict=True)]
    rule = [abs(1 - item.case.sms / gpu_samples.SMS - item.kept) / item.kept for item in unseen]
    assert np.mean(errors) < 0.01 < np.mean(rule)
    assert all("shape not measured" in item.flags for item in predicted)


def test_a_family_that_the_fit_does_not_help_is_not_called_better() -> None:
    errors = {item.family: item for item in published_part().errors}
    copy = errors["triad/copy/d2h"]
    assert copy.held_out is not None
    assert copy.better == (copy.held_out < min(copy.share_rule, copy.max_min_rule, copy.no_loss_rule))
    assert not copy.better


def test_links_alone_make_a_model_of_links() -> None:
    part = fit((), gpu_samples.SMS, links=LINKS)
    model = GpuModel(part)
    assert model.nodes("d2h") == (0, 1)
    assert model.link("d2h", 1).value == pytest.approx(21000.0)
    with pytest.raises(UsageError, match="was not measured"):
        model.predict([DeviceCase(victim="gemm", mover="sm_idle", sms=4)])


def test_links_of_two_nodes_stay_apart() -> None:
    model = GpuModel(two_node_part())
    first, second = (model.link("d2h", node) for node in (0, 1))
    assert second.high < first.low


def test_a_fit_of_nothing_beside_anything_is_refused() -> None:
    alone = msgspec.structs.replace(of_first_product()[0], case=DeviceCase(victim="gemm"))
    with pytest.raises(UsageError, match="no case of a kernel beside"):
        fit([alone], gpu_samples.SMS)


def test_samples_of_more_sms_than_there_are_are_refused() -> None:
    with pytest.raises(UsageError, match="the accelerator has 20 SMs"):
        fit(of_first_product(), 20)
