"""What `run ema` prints and draws, from a made-up probe (tests/fake_site.py), compared with kept texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import elbowroom
from elbowroom import cli
from elbowroom.draw import svg
from elbowroom.points.accesses import series_of

SETTINGS = {"who": "sender,receiver", "access_step": "16000", "window_sizes": "25"}


@pytest.fixture
def touched(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> elbowroom.Run:
    """A run of two sides, 251 sizes in ten windows each."""
    monkeypatch.chdir(tmp_path)
    return elbowroom.run(
        "ema",
        mpi=str(site),
        out="touched",
        overrides=elbowroom.Overrides(repeat=2, settings=SETTINGS),
        report=False,
        tell=lambda _: None,
    )


def test_a_run_of_ema_is_told_in_a_table_findings_and_figures(
    touched: elbowroom.Run, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert cli.run(["show", str(touched.path)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    # Above the table is what other processes did meanwhile, too, and behind it what the control says.
    start = next(index for index, line in enumerate(lines) if line.endswith(" sizes"))
    end = next(index for index, line in enumerate(lines) if line.startswith("One-way times in us."))
    assert "\n".join(line.rstrip() for line in lines[start:end]) == snapshot(name="show")
    assert "\n".join(finding.text for finding in touched.findings) == snapshot(name="findings")
    [lower] = [figure for figure in touched.figures if figure.name.startswith("ema-lower")]
    assert svg.svg(lower) == snapshot(name="lower bounds")


def test_a_run_of_ema_is_compared_exported_reported_replayed_and_resumed(
    touched: elbowroom.Run, tmp_path: Path
) -> None:
    changes = elbowroom.compare(touched, touched)
    assert not any(change.significant for change in changes)
    for kind in ("csv", "json", "parquet"):
        [file] = touched.export(kind, tmp_path / f"x.{kind}")  # type: ignore[arg-type]
        assert file.stat().st_size > 1000
    page = touched.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Writes by the receiver, 400 B messages, 251 sizes" in page
    assert "past L2 (2 MiB)" in page

    journal = touched.path / "samples.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    again = elbowroom.run(
        "ema",
        launcher=f"replay:{touched.path}",
        out=str(tmp_path / "again"),
        overrides=elbowroom.Overrides(repeat=2, settings=SETTINGS),
        report=False,
        tell=lambda _: None,
    )
    windows = [point for point in again.points() if series_of(point.payload) is not None]
    assert windows == [point for point in touched.points() if series_of(point.payload) is not None]
    journal.write_bytes(b"".join(lines[:-20]))
    resumed = elbowroom.resume(touched.path, report=False, tell=lambda _: None)
    assert {point.status for point in resumed.points()} == {"ok"}
    assert journal.read_bytes().count(b"\n") == len(lines)
