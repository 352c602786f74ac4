"""Results of runs as samples of an accelerator's model, and as rows of FLOW."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.models.copy_rows import base_of, copy_rows
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.fit import fit
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.gpu.samples import links, samples
from elbowroom.models.load import Computing, Copy, Load, LoadRow, load_of
from elbowroom.models.run_data import Layout
from elbowroom.points.gpu import GpuCase
from elbowroom.points.streams import StreamBeside, StreamResult
from elbowroom.stats.interval import Side
from gpu_results import Workload, result, side, summary

PRODUCT = Workload(victim="gemm", mover="sm_copy", direction="hbm", sms=8)


def test_a_product_beside_sms_that_copy_is_a_sample_with_its_spreads() -> None:
    found, left_out = samples([result(PRODUCT, side(8e8, 6e8, "Mflop/s"), side(5e4, 4.9e4))])
    assert left_out == {}
    sample = found[0]
    assert (sample.case.sms, sample.case.shape, sample.case.first) == (8, (8192, 4096, 7168), "victim")
    assert (sample.kept, sample.mover_alone, sample.mover_together) == (0.75, 5e4, 4.9e4)
    assert sample.spread[0] == pytest.approx(0.01 / 1.96, rel=1e-3)
    assert sample.traffic == pytest.approx(404_600, rel=0.01)


def test_the_workload_of_the_plans_is_read() -> None:
    case = GpuCase(victim="gemm", mover="sm_idle", sms=4, first="mover")
    sample = samples([result(case, side(800.0, 700.0, "TFLOP/s"), Side())])[0][0]
    assert (sample.case.text(), sample.mover_alone) == ("gemm 8192x4096x7168 beside 4 SMs held idle", None)


def test_launches_are_rates_of_their_times() -> None:
    chain = Workload(victim="chain", mover="copy", direction="d2h", node=0)
    sample = samples([result(chain, side(4.0, 5.0, "us"), side(3e4, 3e4))])[0][0]
    assert sample.kept == pytest.approx(0.8)
    assert (sample.victim_alone, sample.unit) == (0.25, "1/us")


def test_the_order_of_starts_counts_only_where_sms_are_held() -> None:
    copy = Workload(victim="gemm", mover="copy", direction="d2d", first="victim")
    sample = samples([result(copy, side(800.0, 799.0, "TFLOP/s"), side(8e4, 8e4))])[0][0]
    assert sample.case.first == "mover"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "n/a"}, "status n/a"),
        ({"role": "control"}, "control"),
        ({"comp": Side(alone=summary(1.0))}, "not measured alone and together"),
    ],
)
def test_points_that_cannot_be_samples_are_counted_by_reason(changes: Any, reason: str) -> None:
    point = result(PRODUCT, side(800.0, 600.0, "TFLOP/s"), side(5e4, 5e4))
    assert samples([msgspec.structs.replace(point, **changes)]) == ((), {reason: 1})


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"holders": "pairs"}, "SMs are held in pairs"),
        ({"plan_for": "others"}, "the product is planned for the SMs that are not held"),
    ],
)
def test_ways_of_holding_sms_that_the_law_does_not_know_are_left_out(how: Any, reason: str) -> None:
    case = GpuCase(victim="gemm", mover="sm_idle", sms=4, **how)
    assert samples([result(case, side(800.0, 700.0, "TFLOP/s"), Side())]) == ((), {reason: 1})


def test_of_copies_of_several_sizes_the_largest_ones_are_the_link() -> None:
    small, large = (
        result(
            Workload(victim="cores", mover="copy", direction="h2d", node=1, bytes=size),
            side(9e4, 8e4), side(rate, rate),
        )
        for size, rate in ((1 << 10, 500.0), (1 << 26, 28000.0))
    )  # fmt: skip
    (link,) = links([small, large])
    assert (link.direction, link.node, link.rate) == ("h2d", 1, 28000.0)


LAYOUT = Layout(
    shape=Shape(name="made", cores_first_socket=8, numa_per_socket=1, sockets=2),
    nodes=(0, 4),
    first=frozenset(range(8)),
)
BASE = base_of("memset_nt", 64_000_000, LAYOUT)


def test_cores_beside_copies_are_a_row_with_the_copy_together() -> None:
    workload = Workload(victim="cores", mover="copy", direction="d2h", node=4)
    point = result(workload, side(9e4, 8e4), side(3e4, 2e4))
    (row,), left_out = copy_rows([point], {"p": (0, 1, 8)}, BASE)
    assert left_out == {}
    assert row.load.copies == (Copy(node=1, demand=3e4),)
    assert [(group.socket, group.count) for group in row.load.computing] == [(0, 2), (1, 1)]
    assert (row.comp_alone, row.comp_together, row.copies_together) == (9e4, 8e4, (2e4,))


def test_three_streams_are_a_row_of_cores_and_copies_and_one_of_all() -> None:
    workload = Workload(victim="cores", mover="copy", direction="d2h", node=0, messages=True)
    rates = {"cores": (9e4, 7e4), "copies": (3e4, 1.5e4), "messages": (1e4, 8e3)}
    streams = tuple(
        StreamResult(
            name=name,
            alone=summary(alone),
            beside=(
                StreamBeside(phase="AB", together=summary(1.0)),
                StreamBeside(phase="ABC", together=summary(together)),
            ),
        )
        for name, (alone, together) in rates.items()
    )
    point = result(workload, side(9e4, 8e4), side(3e4, 2e4), streams=streams)
    pair, three = copy_rows([point], {"p": (0, 1)}, BASE)[0]
    assert (pair.load.messages, pair.copies_together) == (None, (2e4,))
    assert three.load.messages is not None
    assert (three.comp_together, three.comm_together, three.copies_together) == (7e4, 8e3, (1.5e4,))


def test_copies_beside_messages_are_a_row_without_cores() -> None:
    workload = Workload(victim="copy", mover="messages", direction="d2h", node=0)
    (row,), _ = copy_rows([result(workload, side(3e4, 2e4), side(1e4, 9e3))], {"p": ()}, BASE)
    assert row.load.computing == ()
    assert (row.comm_alone, row.comm_together, row.copies_together) == (1e4, 9e3, (2e4,))


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (Workload(victim="cores", mover="copy", direction="d2h"), "copies whose buffer is on no known node"),
        (
            Workload(victim="cores", mover="sm_idle", sms=3, node=0),
            "no copy between host and device beside cores or messages",
        ),
    ],
)  # fmt: skip
def test_cases_that_flow_cannot_take_are_counted_by_reason(workload: Workload, reason: str) -> None:
    point = result(workload, side(9e4, 8e4), side(3e4, 2e4))
    assert copy_rows([point], {"p": (0,)}, BASE) == ((), {reason: 1})


def truth() -> dict[str, float]:
    return {
        **dict.fromkeys(NAMES, 0.0), "core_local": 5000.0, "core_remote": 4800.0, "comm_first": 11000.0,
        "comm_second": 11000.0, "uplink": 44000.0, "link": 25000.0, "controller": 48000.0, "port": 29000.0,
        "crossing": 60000.0, "root": 90000.0, "floor_first": 0.4, "floor_second": 0.4, "weight_first": 1.0,
        "weight_second": 1.0, "cost_first": 1.0, "cost_second": 1.0, "remote_weight": 0.8, "remote_cost": 1.5,
    }  # fmt: skip


def test_what_copies_lose_beside_cores_is_learned_from_their_own_rates() -> None:
    """Copies that cost a controller twice what messages do, on another number of cores than was measured."""
    shape = Shape(name="made", cores_first_socket=12, numa_per_socket=1, sockets=2)
    flow = np.array([[truth()[name] for name in NAMES]])
    extension = Extension(names=("copy_cost", "copy_floor"), values=np.array([[2.0, 0.5]]))
    situations = [
        Situation(comp_node=node, comm_node=comm, n=n)
        for node in (0, 1) for comm in (0, 1) for n in (1, 3, 6, 9, 12)
    ]  # fmt: skip
    streams = evaluate(flow, Extension(), prepare(shape, [load_of(at) for at in situations])).streams[:, 0]
    rows = [
        Row(situation=at, comp_alone=a, comm_alone=b, comp_together=c, comm_together=d)
        for at, (a, b, c, d) in zip(situations, streams.T.tolist(), strict=True)
    ]
    loads = [
        Load(computing=(Computing(socket=0, node=0, count=n),), copies=(Copy(node=0, demand=20000.0),))
        for n in (2, 4, 6, 8, 10, 12)
    ]
    got = evaluate(flow, extension, prepare(shape, loads))
    copies = [
        LoadRow(
            load=load,
            comp_alone=float(got.streams[0, 0, k]),
            comp_together=float(got.streams[2, 0, k]),
            copies_together=(float(got.copies[0, 0, k]),),
        )
        for k, load in enumerate(loads)
    ]
    known = tuple(truth().values())
    fitted = FlowPart(names=NAMES, values=known, low=known, high=known, draws=(known,) * 4)
    rest = [row for k, row in enumerate(copies) if k != 3]
    part = fit(Curves(shape=shape, rows=tuple(rows)), rest, flow=fitted)
    assert part.load is not None
    assert part.load.measured == ("copies",)
    values = Extension(names=part.load.names, values=np.array([part.load.values]))
    said = evaluate(part.vectors[:1], values, prepare(shape, [loads[3]]))
    assert said.copies[0, 0, 0] == pytest.approx(got.copies[0, 0, 3], rel=0.03)
    assert said.copies[0, 0, 0] < 19000.0
