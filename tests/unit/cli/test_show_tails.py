"""`show --tails`, and the tails in JSON and in the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from elbowroom import api, cli

QUICK = Path(__file__).parents[2] / "data" / "quick"


@pytest.fixture(scope="module")
def due(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose messages of 4 B were due every 20 us; one in a hundred started 1 ms late."""
    run = tmp_path_factory.mktemp("due") / "run"
    shutil.copytree(QUICK, run)
    lines = []
    for line in (run / "samples.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for phase in entry.get("record", {}).get("phases", []):
            if "comm" in phase and entry["point"].startswith("triad-n1-4B"):
                phase["comm"]["batches"] = [1.5] * 1000
                late = [1000.0 if at % 100 == 50 else 0.0 for at in range(1000)]
                phase["comm"]["due"] = {
                    "period_us": 20.0, "first_ns": phase["start_ns"], "clock_call_ns": 30.0, "late_us": late
                }  # fmt: skip
        lines.append(json.dumps(entry))
    (run / "samples.jsonl").write_text("\n".join([*lines, ""]))
    return run


def test_tails_are_printed_in_place_of_the_points(due: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", str(due), "--tails"]) == 0
    printed = capsys.readouterr().out
    assert "Latency from the due time, us: triad, n = 1, 4 B" in printed
    assert "stalls of 1.0" in printed
    assert "kept" not in printed.partition("Latency")[2].partition("\n\n")[0]


def test_tails_are_part_of_the_json_and_of_the_report(due: Path) -> None:
    run = api.open(due)
    tails = run.show()["tails"]
    assert [tail["style"] for tail in tails] == ["alone", "together"]
    assert tails[0]["tail"]["percentiles"][0]["value"] == pytest.approx(3.0)
    assert "Latency from the due time" in run.report(due.parent / "report.html").read_text()


def test_a_run_of_batches_says_why_it_has_no_tails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", str(QUICK), "--tails"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Tails: n/a, no message of this run was due at a fixed time" in printed
    assert "tails" not in api.open(QUICK).show()
