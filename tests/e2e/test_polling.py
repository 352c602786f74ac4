"""`elbowroom run polling` on this machine, with real workers and a real MPI; nothing here asserts a rate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.store.folder import RunFolder

TINY = ["--repeat", "1", "--set", "window=0.02", "--set", "steady.limit=0.05", "--set", "control=false"]


@pytest.mark.real
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores: one polls, one communicates")
def test_workers_poll_as_often_as_their_back_off_says_and_paused_ones_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # Who else is busy here is no matter: it takes a second each time.
    monkeypatch.setattr("elbowroom.measure.manifest.sample", lambda: 0.0)
    words = ["polling", *TINY, "--set", "cursors=2,10000", "--set", "sequence=A,B,AB", "--set", "backoffs="]
    code = cli.run(["run", *words, "--mpi", "embedded", "--out", "r"])
    out = "".join(capsys.readouterr().out.split())
    assert code in (0, 3), out
    rates: dict[str, float] = {}
    for entry in RunFolder.open(tmp_path / "r").entries():
        record = entry.record
        # The list was polled as often as counted, every task executed once, paused workers used no CPU.
        assert record["validated"], record
        name = next(word for word in ("cursor10000", "cursor2", "paused") if word in entry.point)
        alone = [phase["comp"]["rate"] for phase in record["phases"] if phase["phase"] == "A"]
        rates[name] = max(rates.get(name, 0.0), *alone)
        assert {phase["comp"]["unit"] for phase in record["phases"] if "comp" in phase} == {"M/s"}
    assert rates["cursor2"] > 3 * rates["cursor10000"] > 3 * rates["paused"] > 0
    assert "withback-off10000" in out
    assert "withpausedones" in out


def test_more_workers_than_cores_are_refused_before_anything_starts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    words = ["run", "polling", "--set", "n=64", "--set", "backoffs=", "--mpi", str(site), "--out", "r"]
    assert cli.run(words) == 2
    assert "64 workers are more than there are cores for them" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
