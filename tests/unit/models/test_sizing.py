"""Message sizes: what a run tells of them, and a document asked for another size than its own."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import predict as answering
from elbowroom.models.curves import Situation
from elbowroom.models.document import Document, at_size
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.message_size import MessageSize, fit_if_known
from elbowroom.models.published import of_published
from elbowroom.models.run_data import message_bandwidths
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Side, Summary

LAW = MessageSize(t0=2.0, low=1.9, high=2.1, sizes=(4, 65536, 64_000_000), misfit=0.01)
AT = Situation(comp_node=0, comm_node=0, n=18)


def henri(law: MessageSize | None = LAW) -> Document:
    return msgspec.structs.replace(of_published("henri"), message_size=law)


def point(size: int, value: float, unit: str = "MB/s", **changes: object) -> PointResult:
    alone = Summary(median=value, d1=value, d9=value, low=value, high=value, count=9, unit=unit)
    given = {
        "id": f"p{size}",
        "plan": "model",
        "kernel": "memset_nt",
        "n": 1,
        "size": size,
        "comp_node": 0,
        "comm_node": 3,
        "comm_core": 5,
        "metric": "latency" if unit == "us" else "bandwidth",
        "status": "ok",
        "flags": (),
        "comp": Side(),
        "comm": Side(alone=alone),
        **changes,
    }
    return PointResult(**given)  # type: ignore[arg-type]


def test_bandwidths_alone_are_taken_by_node_and_size_over_all_points() -> None:
    points = [point(64, 10.0), point(64, 12.0, n=2), point(64, 90.0, n=3), point(4096, 500.0)]
    outcome = message_bandwidths(points, points[0], nodes=(0, 3))
    assert [(item.node, item.size, item.bandwidth) for item in outcome] == [(1, 64, 12.0), (1, 4096, 500.0)]


def test_a_latency_is_a_bandwidth_too() -> None:
    (outcome,) = message_bandwidths([point(64, 2.0, "us")], point(64, 2.0), nodes=(0, 3))
    assert outcome.bandwidth == 32.0


@pytest.mark.parametrize(
    "changes",
    [{"status": "failed"}, {"comm": Side()}, {"pattern": "ring"}, {"comm_core": 6}, {"comm_node": 7}],
)
def test_points_that_communicated_otherwise_tell_nothing(changes: dict[str, object]) -> None:
    assert message_bandwidths([point(64, 10.0, **changes)], point(64, 10.0), nodes=(0, 3)) == ()


def test_two_sizes_make_no_law() -> None:
    few = message_bandwidths([point(64, 10.0), point(4096, 500.0)], point(64, 1.0), nodes=(3,))
    assert fit_if_known(few) is None
    three = message_bandwidths([point(s, s / (2 + s / 1e4)) for s in (64, 4096, 10**6)], point(1, 1.0), (3,))
    outcome = fit_if_known(three)
    assert outcome is not None
    assert outcome.t0 == pytest.approx(2.0)


def test_a_document_of_one_size_is_not_asked_for_another() -> None:
    with pytest.raises(UsageError, match=r"knows no other.*--sizes"):
        answering.predict(henri(None), [AT], size=4096)


def test_a_prediction_for_the_calibrated_size_is_the_prediction() -> None:
    document = henri(None)
    assert answering.predict(document, [AT], size=64_000_000) == answering.predict(document, [AT])


def test_a_smaller_message_reaches_less_and_disturbs_less() -> None:
    (large,), (small,) = answering.predict(henri(), [AT]), answering.predict(henri(), [AT], size=4096)
    assert small.comm_alone.value == pytest.approx(
        LAW.bandwidth(4096, known=large.comm_alone.value, at=64_000_000)
    )
    assert small.comp_together.value > large.comp_together.value
    assert small.comp_alone == large.comp_alone


def test_sizes_beyond_the_measured_ones_are_marked() -> None:
    flags = [answering.predict(henri(), [AT], size=size)[0].flags for size in (4096, 2)]
    assert ["extrapolated" in outcome for outcome in flags] == [False, True]


def test_the_messages_of_flow_change_in_the_fit_and_in_every_draw() -> None:
    flow = FlowPart(
        names=("comm_first", "link", "comm_second"),
        values=(10_000.0, 5.0, 20_000.0),
        low=(0.0, 0.0, 0.0),
        high=(1.0, 1.0, 1.0),
        draws=((9_000.0, 6.0, 18_000.0),),
    )
    document = msgspec.structs.replace(henri(), models=msgspec.structs.replace(henri().models, flow=flow))
    changed = at_size(document, 4096).models.flow
    assert changed is not None
    expected = [LAW.bandwidth(4096, known=value, at=64_000_000) for value in (10_000.0, 20_000.0, 9_000.0)]
    assert [changed.values[0], changed.values[2], changed.draws[0][0]] == pytest.approx(expected)
    assert (changed.values[1], changed.draws[0][1]) == (5.0, 6.0)
