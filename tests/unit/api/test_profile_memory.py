"""What `profile` writes of memory traffic, around a program that is run as it is."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

from elbowroom.launch import memory_counters
from elbowroom.launch.memory_counters import Counters
from elbowroom.launch.recorder import RecordedCommand
from elbowroom.profile.summary import MEMORY
from elbowroom.verbs import profile

SLEEP = RecordedCommand(("sleep", "0.05"), dict(os.environ), (), None, ())
FAILS = RecordedCommand(("sh", "-c", "exit 7"), dict(os.environ), (), None, ())


def test_traffic_is_sampled_while_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = itertools.count(100, 50)
    made = Counters("made", "host", lambda: float(next(counts)))
    monkeypatch.setattr(memory_counters, "find_counters", lambda: made)
    code, traffic = profile._run(SLEEP, None)
    assert code == 0
    assert not isinstance(traffic, str)
    fields = profile._memory(tmp_path, traffic)
    assert fields == {"memory_bytes": traffic.total, "memory_reason": ""}
    assert MEMORY.read(tmp_path / "memory.json") == traffic
    assert json.loads((tmp_path / "memory.json").read_text())["schema"] == "elbowroom/profile-memory"


def test_without_counters_the_program_runs_and_the_reason_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_counters, "find_counters", lambda: "no counters here")
    code, traffic = profile._run(FAILS, None)
    assert code == 7
    assert profile._memory(tmp_path, traffic) == {"memory_reason": "no counters here"}
    assert not (tmp_path / "memory.json").exists()


def test_a_counter_that_stops_to_answer_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_counters, "find_counters", lambda: Counters("made", "host", lambda: None))
    assert profile._run(SLEEP, None) == (0, "made stopped to count")
