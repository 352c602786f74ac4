"""Runs with a budget of time, against a made-up site: what they measure, leave out, and say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elbowroom.experiments.quick import crucial
from elbowroom.measure.budgets import LATE, WithinBudget
from elbowroom.measure.results import point_results
from elbowroom.points.unit import Entry
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import read_journal

SIZES = "4,8,16,32,64,128,256,512,1024"
MANY = ["run", "sizes", "--sizes", SIZES, "--set", "n=1", "--set", "window=0.001", "--out", "r"]


@pytest.fixture(autouse=True)
def _short_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets of a second or two: nothing is reserved for the start of MPI and for the report."""
    monkeypatch.setattr("elbowroom.measure.budgets.START", 0.0)
    monkeypatch.setattr("elbowroom.measure.budgets.REPORT", 0.1)
    monkeypatch.setattr("elbowroom.plan.order.START", 0.0)
    monkeypatch.setattr("elbowroom.plan.order.FIRST_TOUCH", 1e15)


@pytest.fixture
def a_clock_of_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each repetition takes 0.2 s, and nothing else takes any time."""
    units = 0
    record = WithinBudget.record

    def counted(self: WithinBudget, entry: Entry, seconds: float) -> None:
        nonlocal units
        units += 1
        record(self, entry, 0.2)

    monkeypatch.setattr(WithinBudget, "record", counted)
    monkeypatch.setattr("elbowroom.measure.budgets.phases_seconds", lambda entry: 0.2)
    for module in ("elbowroom.verbs.run", "elbowroom.measure.budgets"):
        monkeypatch.setattr(f"{module}.time", SimpleNamespace(monotonic=lambda: 0.2 * units))


def sound(folder: Path) -> Counter[str]:
    entries = read_journal(folder / "samples.jsonl")[0]
    return Counter(item.point for item in entries if not item.closing and item.record["status"] == "ok")


@pytest.mark.usefixtures("a_clock_of_units")
def test_a_short_budget_measures_the_ends_of_an_axis_and_says_what_it_left_out(
    run: Any, tmp_path: Path
) -> None:
    code, out, err = run(*MANY, "--budget", "9s")
    assert code in (0, 3), err
    budget = RunFolder.open(tmp_path / "r").manifest.budget
    assert budget is not None
    assert (budget.seconds, len(budget.left_out)) == (9.0, len(set(budget.left_out)))
    assert budget.left_out
    found = json.loads(run("show", "r", "--json")[1])
    sizes = sorted(point["size"] for point in found["points"] if point["role"] == "point")
    assert (sizes[0], sizes[-1]) == (4, 1024)
    assert {point["status"] for point in found["points"]} <= {"ok"}
    shown = {point["id"] for point in found["points"]}
    assert not shown & set(budget.left_out)
    counts = sound(tmp_path / "r")
    assert min(counts[point] for point in shown) >= budget.least
    assert "Left out:" in out
    assert "left out" in {note["status"] for note in found["notes"]}
    assert "no time was left of the budget of 9 s" in (tmp_path / "r" / "report.html").read_text()


@pytest.mark.usefixtures("a_clock_of_units")
def test_more_budget_measures_what_was_left_out(run: Any, tmp_path: Path) -> None:
    run(*MANY, "--budget", "9s", "--no-report")
    first = RunFolder.open(tmp_path / "r").manifest.budget
    before = (tmp_path / "r" / "samples.jsonl").read_bytes()
    _, _, err = run("run", "--resume", "r", "--no-report")
    assert "the budget of 9 s is spent" in err
    assert (tmp_path / "r" / "samples.jsonl").read_bytes() == before
    run("run", "--resume", "r", "--budget", "60s", "--no-report")
    second = RunFolder.open(tmp_path / "r").manifest.budget
    assert first is not None
    assert second is not None
    assert first.left_out
    assert second.left_out == ()
    assert second.seconds == pytest.approx(60 + first.spent_s)
    assert second.spent_s > first.spent_s
    assert set(sound(tmp_path / "r").values()) == {9}


def test_a_probe_that_hangs_does_not_outlast_the_budget(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_HANG", "triad:2")
    monkeypatch.setattr("elbowroom.launch.session._GRACE", 0.2)
    code, _, err = run(*MANY, "--budget", "2s", "--no-report")
    assert code in (0, 3), err
    assert RunFolder.open(tmp_path / "r").manifest.finished
    # A busy machine may not come to its first repetition in time.
    assert {item.record["status"] for item in read_journal(tmp_path / "r" / "samples.jsonl")[0]} <= {"ok"}


def test_a_repetition_that_fails_is_repeated_while_there_is_time(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ERROR", "triad-n1-16B:2")
    run(*MANY, "--budget", "30s", "--no-report")
    assert set(sound(tmp_path / "r").values()) == {9}


def test_intervals_that_are_narrow_enough_end_a_run_early(run: Any, tmp_path: Path) -> None:
    words = ["--set", "precision=0.2", "--budget", "30s", "--no-report"]
    run(*MANY, *words)
    budget = RunFolder.open(tmp_path / "r").manifest.budget
    assert budget is not None
    assert set(sound(tmp_path / "r").values()) == {budget.least}


@pytest.mark.usefixtures("a_clock_of_units")
def test_late_in_a_budget_only_the_answers_point_and_the_controls_are_refined(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "elbowroom.measure.budgets.widths", lambda results, _: {result.id: 2.0 for result in results}
    )
    run("run", "quick", "--budget", "40s", "--set", "window=0.001", "--out", "r", "--no-report")
    folder = RunFolder.open(tmp_path / "r")
    wanted = crucial(point_results(folder.manifest, folder.entries())[0])
    measured = [item.point for item in folder.entries() if not item.closing]
    late = int(LATE * 40 / 0.2) + len(set(measured))  # the round of that moment is finished
    assert len(measured) > late
    assert set(measured[late:]) == wanted < set(measured)


def test_a_number_of_repetitions_that_is_asked_for_is_measured_without_a_budget(
    run: Any, tmp_path: Path
) -> None:
    run("run", "quick", "--kernels", "triad", "--sizes", "4", "--repeat", "6", "--out", "r", "--no-report")
    manifest = RunFolder.open(tmp_path / "r").manifest
    assert manifest.budget is None
    assert set(sound(tmp_path / "r").values()) == {6}


def test_a_replay_asks_for_what_a_budget_left_in_the_recording(run: Any, tmp_path: Path) -> None:
    words = ["--set", "budget=30", "--set", "precision=0.2", "--no-report"]
    run(*MANY, *words)
    run(*MANY[:-1], "again", *words, "--launcher", "replay:r")
    first, second = (json.loads(run("show", name, "--json")[1])["points"] for name in ("r", "again"))
    assert first == second


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--budget", "1ms"], "is too short for an answer, which needs"),
        (["--budget", "0"], "is not between 0 and 30 days"),
        (["--budget", "nan"], "is not a duration"),
        (["--budget", "1e99h"], "is not between 0 and 30 days"),
        (["--budget", "99999h"], "is not between 0 and 30 days"),
        (["--budget", "0.01s"], "is too short for an answer, which needs"),
        (["--set", "budget=soon"], "is not a duration"),
        (["--set", "precision=2"], "precision"),
        (["--repeat", "100000000"], "repeat"),
        (["--set", "repetitions=100000000"], "repetitions"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_budget_or_number_of_repetitions_is_refused_in_a_sentence(
    run: Any, tmp_path: Path, words: list[str], sentence: str
) -> None:
    code, _, err = run(*MANY, *words)
    told = [line for line in err.splitlines() if line.startswith("elbowroom: ")]
    assert (code, len(told)) == (2, 1), err
    assert sentence in told[0]
    assert ";" in told[0]
    assert not (tmp_path / "r").exists()
