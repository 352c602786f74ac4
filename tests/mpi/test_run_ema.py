"""`elbowroom run ema` with the real probe: a few sizes, two processes on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from elbowroom import cli

TINY = (
    "who=sender,receiver",
    "accesses=0,256KiB",
    "access_step=16KiB",
    "window_sizes=6",
    "exchanges=3",
    "control=false",
)

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need a core each")


def test_a_few_sizes_are_measured_with_and_without_accesses(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = [word for setting in TINY for word in ("--set", setting)]
    out = str(tmp_path / "r")
    code = cli.run(["run", "ema", *settings, "--repeat", "2", "--no-report", "--out", out, "--json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    shown = json.loads(printed.out)
    points = shown["points"]
    assert {point["extraneous"]["who"] for point in points} == {"sender", "receiver"}
    for point in points:
        assert point["status"] == "ok", point["reason"]
        series = point["series"]
        assert series["sender"] != series["receiver"]
        for spread in (series["after"], series["without"]):
            assert len(spread["median"]) == len(series["sizes"]) == point["extraneous"]["count"]
            assert all(0 < low <= middle <= high for low, middle, high in _columns(spread))
        assert point["comm"]["alone"]["count"] == point["comm"]["together"]["count"]
    sizes = sorted({size for point in points for size in point["series"]["sizes"]})
    assert sizes == list(range(0, 256 * 1024 + 1, 16 * 1024))
    assert [one["who"] for one in shown["extraneous"]["cases"]] == ["sender", "receiver"]


def _columns(spread: dict[str, list[float]]) -> list[tuple[float, float, float]]:
    return list(zip(spread["minimum"], spread["median"], spread["d9"], strict=True))
