"""Streams beside the two sides of a point: each alone, and what it keeps in each combination."""

from __future__ import annotations

import pytest

from elbowroom.points.gpu import GpuCase
from elbowroom.points.payload import Records
from elbowroom.points.point import Point
from elbowroom.points.streams import StreamSample, stream_of, stream_samples
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from sampled import entries

POINT = Point(
    plan="p",
    kernel="triad",
    n=1,
    size=4,
    comp_node=0,
    comm_node=0,
    comm_core=0,
    metric="bandwidth",
    workload=GpuCase(victim="gemm", mover="copy"),
)


def measured(rates: dict[str, float], unit: str = "MB/s", repetitions: int = 6) -> PointResult:
    """A result whose stream `copies` has these values by phase."""
    row = (0, 0, False, "B", "comm", 1.0, "MB/s", "ok")
    samples = Samples(*zip(row, strict=True))
    phases = [
        {"phase": phase, "streams": {"copies": {"value": value, "unit": unit}}}
        for phase, value in rates.items()
    ]
    records = [{"phases": phases}] * repetitions
    return results([POINT], samples, entries={POINT.id: entries(POINT.id, *records)})[0]


@pytest.mark.parametrize(("unit", "kept"), [("MB/s", 0.8), ("us", 1.25)])
def test_a_stream_keeps_its_share_in_each_phase(unit: str, kept: float) -> None:
    stream = stream_of(measured({"B": 100, "AB": 80, "ABC": 50}, unit).payload, "copies")
    assert stream is not None
    assert stream.alone is not None
    assert stream.alone.median == 100
    assert [beside.phase for beside in stream.beside] == ["AB", "ABC"]
    found = stream.kept("AB")
    assert found is not None
    assert found.value == pytest.approx(kept)
    assert found.bounds is not None
    assert stream.kept("AC") is None


def test_a_stream_of_one_phase_has_nothing_beside_it() -> None:
    stream = stream_of(measured({"B": 100}).payload, "copies")
    assert stream is not None
    assert (stream.alone is not None, stream.beside) == (True, ())


def test_a_point_without_streams_has_none_in_its_document() -> None:
    row = (0, 0, False, "B", "comm", 1.0, "MB/s", "ok")
    plain = results([POINT], Samples(*zip(row, strict=True)))[0]
    assert stream_of(plain.payload, "copies") is None
    assert "streams" not in plain.plain()


def test_streams_of_a_void_phase_are_left_out() -> None:
    phase = {"phase": "AB", "streams": {"copies": {"value": 3, "unit": "MB/s"}}}
    sound, void = ({"phases": [one]} for one in (phase, phase | {"status": "void"}))
    assert stream_samples(Records(entries("p", {}, sound), {})) == [
        StreamSample("copies", "AB", 1, 3.0, "MB/s", 0)
    ]
    assert stream_samples(Records(entries("p", void), {})) == []
