"""`sizes` finds from which size each side suffers, and where the library switches protocols (Figure 6)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from elbowroom import api
from elbowroom.experiments.plans import Overrides
from elbowroom.points.point import Point
from elbowroom.results.quiet import Observations, judge
from studies import HENRI, by_key, sound, study


def sized(point: Point) -> tuple[float, float, float, float]:
    """Section 4.4: communication degraded from 64 KB with a few cores and 128 B with all, TRIAD from 4 KB;
    a switch from eager to rendezvous above 16 KiB.
    """
    latency = 1.5 + point.size / 10_500 + (4.0 if point.size > 16 * 1024 else 0.0)
    alone = latency if point.metric == "latency" else point.size / latency
    from_size = 128 if point.n > 20 else 65536
    factor = 0.5 if point.size >= from_size else 1.0
    together = alone / factor if point.metric == "latency" else alone * factor
    return 60_000.0, 60_000 * (0.8 if point.size >= 4096 else 1.0), alone, together


def test_sizes_finds_from_which_size_each_side_suffers_and_the_switch() -> None:
    experiment, found = study("sizes", HENRI, sized)
    findings = experiment.findings(found, HENRI)
    few = next(item for item in findings if item.values.get("n") == 5)
    all_cores = next(item for item in findings if item.values.get("n") == 35)
    assert (few.values["comm_from"], few.values["comp_from"]) == (65536, 4096)
    assert (all_cores.values["comm_from"], all_cores.values["comp_from"]) == (128, 4096)
    switch = by_key(findings, "switch")
    assert (switch.values["switch_before"], switch.values["switch_after"]) == (16384, 16387)
    assert "eager to rendezvous" in switch.text
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_sizes_without_a_step_says_that_none_is_visible() -> None:
    def smooth(point: Point) -> tuple[float, float, float, float]:
        latency = 1.5 + point.size / 10_500
        alone = latency if point.metric == "latency" else point.size / latency
        return 1.0, 1.0, alone, alone

    experiment, found = study("sizes", HENRI, smooth)
    assert "does not jump" in by_key(experiment.findings(found, HENRI), "switch").text


def test_communication_alone_is_measured_without_a_control_and_says_what_it_cannot_tell(
    tmp_path: Path,
) -> None:
    plan = Overrides(kernels=("none",), sizes=(4, 65536, 1_000_000))
    run = api.run("sizes", overrides=plan, machine="henri", out=str(tmp_path / "r"), tell=lambda _: None)
    assert {point.kernel for point in run.manifest.points} == {"none"}
    assert run.verdict.trusted
    assert "Communication alone, 3 message sizes: " in run.verdict.text
    assert "without a control only the load of other processes" in run.verdict.text
    assert run.verdict.interference is None


def test_communication_alone_beside_a_busy_machine_is_not_trusted() -> None:
    _, found = study("sizes", HENRI, sized)
    alone = [msgspec.structs.replace(item, kernel="none", n=0) for item in found if item.role == "point"]
    trusted, reasons = judge(alone, Observations(others_during=1.0))
    assert not trusted
    assert reasons == ("Other processes kept 1.0 cores busy during the run.",)
