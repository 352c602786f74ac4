"""Settings of a point in the loop of a run: what the probe is sent, and what follows where they stay."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from elbowroom.errors import MachineError
from elbowroom.measure.budgets import InOrder
from elbowroom.measure.campaign import Loop
from elbowroom.measure.prepared import UnitGroup
from elbowroom.points.point import Point, Steady
from elbowroom.points.probe import ProbeStart
from elbowroom.points.unit import Unit
from elbowroom.store.journal import HEADER, Journal

POINT = Point(
    plan="frequency", kernel="none", n=0, size=4, comp_node=0, comm_node=0, comm_core=0, metric="latency",
    sequence=("B", "B"),
)  # fmt: skip


def conversation(tmp_path: Path, point: Point, answer: dict[str, Any]) -> tuple[Any, list[Any]]:
    """A loop over one unit of the point, and the requests that its probe will have got."""
    seen: list[Any] = []

    def ask(unit: Unit, request: object, _wait: float) -> dict[str, Any]:
        seen.append(request)
        return {"record": "repetition", "point": unit.point, "repetition": 0, "phases": [], **answer}

    path = tmp_path / "samples.jsonl"
    path.write_bytes(HEADER)
    probe: Any = SimpleNamespace(ask=ask, close=lambda: None)
    source: Any = SimpleNamespace(open=lambda _start: probe)
    prepared: Any = SimpleNamespace(
        expansion=SimpleNamespace(points=[point]), plan=SimpleNamespace(steady=Steady())
    )
    folder: Any = SimpleNamespace(path=tmp_path)
    return Loop(folder, Journal(path), source, prepared, None), seen


def measure(work: Loop, point: Point) -> None:
    unit = Unit(point=point.id, repetition=0)
    bar: Any = SimpleNamespace(step=lambda _point: None)
    work.run(UnitGroup(probe=ProbeStart(2), units=(unit,)), InOrder((unit,)), bar)


HELD = msgspec.structs.replace(POINT, core_khz=1_000_000, turbo=False)


def test_the_probe_is_sent_the_settings_of_a_point_and_what_holds_them(tmp_path: Path) -> None:
    work, seen = conversation(tmp_path, HELD, {})
    measure(work, HELD)
    work.journal.close()
    settings = seen[0]["settings"]
    assert {key: settings[key] for key in ("core_khz", "turbo")} == {"core_khz": 1_000_000, "turbo": False}
    assert settings["keeper"][0] == sys.executable
    work, seen = conversation(tmp_path, POINT, {})
    measure(work, POINT)
    assert "settings" not in seen[0]


def test_a_host_that_cannot_set_back_ends_the_run_and_the_sample_is_kept(tmp_path: Path) -> None:
    work, _ = conversation(tmp_path, HELD, {"not_restored": ["host b: policy0 does not take 5"]})
    with pytest.raises(MachineError, match="host b: policy0 does not take 5"):
        measure(work, HELD)
    assert work.journal.done == {Unit(point=HELD.id, repetition=0)}
