"""Which units one probe answers."""

from __future__ import annotations

from elbowroom.measure.prepare import groups
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Unit
from studies import SMALL


def ring(comm_cores: tuple[int, ...], scheduling: bool = False) -> Point:
    return Point(
        plan="ring",
        kernel="triad",
        n=1,
        size=4_000_000,
        comp_node=0,
        comm_node=0,
        comm_core=comm_cores[0],
        metric="bandwidth",
        comp_cores=(1,),
        comm_cores=comm_cores,
        peer_cores=comm_cores,
        pattern="ring",
        scheduling=scheduling,
    )


def test_points_with_several_communication_threads_get_a_probe_that_may_use_them() -> None:
    points = {point.id: point for point in (ring((0,)), ring((0, 2)))}
    found = groups([Unit(point=name, repetition=0) for name in points], points, SMALL)
    assert [group.probe.several_threads for group in found] == [False, True]


def test_a_plan_that_measures_the_scheduler_on_purpose_tells_the_probe() -> None:
    unit = Unit(point="p", repetition=0)
    shared, plain = ring((0,), scheduling=True), ring((0,))
    assert shared.workload.request(shared, unit, Steady())["scheduling"] is True
    assert "scheduling" not in plain.workload.request(plain, unit, Steady())
