"""What a run's results are made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from elbowroom.measure.results import evaluate
from elbowroom.store.folder import RunFolder

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
