"""Areas of simulated and of measured broadcasts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import benchmark_modules
from elbowroom.broadcast.measured import Beside, BroadcastEntry, Time
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build

areas_of = benchmark_modules.load("broadcast_areas")

TIME = Time(median=30.0, low=29.0, high=31.0)


def entry(**changes: Any) -> BroadcastEntry:
    """Three recipients of 4 kB."""
    return BroadcastEntry(
        **{
            "tree": "binary",
            "ranks": 4,
            "size": 4000,
            "segment": 0,
            "repeat": 5,
            "priorities": "rising",
            "time": TIME,
            "bandwidth": 133.0,
            "beside": Beside(bcast=TIME, ibcast=TIME, sends=TIME),
            "received": (30.0, 20.0, 10.0),
            "released": (20.0, 30.0, 20.0, 25.0),
            "oversubscribed": False,
            "mpi": "Open MPI 5",
        }
        | changes
    )


def written(folder: Path, *entries: BroadcastEntry) -> str:
    file = folder / "bench.json"
    file.write_bytes(msgspec.json.encode(entries))
    return str(file)


def test_measured_areas_have_the_medians_of_each_rank(tmp_path: Path) -> None:
    areas = areas_of.load_areas(written(tmp_path, entry(), entry(tree="flat")))
    assert areas.title == "4 kB to 3 recipients, measured"
    assert areas.priorities == (1, 2, 3)
    assert [one.tree for one in areas.broadcasts] == ["binary", "flat"]
    assert not any(one.simulated for one in areas.broadcasts)
    assert areas.broadcasts[0].received_us == (30.0, 20.0, 10.0)


def test_an_area_is_between_received_and_released(tmp_path: Path) -> None:
    (figure,) = areas_of.area_figures(areas_of.load_areas(written(tmp_path, entry())).broadcasts)
    (series,) = figure.series
    assert series.x == (1.0, 2.0, 3.0)
    assert series.low == series.y == (30.0, 20.0, 10.0)
    assert series.high == (30.0, 20.0, 25.0)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((), "holds no broadcast"),
        ((entry(), entry(size=4)), "several sizes: 4, 4000"),
        (
            (entry(), entry(ranks=3, received=(1.0, 2.0), released=(1.0, 2.0, 3.0))),
            "several recipients: 2, 3",
        ),
        ((entry(), entry(priorities="equal")), "several priorities: equal, rising"),
        ((entry(received=(1.0,)),), "has other times than one for each of 4 ranks"),
    ],
)
def test_what_is_no_single_area_is_refused(
    tmp_path: Path, entries: tuple[BroadcastEntry, ...], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        areas_of.load_areas(written(tmp_path, *entries))


def test_it_draws_the_areas_and_prints_both_times_of_each_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        build.broadcast_simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator of broadcasts cannot be built here: {error}")
    figure = tmp_path / "areas.svg"
    words = ["broadcast_areas.py", "--recipients", "6", "--tree", "flat", "--tree", "binary"]
    monkeypatch.setattr(sys, "argv", [*words, "-o", str(figure), "--json"])
    areas_of.main()
    printed = json.loads(capfd.readouterr().out)
    assert [(one["tree"], one["simulated"]) for one in printed["broadcasts"]] == [
        ("flat", True),
        ("binary", True),
    ]
    assert printed["priorities"] == [1, 2, 3, 4, 5, 6]
    assert figure.read_text().startswith("<?xml")
    monkeypatch.setattr(sys, "argv", words)
    areas_of.main()
    assert len(capfd.readouterr().out.splitlines()) == 8
