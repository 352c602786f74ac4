"""A study that is stopped or killed: the same command goes on, and measures nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elbowroom.store.journal import read_journal

WORDS = ["study", "denis2021", "--only", "Fig. 2", "--only", "Fig. 3a", "--repeat", "12", "-o", "s"]
FIRST, SECOND = "prime-counting", "avx512"


def start(site: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "elbowroom", *WORDS, "--mpi", str(site)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def journal(folder: Path, run: str) -> bytes:
    path = folder / "s" / "runs" / run / "samples.jsonl"
    return path.read_bytes() if path.exists() else b""


def stopped_in_second_run(site: Path, folder: Path, number: signal.Signals) -> tuple[int, bytes]:
    """Starts a study and stops it in its second run: exit code and stderr."""
    process = start(site, folder)
    deadline = time.monotonic() + 60
    while journal(folder, SECOND).count(b"\n") < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_is_stopped_goes_on_with_the_same_command(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "0.01")
    code, err = stopped_in_second_run(site, tmp_path, number)
    if number == signal.SIGINT:
        assert code == 1
        assert b"continue with: elbowroom study --resume s" in err
        assert b"Traceback" not in err
    before = {run: journal(tmp_path, run) for run in (FIRST, SECOND)}
    process = start(site, tmp_path)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (0, 3), err.decode()
    assert journal(tmp_path, FIRST) == before[FIRST]
    sound = before[SECOND][: before[SECOND].rfind(b"\n") + 1]
    assert journal(tmp_path, SECOND).startswith(sound)
    entries = read_journal(tmp_path / "s" / "runs" / SECOND / "samples.jsonl")[0]
    assert len(entries) == len({entry.unit for entry in entries})
    document = json.loads((tmp_path / "s" / "results.json").read_bytes())
    assert [run["state"] for run in document["runs"]] == ["measured", "measured"]


def test_a_program_that_dies_in_one_run_leaves_the_others(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIE", "prime:*")
    process = start(site, tmp_path)
    process.communicate(timeout=120)
    document = json.loads((tmp_path / "s" / "results.json").read_bytes())
    states = {run["name"]: run["state"] for run in document["runs"]}
    assert states[SECOND] == "measured"
    statements = {
        statement["text"]: statement["verdict"]
        for exhibit in document["exhibits"]
        for statement in exhibit["statements"]
    }
    assert set(statements.values()) == {"not testable here"}
