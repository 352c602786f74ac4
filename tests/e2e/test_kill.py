"""kill -9 at any instant: resumed to the end, nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import read_journal

KILLS = 20


def start(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "elbowroom", "run", *words, "--no-report", "--no-open"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def killed(process: subprocess.Popen[bytes], after: float) -> bool:
    """Kills the process after that long; False when it had ended before."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    assert process.stderr is not None
    assert process.returncode in (0, 3), process.stderr.read().decode()
    process.communicate()
    return False


def journal_of(run: Path) -> bytes:
    return (run / "samples.jsonl").read_bytes() if run.exists() else b""


def campaign(words: list[str], folder: Path, longest: float, kills: int) -> int:
    """Starts, kills, and resumes until the run is complete; returns how many kills hit. Checks the
    journal.
    """
    run = folder / "r"
    chance = random.Random(7)
    hits = 0
    sound = b""
    for _ in range(kills):
        asked = ["--resume", "r"] if run.exists() else [*words, "--out", "r"]
        hits += killed(start(asked, folder), chance.uniform(0.05, longest))
        now = journal_of(run)
        # Every complete line that was there stays there, byte for byte.
        assert now.startswith(sound)
        sound = now[: now.rfind(b"\n") + 1]
    asked = ["--resume", "r"] if run.exists() else [*words, "--out", "r"]
    assert not killed(start(asked, folder), 300)
    assert journal_of(run).startswith(sound)
    return hits


def test_twenty_kills_lose_nothing_and_measure_nothing_twice(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "0.02")
    words = ["quick", "--sizes", "4,4MiB", "--repeat", "40", "--mpi", str(site), "--set", "scheduling=true"]
    hits = campaign(words, tmp_path, 1.5, KILLS)
    assert hits > KILLS // 2
    entries, size = read_journal(tmp_path / "r" / "samples.jsonl")
    assert size == (tmp_path / "r" / "samples.jsonl").stat().st_size
    units = [entry.unit for entry in entries]
    assert len(units) == len(set(units))
    points = {unit.point for unit in units}
    assert {unit.repetition for unit in units} == set(range(40))
    assert len([unit for unit in units if not unit.closing]) == 40 * len(points)
    # A failed entry would be a unit that was lost in a way the journal noticed.
    assert {entry.record["status"] for entry in entries} == {"ok"}
    assert not list(tmp_path.glob(".r.*.tmp/samples.parquet"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_go_on(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("FAKE_SLEEP", "0.05")
    words = ["quick", "--sizes", "4", "--repeat", "200", "--mpi", str(site), "--out", "r"]
    process = start(words, tmp_path)
    deadline = time.monotonic() + 60
    while journal_of(tmp_path / "r").count(b"\n") < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"elbowroom run --resume r" in err
    assert b"Traceback" not in err
    assert journal_of(tmp_path / "r").endswith(b"\n")
    assert RunFolder.open(tmp_path / "r").manifest.measured_share is not None


@pytest.mark.real
@pytest.mark.slow
def test_a_real_probe_ends_with_its_campaign_and_the_run_is_resumed(tmp_path: Path) -> None:
    words = ["quick", "--kernels", "prime", "--sizes", "4", "--repeat", "6", "--set", "window=0.02"]
    words += ["--set", "steady.limit=0.05"]
    process = start([*words, "--out", "r"], tmp_path)
    deadline = time.monotonic() + 120
    while journal_of(tmp_path / "r").count(b"\n") < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert killed(process, 0.01)
    ranks = [rank["pid"] for rank in RunFolder.open(tmp_path / "r").manifest.hello["ranks"]]
    assert len(ranks) == 2
    assert ended(ranks, 30)
    before = journal_of(tmp_path / "r")
    assert not killed(start(["--resume", "r"], tmp_path), 300)
    assert journal_of(tmp_path / "r").startswith(before[: before.rfind(b"\n") + 1])
    units = [entry.unit for entry in read_journal(tmp_path / "r" / "samples.jsonl")[0]]
    assert len(units) == len(set(units)) == 7


def ended(pids: list[int], patience: float) -> bool:
    """Whether all these processes are gone before the patience is."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False
