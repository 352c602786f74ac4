"""What `elbowroom colocate` prints, compared with kept texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import cli
from texts import widest

ROOT = Path(__file__).resolve().parents[2]
COLOCATION = ROOT / "machines" / "colocation"
MATRIX = ("--matrix", str(COLOCATION / "koop_shared_8x8.csv"))
HALF = ("--half", str(COLOCATION / "koop_shared_max_row.csv"))


def printed(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    found = cli.run(["colocate", *words])
    out, err = capfd.readouterr()
    assert found == 0, err
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert widest(plain) <= 80
    return "\n".join(
        line.rstrip()
        for line in plain.replace(str(COLOCATION), "FOLDER").replace(str(ROOT), "CHECKOUT").splitlines()
    )


def test_the_best_pairs_are_printed_beside_random_ones_and_bounds(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert printed(capfd, "schedule", *MATRIX, *HALF) == snapshot


def test_the_pairs_are_printed_as_the_contract_says(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capfd, "schedule", *MATRIX, "--json"))
    assert {frozenset(pair) for pair in found["pairs"]} == {
        frozenset(pair) for pair in (("IS", "MG"), ("FT", "LU"), ("CG", "EP"), ("BT", "SP"))
    }
    assert [round(found[key], 1) for key in ("mean", "random", "bound")] == [91.6, 93.8, 91.1]


def test_a_plan_is_printed_with_its_allocations(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    jobs = str(ROOT / "docs" / "guide" / "jobs.toml")
    assert printed(capfd, "schedule", jobs, *MATRIX, *HALF) == snapshot


def test_the_plan_the_script_and_the_figure_are_written(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    jobs = str(ROOT / "docs" / "guide" / "jobs.toml")
    words = ("schedule", jobs, *MATRIX, *HALF, "--budget", "60")
    plan = json.loads(printed(capfd, *words, "--json", "-o", str(tmp_path / "plan.json")))
    assert json.loads((tmp_path / "plan.json").read_text()) == plan
    printed(capfd, *words, "--json", "-o", str(tmp_path / "m.svg"), "--slurm", str(tmp_path / "jobs.sh"))
    assert (tmp_path / "m.svg").read_text().count("<svg") == 1
    assert (tmp_path / "jobs.sh").read_text().startswith("#!/bin/bash")


def test_the_help_lists_every_option(capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert printed(capfd, "schedule", "--help") == snapshot
