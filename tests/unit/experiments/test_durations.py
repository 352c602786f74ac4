"""Durations as a second reading of the figures that the paper draws with durations (Figs 3a and 7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.experiments.plans import Overrides


def measured(tmp_path: Path, plan: str, **settings: str) -> api.Run:
    return api.run(
        plan, overrides=Overrides(repeat=5, settings=settings), machine="henri", out=str(tmp_path / plan),
        report=False, tell=lambda _: None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "settings", "label"),
    [
        ("cores", {"n": "1,35", "kernels": "triad", "sizes": "4"}, "Duration of GB per core (s)"),
        ("intensity", {"cursors": "1,64", "sizes": "4"}, "Duration of GB per core (s)"),
        (
            "frequency",
            {"n": "1,35", "kernels": "prime", "sizes": "4"},
            "Duration of million items per core (s)",
        ),
    ],
)
def test_a_figure_of_rates_has_a_second_reading_in_durations(
    tmp_path: Path, plan: str, settings: dict[str, str], label: str
) -> None:
    run = measured(tmp_path, plan, **settings)
    rates, durations = run.figures[:2]
    assert durations.name == f"{rates.name}-duration"
    assert durations.below.label == label
    assert [one for one in durations.series if one.axis == "left"] == [
        one for one in rates.series if one.axis == "left"
    ]
    series = next(one for one in durations.series if one.axis == "below" and one.style == "together")
    point = next(item for item in run.points() if item.id == series.points[-1])
    work = {"MB/s": 1000.0, "M/s": 1.0}[point.comp.together.unit]
    assert series.y[-1] == pytest.approx(work * point.n / point.comp.together.median)
    assert series.low[-1] <= series.y[-1] <= series.high[-1]
