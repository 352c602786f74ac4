"""`sizes` finds from which size each side suffers, and where the library switches protocols (Figure 6)."""

from __future__ import annotations

from elbowroom.plan import Point
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
    assert "No step" in by_key(experiment.findings(found, HENRI), "switch").text
