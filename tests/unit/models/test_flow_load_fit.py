"""FLOW's parameters for loads, fitted to runs of a machine that is FLOW itself."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.fit import fit
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.flow.regimes import regimes
from elbowroom.models.load import Computing, Load, LoadRow, Messages
from made_flow import situation_rates

SHAPE = Shape(name="made", cores_first_socket=12, numa_per_socket=1)
SIZE = 64_000_000
FLOW = {
    **dict.fromkeys(NAMES, 0.0),
    "core_local": 5000.0, "core_remote": 4800.0, "comm_first": 11000.0, "comm_second": 10500.0,
    "uplink": 44000.0, "link": 25000.0, "controller": 48000.0, "port": 29000.0, "crossing": 60000.0,
    "root": 90000.0, "floor_first": 0.6, "floor_second": 0.5, "weight_first": 1.0, "weight_second": 0.5,
    "cost_first": 1.0, "cost_second": 1.0, "remote_weight": 0.8, "remote_cost": 1.5, "dip_local": 0.03,
    "rise_local": 0.05,
}  # fmt: skip
EXTRA = {
    "peak": 20000.0,
    "roofline": 3.0,
    "latency_load": 0.7,
    "latency_0": 1.5,
    "latency_1": 6.0,
    "send": 0.9,
}
VECTOR = np.array([[FLOW[name] for name in NAMES]])
TRUTH = Extension(size=SIZE, names=tuple(EXTRA), values=np.array([list(EXTRA.values())]), switches=(4096,))


def curves(count: int = 8) -> Curves:
    asked = [Situation(comp_node=k % 2, comm_node=k % 2, n=1 + 11 * k // 7) for k in range(count)]
    values = situation_rates(VECTOR, SHAPE, *asked)[:, 0].T.tolist()
    rows = [
        Row(situation=at, comp_alone=a, comm_alone=b, comp_together=c, comm_together=d)
        for at, (a, b, c, d) in zip(asked, values, strict=True)
    ]
    return Curves(shape=SHAPE, rows=tuple(rows))


def known() -> FlowPart:
    """What a fit to situations would have found, with three draws near it."""
    values = tuple(VECTOR[0].tolist())
    draws = tuple(tuple((VECTOR[0] * factor).tolist()) for factor in (0.995, 1.0, 1.005))
    return FlowPart(
        names=NAMES,
        values=values,
        low=values,
        high=values,
        draws=draws,
        discrepancy=(0, 0, 0, 0),
    )


def group(count: int, intensity: float = 0.0, socket: int = 0) -> Computing:
    return Computing(socket=socket, node=0, count=count, intensity=intensity)


INTENSITIES = [
    Load(computing=(group(12, intensity),), messages=Messages(node=0))
    for intensity in (1.0, 2.0, 4.0, 8.0, 16.0)
]
SIZES = [
    Load(computing=(group(12),), messages=Messages(node=0, size=size))
    for size in (64, 256, 1024, 4096, 16384, 65536, 1 << 20)
]
SENT = [Load(computing=(group(n),), messages=Messages(node=0, direction="send")) for n in (4, 12)]
BOTH = [Load(computing=(group(9), group(9, socket=1)), messages=Messages(node=0))]


def rows(*loads: Load, scale: float = 1.0, kernel: str = "") -> list[LoadRow]:
    a, b, c, d = evaluate(VECTOR, TRUTH, prepare(SHAPE, loads)).streams[:, 0]
    return [
        LoadRow(
            load=load,
            comp_alone=a[k] * scale,
            comm_alone=b[k],
            comp_together=c[k] * scale,
            comm_together=d[k],
            kernel=kernel,
            source=f"p{k}",
        )
        for k, load in enumerate(loads)
    ]


@pytest.fixture(scope="module")
def fitted() -> FlowPart:
    return fit(curves(), rows(*INTENSITIES, *SIZES, *SENT), flow=known())


def test_the_fit_finds_what_the_runs_were_made_with(fitted: FlowPart) -> None:
    found = dict(zip(fitted.load.names, fitted.load.values, strict=True))
    for name, tolerance in (
        ("peak", 0.02),
        ("roofline", 0.1),
        ("latency_0", 0.02),
        ("latency_1", 0.02),
        ("send", 0.02),
    ):
        assert found[name] == pytest.approx(EXTRA[name], rel=tolerance)
    assert found["latency_load"] == pytest.approx(EXTRA["latency_load"], abs=0.1)
    assert 1024 < fitted.load.switches[0] <= 4096


def test_loads_that_were_not_measured_are_predicted(fitted: FlowPart) -> None:
    asked = [
        Load(computing=(group(8, 3.0),), messages=Messages(node=0, size=1000)),
        Load(computing=(group(12, 1.5),), messages=Messages(node=1, size=32768, threads=2)),
    ]
    part = fitted.load
    law = Extension(size=SIZE, names=part.names, values=np.array([part.values]), switches=part.switches)
    said = evaluate(VECTOR, law, prepare(SHAPE, asked)).streams
    assert np.allclose(said, evaluate(VECTOR, TRUTH, prepare(SHAPE, asked)).streams, rtol=0.03)


def test_what_was_measured_is_known_and_the_rest_has_no_parameters(fitted: FlowPart) -> None:
    assert fitted.load.measured == ("intensity", "sizes", "send")
    assert not {"both", "thread_gain", "copy_cost"} & set(fitted.load.names)
    assert (fitted.load.size_low, fitted.load.size_high, fitted.load.intensity_high) == (64, SIZE, 16.0)


def test_situations_stay_as_they_were_fitted(fitted: FlowPart) -> None:
    assert msgspec.structs.replace(fitted, load=None) == known()
    assert len(fitted.load.draws) == len(fitted.draws)


def test_intervals_hold_the_fit(fitted: FlowPart) -> None:
    for value, low, high in zip(fitted.load.values, fitted.load.low, fitted.load.high, strict=True):
        assert low <= value <= high


def test_another_kernel_has_a_factor_of_its_own() -> None:
    found = fit(curves(), rows(*INTENSITIES, scale=0.8, kernel="triad_cursor"), flow=known())
    assert found.load.values[found.load.names.index("peak")] == pytest.approx(EXTRA["peak"], rel=0.06)
    assert not any("kernel" in name for name in found.load.names)


def test_rows_with_both_sockets_teach_flow_itself() -> None:
    start = msgspec.structs.replace(known(), flags=("both sockets never computed together", "other"))
    found = fit(curves(), rows(*INTENSITIES[:3], *BOTH), flow=start)
    assert found.values != start.values
    assert found.flags == ("other",)


def test_rows_of_situations_only_tell_nothing_more() -> None:
    plain = rows(Load(computing=(group(3),), messages=Messages(node=0)))
    assert fit(curves(), plain, flow=known()) == known()


def test_a_row_without_any_bandwidth_is_refused() -> None:
    empty = LoadRow(load=INTENSITIES[0], source="p9")
    with pytest.raises(UsageError, match="p9"):
        fit(curves(), [*rows(*INTENSITIES), empty], flow=known())


def test_a_switch_of_the_protocol_is_found_and_none_is_invented() -> None:
    sizes = [2**k for k in range(2, 25)]
    smooth = [1.5 + size / 11000 for size in sizes]
    stepped = [time + 3 * (size >= 4096) for size, time in zip(sizes, smooth, strict=True)]
    assert [item.first for item in regimes(sizes, smooth)] == [0]
    found = regimes(sizes, stepped)
    assert found[0].first == 0
    assert 2048 < found[1].first <= 4096
    assert [item.latency for item in found] == pytest.approx([1.5, 4.5], rel=1e-3)


def test_noise_makes_no_regimes() -> None:
    sizes = [2**k for k in range(2, 25)]
    noise = np.random.default_rng(1).normal(1, 0.02, len(sizes))
    assert len(regimes(sizes, [(1.5 + s / 11000) * e for s, e in zip(sizes, noise, strict=True)])) == 1


def test_few_sizes_are_one_regime() -> None:
    assert regimes([64], [1.5])[0].latency == pytest.approx(1.5)
    assert len(regimes([64, 128], [1.5, 9.0])) == 1
