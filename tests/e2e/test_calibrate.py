"""`calibrate` from the command line to the model, on virtual machines and on a made-up site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import elbowroom
from elbowroom import cli
from elbowroom.measure import source
from elbowroom.models import next_run as choosing
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import read_journal

QUICK = ["--repeat", "2", "--no-report"]
EXAMPLE = Path(__file__).parents[2] / "machines" / "example-2socket.xml"


@pytest.fixture
def calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs `elbowroom calibrate` in an empty folder, and returns (exit code, object, stderr)."""
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str) -> tuple[int, dict[str, Any], str]:
        code = cli.run(["calibrate", *words, "--json"])
        out, err = capfd.readouterr()
        return code, json.loads(out), err

    return invoke


def places(found: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [
        tuple(step["situation"][key] for key in ("comp_node", "comm_node", "n")) for step in found["steps"]
    ]


def test_a_few_runs_make_a_model_that_knows_all_placements(calibrate: Any, tmp_path: Path) -> None:
    code, found, _ = calibrate(
        "--machine", "bora", "--points", "14", "--half-width", "0.1", "--run-out", "r", *QUICK
    )
    assert code in (0, 3)
    assert (found["reason"], found["runs"], found["full_runs"]) == ("budget", 14, 72)
    assert len(set(places(found))) == 14
    assert found["seconds"] < found["full_seconds"] / 3
    assert found["saved"].startswith("14 points instead of 72: about ")
    assert found["virtual"] is True
    first = [step["width"] for step in found["steps"]].count(None)
    assert 0 < first < 14
    full = elbowroom.run(
        "model", machine="bora", overrides=elbowroom.Overrides(repeat=2), out="full", report=False
    )
    table = {line.model: line for line in elbowroom.evaluate(full, found["file"]).table.lines}
    assert table["flow"].unanswered == 0
    assert (table["flow"].average or 1.0) < 0.04
    assert (table["flow"].average or 1.0) < (table["no contention"].average or 0.0)


def test_only_the_chosen_runs_are_measured_and_journalled_with_control_and_closing(
    calibrate: Any, tmp_path: Path
) -> None:
    _, found, _ = calibrate(
        "--machine", "henri", "--points", "9", "--half-width", "0.1", "--run-out", "r", *QUICK
    )
    folder = RunFolder.open(tmp_path / "r")
    points = [point for point in folder.manifest.points if point.role == "point"]
    assert [(point.comp_node, point.comm_node, point.n) for point in points] == places(found)
    entries = folder.entries()
    opening = [entry.unit for entry in entries if not entry.closing]
    assert len(opening) == 2 * 10
    assert {unit.point for unit in opening} == {point.id for point in folder.manifest.points}
    assert any(entry.closing for entry in entries)
    shown = elbowroom.open(tmp_path / "r")
    assert {point.status for point in shown.points()} == {"ok"}
    assert shown.manifest.plan["name"] == "calibrate"


def test_it_stops_as_soon_as_the_intervals_are_narrow_enough(calibrate: Any) -> None:
    _, found, _ = calibrate("--machine", "diablo", "--half-width", "90", *QUICK)
    assert found["reason"] == "narrow"
    assert found["width"] <= 0.9
    assert found["runs"] < 24
    assert [step["width"] is not None for step in found["steps"]].count(True) >= 1


def test_the_same_seed_chooses_the_same_runs(calibrate: Any) -> None:
    words = ("--machine", "occigen", "--points", "10", "--half-width", "0.1", "--seed", "4", *QUICK)
    _, one, _ = calibrate(*words, "--run-out", "a")
    _, two, _ = calibrate(*words, "--run-out", "b")
    assert one["steps"] == two["steps"]


def test_a_finished_calibration_goes_on_with_a_larger_budget(calibrate: Any, tmp_path: Path) -> None:
    _, short, _ = calibrate(
        "--machine", "bora", "--points", "8", "--half-width", "0.1", "--run-out", "r", *QUICK
    )
    before = (tmp_path / "r" / "samples.jsonl").read_bytes()
    _, longer, _ = calibrate("--resume", "r", "--points", "10", "--half-width", "0.1", "--no-report")
    assert places(longer)[:8] == places(short)
    assert longer["runs"] == 10
    assert (tmp_path / "r" / "samples.jsonl").read_bytes().startswith(before)
    entries, _ = read_journal(tmp_path / "r" / "samples.jsonl")
    assert len({entry.unit for entry in entries}) == len(entries)


def test_a_stopped_calibration_says_how_to_go_on(
    calibrate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    words = ("--machine", "bora", "--points", "10", "--half-width", "0.1", "--run-out", "r", *QUICK)
    with monkeypatch.context() as patch:
        patch.setattr(choosing, "next_run", stop)
        code, told, _ = calibrate(*words)
    assert code == 1
    assert told["error"]["hint"] == "continue with: elbowroom calibrate --resume r"
    kept = len(RunFolder.open(tmp_path / "r").entries())
    assert kept > 0
    code, found, _ = calibrate("--resume", "r", "--points", "10", "--half-width", "0.1", "--no-report")
    assert found["runs"] == 10
    assert len(RunFolder.open(tmp_path / "r").entries()) > kept


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--points", "0"], "points 0: is not a number of points"),
        (["--half-width", "0"], "half_width 0.0: is not a relative half-width"),
        (["--kernels", "memset_nt,triad"], "calibrate one kernel and one message size at a time"),
        (
            ["--set", "pattern=pingpong", "--set", "metric=latency"],
            "has points without bandwidths of both sides",
        ),
        (["--resume", "r", "--seed", "1"], "seed: cannot be given with --resume"),
        (["--resume", "full"], "is a run of the plan quick, not a calibration"),
        (["--plan", "modell"], "did you mean 'model'"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_before_anything_is_written(
    calibrate: Any, tmp_path: Path, words: list[str], sentence: str
) -> None:
    if "full" in words:
        elbowroom.run(
            "quick", machine="henri", overrides=elbowroom.Overrides(repeat=1), out="full", report=False
        )
    elif "--resume" not in words:
        words = [*words, "--machine", "henri"]
    code, told, err = calibrate(*words)
    assert code == 2
    assert sentence in err
    assert "error" in told
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def quiet(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up site on a machine without other work."""
    monkeypatch.setattr("elbowroom.measure.manifest.sample", lambda: 0.0)
    monkeypatch.setattr("elbowroom.measure.campaign.others_busy", lambda before, after: 0.0)
    return site


def test_one_computing_core_and_one_node_say_what_cannot_be_learned(
    calibrate: Any, quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    code, found, _ = calibrate("--mpi", str(quiet), "--run-out", "r", *QUICK)
    assert code in (0, 3)
    assert (found["reason"], found["runs"], found["full_runs"]) == ("complete", 1, 1)
    assert found["saved"] == "1 point measured, which is every point: nothing was saved."
    told = " ".join(found["unknown"])
    assert "there is no remote memory to measure" in told
    assert "needs three counts" in told


def test_one_probe_serves_all_choices_and_a_lost_one_is_started_again(
    calibrate: Any, quiet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(36)))
    monkeypatch.setenv("FAKE_TOPOLOGY", str(EXAMPLE))
    opened = []
    start = source.Live.open

    def counted(self: source.Live, *words: Any) -> Any:
        opened.append(words)
        return start(self, *words)

    monkeypatch.setattr(source.Live, "open", counted)
    words = ("--mpi", str(quiet), "--points", "12", "--half-width", "0.1", *QUICK)
    _, found, err = calibrate(*words, "--run-out", "a")
    assert found["runs"] == 12, err
    assert len(opened) == 1
    opened.clear()
    monkeypatch.setenv("FAKE_DIE", "memset_nt-n18:1")
    _, found, err = calibrate(*words, "--run-out", "b")
    assert found["runs"] == 12, err
    failed = [point for point in elbowroom.open("b").points() if point.status == "failed"]
    assert failed
    assert all("out of luck" in point.reason for point in failed)
    assert len(opened) == 1 + len(failed)
