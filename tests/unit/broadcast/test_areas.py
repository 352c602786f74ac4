"""Areas of measured broadcasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import cli
from elbowroom.api.broadcasts import load_areas
from elbowroom.broadcast.areas import area_figures
from elbowroom.broadcast.measured import Beside, BroadcastEntry, Time
from elbowroom.errors import UsageError

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
    areas = load_areas(written(tmp_path, entry(), entry(tree="flat")))
    assert areas.title == "4 kB to 3 recipients, measured"
    assert areas.priorities == (1, 2, 3)
    assert [one.tree for one in areas.broadcasts] == ["binary", "flat"]
    assert not any(one.simulated for one in areas.broadcasts)
    assert areas.broadcasts[0].received_us == (30.0, 20.0, 10.0)


def test_an_area_is_between_received_and_released(tmp_path: Path) -> None:
    (figure,) = area_figures(load_areas(written(tmp_path, entry())).broadcasts)
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
        load_areas(written(tmp_path, *entries))


def test_options_of_a_simulation_are_refused_beside_measured_areas(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, entry())
    assert cli.run(["broadcast", "areas", "--from", file, "--tree", "flat"]) == 2
    assert "tree 'flat': is of a simulated broadcast" in " ".join(capfd.readouterr().err.split())
