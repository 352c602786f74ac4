"""What a run's results are made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.measure.results import evaluate
from elbowroom.store.folder import RunFolder
from elbowroom.version import __version__

DATA = Path(__file__).parents[2] / "data"


def test_drifts_belong_to_the_points_that_are_shown_where_others_were_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "quick", folder)
    whole = evaluate(RunFolder.open(folder))
    dropped = whole.points[0].id
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["budget"] = {"seconds": 1.0, "spent_s": 1.0, "least": 1, "left_out": [dropped]}
    file.write_text(json.dumps(manifest))
    wanted = {(drift.point, drift.side, drift.closing) for drift in whole.drifts if drift.point != dropped}
    found = evaluate(RunFolder.open(folder)).drifts
    assert len(wanted) > 1
    assert {(drift.point, drift.side, drift.closing) for drift in found} == wanted


def cut_short(tmp_path: Path, lines: int) -> RunFolder:
    """A finished run whose journal has lost its last lines."""
    folder = tmp_path / "run"
    shutil.copytree(DATA / "quick", folder)
    journal = folder / "samples.jsonl"
    kept = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(kept[: len(kept) - lines]))
    return RunFolder.open(folder)


def test_a_finished_run_whose_journal_was_cut_is_not_trusted_and_says_so(tmp_path: Path) -> None:
    whole = evaluate(cut_short(tmp_path / "whole", 0))
    assert "is not complete" not in whole.verdict.text
    short = evaluate(cut_short(tmp_path / "short", 12)).verdict
    assert not short.trusted
    assert short.text.startswith("This run is not complete: its journal lacks ")
    assert short.reasons[0] == short.text


def test_a_manifest_of_a_newer_version_is_not_sent_to_this_release(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / "quick", folder)
    file = folder / "manifest.json"
    for release, named in ((__version__, "the release that wrote it"), ("9.9.9", "elbowroom 9.9.9")):
        file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99, "elbowroom": release}))
        with pytest.raises(UsageError, match="was written by a newer release") as error:
            RunFolder.open(folder)
        assert named in error.value.hint
