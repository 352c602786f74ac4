"""What an explanation says of the frequencies of a run's cores."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.measure.explanation import frequency
from elbowroom.points.payload import Payload, Trace
from elbowroom.points.point import Point
from studies import measured

POINT = Point(
    plan="p", kernel="triad", n=1, size=64_000_000, comp_node=0, comm_node=0, comm_core=7, metric="bandwidth"
)

TRACED = tuple(
    Trace(phase=phase, core=7, role="communication", interval_s=0.01, khz=(khz, khz))
    for phase, khz in (("B", 2_500_000.0), ("AB", 2_400_000.0))
)


@pytest.mark.parametrize(
    ("observer", "more", "said"),
    [
        ({}, {}, "cannot be read here: n/a, no reason was recorded"),
        ({"status": "n/a", "reason": "no cpufreq"}, {}, "cannot be read here: n/a, no cpufreq"),
        ({"status": "ok"}, {}, "moved by less than 2 % between alone and together"),
        (
            {"status": "ok"},
            {"flags": ("frequency_moved",), "payload": Payload(traces=TRACED)},
            "moved by more than 2 % between alone and together at 1 of 1 points; the communication core ran "
            "at 2500 MHz alone and at 2400 together",
        ),
    ],
)
def test_what_was_read_of_frequencies_is_told(
    observer: dict[str, str], more: dict[str, Any], said: str
) -> None:
    (item,) = measured([POINT], lambda _: (9000.0, 9000.0, 1.0, 1.0), repetitions=2)
    assert frequency([msgspec.structs.replace(item, **more)], {"frequency": observer}) == said
