"""`elbowroom run --trace`: a real measurement, recorded and read again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.store.journal import read_journal

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need a core each")

TINY = ["--sizes", "64KiB", "--kernels", "triad", "--repeat", "2", "--set", "window=0.02"]


def test_a_measurement_is_recorded_with_its_threads_phases_and_sync_points(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r"
    settings = [*TINY, "--comp-cores", "1", "--comm-core", "0", "--set", "working_set=8MiB"]
    code = cli.run(["run", "quick", *settings, "--trace", "--no-report", "--out", str(out), "--json"])
    assert code in (0, 3), capfd.readouterr().err
    capfd.readouterr()
    traces = sorted(path.name for path in Path(f"{out}.trace").iterdir())
    assert traces == ["1"]
    folder = str(Path(f"{out}.trace") / "1")

    code = cli.run(["trace", "check", folder, "--json"])
    check = json.loads(capfd.readouterr().out)
    assert code == 0, check
    assert check["ranks"] == 2
    assert check["lost"] == check["tachyons"] == check["unmatched"] == 0
    assert check["messages"] > 0
    assert check["sync_points"] >= 2 * 3

    code = cli.run(["trace", "stat", folder, "--json"])
    stat = json.loads(capfd.readouterr().out)
    assert {thread["name"] for thread in stat["threads"]} == {"communication", "computation, core 1"}
    types = {found["name"]: found for found in stat["types"]}
    assert types["triad"]["begins"] == types["triad"]["ends"] > 10
    assert types["pingpong"]["begins"] > 10
    repetitions = len(read_journal(out / "samples.jsonl")[0])
    assert types["repetition"]["begins"] == repetitions


def test_what_starts_nothing_records_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["run", "quick", "--machine", "henri", "--trace", "--out", str(tmp_path / "r")]
    assert cli.run(words) == 2
    assert "trace" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
