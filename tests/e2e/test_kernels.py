"""`elbowroom run kernels` against a made-up program of matrices: from plan to table, page and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from answers import refused, told
from texts import widest

QUICK = ("--repeat", "5", "--set", "order=64", "--set", "block=8")


def test_tasks_are_shown_with_their_work_and_their_sends(run: Any, snapshot: SnapshotAssertion) -> None:
    code, _, err = run("run", "kernels", *QUICK, "--out", "r")
    assert code == 0, err
    _, out, _ = run("show", "r")
    assert widest(out) <= 80
    assert "\n".join(line.rstrip() for line in out.splitlines()) == snapshot


def test_facts_and_times_are_in_the_json_and_the_page(run: Any, tmp_path: Path) -> None:
    shown = told(run, "run", "kernels", *QUICK, "--out", "r")
    points = {point["id"]: point for point in shown["points"] if point["program"]}
    assert len(points) == 3
    for point in points.values():
        assert point["facts"]["order"] == 64
        assert point["steps"]["total"]["unit"] == "us"
    cg = next(point for point in points.values() if point["program"]["task"] == "cg")
    assert cg["comm"]["kept"]["value"] == pytest.approx(0.4)
    page = (tmp_path / "r" / "report.html").read_text()
    assert "CG, dense (OpenMP)" in page
    assert "gemm (openmp)" in page


def test_without_starpu_the_rest_is_measured_and_the_reason_said(run: Any) -> None:
    shown = told(run, "run", "kernels", *QUICK)
    assert any("hidden by ELBOWROOM_STARPU=none" in note["reason"] for note in shown["notes"])
    error = refused(run, "run", "kernels", *QUICK, "--set", "builds=starpu", "--set", "control=false")
    assert "hidden by ELBOWROOM_STARPU=none" in str(error["message"])


def test_a_solution_that_does_not_converge_is_a_failed_point(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIVERGES", "cg")
    shown = told(run, "run", "kernels", *QUICK, "--set", "iterations=2")
    failed = [point for point in shown["points"] if point["status"] == "failed"]
    assert [point["program"]["task"] for point in failed] == ["cg"]
    assert failed[0]["reason"] == "no convergence in 2 iterations"
    assert any(finding["key"] == "kernels-gemm-openmp" for finding in shown["findings"])


def test_an_interrupted_run_goes_on(run: Any, tmp_path: Path) -> None:
    whole = told(run, "run", "kernels", *QUICK, "--out", "r")
    journal = tmp_path / "r" / "samples.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-3]))
    resumed = told(run, "run", "--resume", "r")
    assert resumed["points"] == whole["points"]


def test_runs_are_compared_and_exported(run: Any, tmp_path: Path) -> None:
    told(run, "run", "kernels", *QUICK, "--out", "r")
    changes = told(run, "compare", "r", "r", code=0)["changes"]
    assert {"comp", "comm", "step"} == {change["side"] for change in changes}
    for kind, name in (("csv", "t.csv"), ("parquet", "t.parquet"), ("json", "t.json"), ("svg", "figures")):
        code, _, err = run("export", "r", "--format", kind, "-o", name)
        assert code == 0, err
    assert '"AB","step",' in (tmp_path / "t.csv").read_text()
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "kernels-sends.svg",
        "kernels-stalled.svg",
    ]


def test_a_dry_run_says_the_matrices_and_starts_nothing(run: Any, tmp_path: Path) -> None:
    found = told(run, "run", "kernels", *QUICK, "--dry-run", code=0)
    asked = [point["program"] for point in found["points"] if point["program"]]
    assert {(one["order"], one["block"]) for one in asked} == {(64, 8)}
    assert found["seconds"] > 0
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("words", "field", "said"),
    [
        (("--set", "order=1000", "--set", "block=300"), "block", "does not divide the order 1000"),
        (("--set", "order=9000000"), "order", "the matrix is larger than memory"),
        (("--set", "tasks=lu"), "tasks", "invalid enum value"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(
    run: Any, tmp_path: Path, words: tuple[str, ...], field: str, said: str
) -> None:
    error = refused(run, "run", "kernels", *words)
    assert error["field"] == field
    assert said in error["message"]
    assert not (tmp_path / "runs").exists()


def test_a_virtual_machine_says_what_it_knows_instead(run: Any) -> None:
    error = refused(run, "run", "kernels", "--machine", "henri")
    assert "runs no programs" in error["message"]
    assert error["message"].endswith("it knows: elbowroom run intensity")
