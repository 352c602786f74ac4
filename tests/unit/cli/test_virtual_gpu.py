"""The plans of an accelerator on a virtual machine, through the whole program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli


def results(out: Path, capfd: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """The points of a run without noise."""
    plain = ["--noise", "0", "--no-report", "--out", str(out), "--json"]
    assert cli.run(["run", *words, "--machine", "h200-nvl", *plain]) == 0
    points: list[dict[str, Any]] = json.loads(capfd.readouterr().out)["points"]
    return [point for point in points if point.get("gpu") and point["role"] == "point"]


def test_products_beside_held_sms_and_a_copy_engine_are_answered(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = ("victims=gemm", "movers=sm_idle,sm_target,d2h", "sms=20", "orders=mover")
    sets = [word for key in keys for word in ("--set", key)]
    kept = {
        point["gpu"]["mover"]: point["comp"]["kept"]["value"]
        for point in results(tmp_path / "run", capfd, "gpu-overlap", *sets)
    }
    assert kept == pytest.approx({"sm_idle": 0.8, "sm_target": 0.8, "copy": 1.0}, abs=0.01)


def test_the_published_product_is_repeated_with_sms_in_pairs_and_a_plan_for_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The column `Virtual, as published` of docs/guide/gpu.md."""
    keys = ("victims=gemm", "holders=pairs", "plan_for=others", "orders=victim")
    keys += ("movers=sm_hbm,sm_host", "sms=4,8,20", "paces_mb_s=0")
    sets = [word for key in keys for word in ("--set", key)]
    kept = {
        (point["gpu"]["direction"], point["gpu"]["sms"]): 100 * point["comp"]["kept"]["value"]
        for point in results(tmp_path / "run", capfd, "gpu-overlap", *sets)
    }
    assert kept == pytest.approx(
        {
            ("hbm", 4): 100.0,
            ("hbm", 8): 88.9,
            ("hbm", 20): 50.0,
            ("host", 4): 34.9,
            ("host", 8): 15.8,
            ("host", 20): 3.6,
        },
        abs=0.1,
    )


def test_copies_are_answered_beside_cores_by_the_node_of_the_buffer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = ("directions=both", "copy_sizes=64MiB", "beside_messages=none", "n=all")
    sets = [word for key in keys for word in ("--set", key)]
    points = results(tmp_path / "run", capfd, "gpu", "--kernels", "memset_nt", *sets)
    kept = {
        point["gpu"]["node"]: point["comp"]["kept"]["value"]
        for point in points
        if point["gpu"]["victim"] == "cores"
    }
    assert kept[0] < 0.9
    assert kept[1] > 0.99
