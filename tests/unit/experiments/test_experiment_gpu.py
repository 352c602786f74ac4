"""`gpu` and `gpu-overlap` find what was put into results: what each side keeps, and named sources of loss."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.gpu import results as gpu_rows
from elbowroom.experiments.gpu_overlap import results as overlap_rows
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Machine
from elbowroom.plan.validation import validate
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Expansion, Point
from elbowroom.points.streams import StreamBeside, StreamPayload, StreamResult
from elbowroom.results.result import PointResult
from studies import SMALL, by_key, machine, measured, sound

HOST = machine(16, 2, 2)


def expanded(
    name: str, here: Machine = HOST, kernels: tuple[str, ...] | None = None, **settings: str
) -> Expansion:
    plan = apply(load(name), Overrides(settings=settings, kernels=kernels))
    expansion = experiments.get(name).expand(plan, here)
    validate(expansion.points, here, scheduling=plan.scheduling)
    return expansion


def case_of(point: Point | PointResult) -> GpuCase:
    assert isinstance(point.workload, GpuCase)
    return point.workload


def overlap_truth(kept: dict[str, float]) -> Any:
    """Victims keep these shares beside the movers of that name."""

    def truth(point: Point) -> tuple[float, float, float, float]:
        share = kept.get(overlap_rows.mover_name(case_of(point)), 1.0)
        return 1000.0, 1000.0 * share, 500.0, 500.0

    return truth


def test_each_victim_meets_each_mover_for_each_k_in_both_orders() -> None:
    cases = [case_of(point) for point in expanded("gpu-overlap", sms="4,8").points if point.role == "point"]
    held = {
        (case.victim, overlap_rows.mover_name(case), case.sms, case.pace_mb_s, case.first) for case in cases
    }
    for victim in ("gemm", "triad", "chain"):
        assert {(victim, "sm_idle", k, 0.0, first) for k in (4, 8) for first in ("victim", "mover")} <= held
        assert (victim, "sm_host", 8, 50000.0, "mover") in held
        assert (victim, "d2d", 0, 0.0, "victim") in held
    targets = [case for case in cases if case.mover == "sm_target"]
    assert {(case.victim, case.first) for case in targets} == {("gemm", "victim")}
    assert {case.node for case in cases if case.direction == "h2d"} == {0}


def test_only_movers_that_hold_sms_hold_them_in_pairs_and_only_products_are_planned_for_others() -> None:
    settings = {"sms": "8", "holders": "single,pairs", "plan_for": "all,others", "orders": "victim"}
    cases = [case_of(point) for point in expanded("gpu-overlap", **settings).points if point.role == "point"]
    ways = {
        (case.victim, overlap_rows.mover_name(case)): sum(
            other.victim == case.victim
            and overlap_rows.mover_name(other) == overlap_rows.mover_name(case)
            and other.pace_mb_s == case.pace_mb_s
            for other in cases
        )
        for case in cases
    }
    assert {ways["gemm", mover] for mover in ("sm_idle", "sm_hbm", "sm_host")} == {4}
    assert {ways[victim, "sm_idle"] for victim in ("triad", "chain")} == {2}
    assert {ways["gemm", mover] for mover in ("sm_target", "h2d", "d2d")} == {1}


def test_each_way_of_holding_sms_has_a_table_and_sources_of_its_own() -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        case = case_of(point)
        share = {"single": 0.9, "pairs": 0.8}[case.holders] - 0.3 * (case.plan_for == "others")
        return 1000.0, 1000.0 * (0.7 if case.mover == "sm_target" else share), 500.0, 500.0

    settings = {"sms": "8", "victims": "gemm", "movers": "sm_idle,sm_target", "orders": "victim"}
    settings |= {"holders": "single,pairs", "plan_for": "all,others", "control": "false"}
    found = measured(expanded("gpu-overlap", **settings).points, truth)
    tables = experiments.get("gpu-overlap").tables(found, HOST)
    assert [table.title for table in tables[:4]] == [
        f"GEMM, planned for {plan_for}: percent kept, k SMs held {how}, victim first"
        for how in ("one by one", "in pairs")
        for plan_for in ("all", "others")
    ]
    assert {tuple(row[0] for row in table.rows) for table in tables[:4]} == {
        ("SMs idle", "planned for fewer")
    }
    lost = {item.contrast: item.value for item in overlap_rows.sources(found) if item.name == "SM occupancy"}
    assert lost == pytest.approx(
        {
            "idle SMs": 0.1,
            "idle SMs: pairs": 0.2,
            "idle, less planned: others": 0.1,
            "idle, less planned: pairs, others": 0.2,
        },
        abs=0.02,
    )


def test_copies_run_from_buffers_on_every_node_beside_every_kernel() -> None:
    points = [point for point in expanded("gpu").points if point.role == "point"]
    pairs = {
        (point.kernel, case_of(point).direction, point.comm_node)
        for point in points
        if not case_of(point).sends
    }
    assert {("memset_nt", "h2d", 0), ("polling", "both", 1), ("prime", "d2h", 1)} <= pairs
    three = [point for point in points if case_of(point).messages]
    assert {point.kernel for point in three} == {"triad"}
    assert all(len({*point.comp_cores, point.comm_core, *point.peer_cores, case_of(point).submit_core})
               == point.n + 3 for point in three)  # fmt: skip
    assert len({point.id for point in points}) == len(points)


def test_without_a_core_for_each_end_messages_are_not_applicable() -> None:
    expansion = expanded("gpu", SMALL)
    assert not any(case_of(point).sends for point in expansion.points)
    assert [note.what for note in expansion.notes if "need a core each" in note.reason] == [
        "copies beside messages"
    ]
    shared = expanded("gpu", SMALL, scheduling="true")
    assert any(case_of(point).messages for point in shared.points)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("gpu-overlap", "sms", "0"),
        ("gpu-overlap", "sms", "2000"),
        ("gpu-overlap", "movers", "nvlink"),
        ("gpu-overlap", "holders", "triples"),
        ("gpu-overlap", "plan_for", "none"),
        ("gpu-overlap", "paces_mb_s", "-1"),
        ("gpu-overlap", "gemm", "4,4"),
        ("gpu", "directions", "d2d"),
        ("gpu", "copy_sizes", "0"),
        ("gpu", "beside_messages", "nothing"),
    ],
)
def test_wrong_keys_are_usage_errors_that_name_the_key(name: str, key: str, value: str) -> None:
    with pytest.raises(UsageError) as refused:
        expanded(name, **{key: value})
    assert key in str(refused.value.field) or refused.value.value == value


def test_sources_are_named_by_contrast() -> None:
    truth = overlap_truth({"sm_idle": 0.9, "sm_target": 0.95, "sm_hbm": 0.7, "sm_host": 0.4, "h2d": 0.98})
    points = expanded("gpu-overlap", sms="8", victims="gemm", control="false").points
    found = measured(points, truth)
    lost = {(item.name, item.contrast): item for item in overlap_rows.sources(found)}
    expected = {
        ("SM occupancy", "idle SMs"): 0.10,
        ("wave quantisation", "planned without k"): 0.05,
        ("HBM", "in HBM, less idle"): 0.20,
        ("PCIe", "to host, less in HBM"): 0.30,
        ("PCIe", "copy engine h2d"): 0.02,
    }
    for key, value in expected.items():
        assert lost[key].value == pytest.approx(value, abs=0.02)
        assert lost[key].bounds is not None
        assert lost[key].points
    experiment = experiments.get("gpu-overlap")
    finding = by_key(experiment.findings(found, HOST), "gpu-overlap-gemm-movers")
    assert (finding.level, finding.values["worst_mover"]) == ("interference", "sm_host")
    sound(experiment.figures(found, HOST), {item.id for item in found})


def test_the_table_has_a_column_for_each_k_and_marks_what_suffers() -> None:
    points = expanded("gpu-overlap", sms="4,8", victims="gemm", control="false").points
    found = measured(points, overlap_truth({"sm_idle": 0.5}))
    table = experiments.get("gpu-overlap").tables(found, HOST)[0]
    assert table.columns == ("beside", "k = 4", "k = 8")
    idle = [number for number, row in enumerate(table.rows) if row[0] == "SMs idle"]
    assert {row for row, _ in table.marked} == set(idle)
    assert all(table.rows[row][1].startswith(("50.", "49.")) for row in idle)


def test_the_hosts_memory_is_what_triad_costs_more_than_prime_counting() -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        copies = {"triad": 0.6, "prime": 0.97}[point.kernel]
        return 1000.0, 800.0 if point.kernel == "triad" else 1000.0, 500.0, 500.0 * copies

    points = expanded("gpu", kernels=("triad", "prime"), beside_messages="", directions="h2d").points
    found = measured([point for point in points if point.role == "point"], truth)
    lost = {(item.name, item.victim): item.value for item in gpu_rows.sources(found)}
    assert lost["host memory", "h2d, node 0"] == pytest.approx(0.37, abs=0.02)
    assert lost["host memory", "TRIAD"] == pytest.approx(0.2, abs=0.02)
    assert lost["launch path", "h2d, node 1"] == pytest.approx(0.03, abs=0.02)


def with_streams(result: PointResult, shares: dict[tuple[str, str], float]) -> PointResult:
    """With three streams that keep these shares; their intervals are those of the point's own side."""
    kept = result.comm.kept
    alone = result.comm.alone
    assert kept is not None
    assert alone is not None
    streams = []
    for name in gpu_rows.STREAMS:
        beside = tuple(
            StreamBeside(
                phase=phase,
                together=alone,
                kept=msgspec.structs.replace(kept, value=share, low=share, high=share),
            )
            for (stream, phase), share in shares.items()
            if stream == name
        )
        streams.append(StreamResult(name=name, alone=alone, beside=beside))
    return msgspec.structs.replace(result, payload=StreamPayload(streams=tuple(streams)))


def test_three_streams_are_reported_where_copies_keep_least() -> None:
    points = [point for point in expanded("gpu", directions="h2d").points if case_of(point).messages]
    least = max(point.n for point in points)
    found = [
        with_streams(result, {("copies", "ABC"): 0.5 if result.n == least else 0.9, ("cores", "ABC"): 0.8})
        for result in measured(points, lambda point: (1.0, 1.0, 1.0, 1.0))
    ]
    finding = by_key(experiments.get("gpu").findings(found, HOST), "gpu-messages-triad")
    values = finding.values
    assert (values["n"], values["copies"], values["cores"]) == (least, 0.5, 0.8)
    assert finding.level == "interference"
    table = experiments.get("gpu").tables(found, HOST)[0]
    assert table.columns[-1] == "all"


def test_a_stand_in_is_named_in_tables_and_figures() -> None:
    points = expanded("gpu-overlap", sms="8", victims="triad", control="false").points
    found = [
        msgspec.structs.replace(item, flags=("stand_in",)) for item in measured(points, overlap_truth({}))
    ]
    experiment = experiments.get("gpu-overlap")
    assert all("stand-in answered" in table.below[-1] for table in experiment.tables(found, HOST))
    assert all("(stand-in)" in figure.title for figure in experiment.figures(found, HOST))


def test_cases_in_which_neither_side_suffers_are_one_finding() -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        return 1000.0, 600.0 if point.kernel == "triad" else 1000.0, 500.0, 500.0

    points = expanded("gpu", kernels=("triad", "prime"), beside_messages="", directions="h2d").points
    found = measured([point for point in points if point.role == "point"], truth)
    findings = experiments.get("gpu").findings(found, HOST)
    quiet = [finding for finding in findings if finding.level == "quiet"]
    assert [(finding.key, finding.values["cases"]) for finding in quiet] == [("gpu-unaffected", 2)]
    assert sum(finding.level == "interference" for finding in findings) == 2


@pytest.mark.parametrize(("share", "verdict"), [(0.6, "decides"), (0.9, "makes no significant difference")])
def test_the_order_of_starts_decides_only_where_intervals_lie_apart(share: float, verdict: str) -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        return 1000.0, 1000.0 * (share if case_of(point).first == "mover" else 0.9), 500.0, 500.0

    settings = {"sms": "8", "victims": "gemm", "movers": "sm_idle", "control": "false"}
    found = measured(expanded("gpu-overlap", **settings).points, truth)
    finding = by_key(experiments.get("gpu-overlap").findings(found, HOST), "gpu-overlap-gemm-order")
    assert verdict in finding.text
