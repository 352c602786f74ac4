"""Several jobs in a trace's directory: found, named, set apart when they have ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elbowroom.api import check_trace
from elbowroom.errors import UsageError
from elbowroom.launch import trace_reader


def job(folder: Path, command: str, memory: str = "/nowhere") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.json").write_text(json.dumps({"record": "job", "identity": command, "command": command}))
    (folder / "rank-00000.jsonl").write_text(json.dumps({"record": "trace", "memory": memory}) + "\n")
    return folder


def test_one_job_keeps_the_directory(tmp_path: Path) -> None:
    job(tmp_path, "a")
    assert trace_reader.settle(tmp_path) == [tmp_path]


def test_the_first_of_several_jobs_is_set_apart_when_all_have_ended(tmp_path: Path) -> None:
    job(tmp_path, "a")
    job(tmp_path / "job-2", "b")
    job(tmp_path / "job-10", "c")
    result = trace_reader.settle(tmp_path)
    assert [(path.name, trace_reader.command_of(path)) for path in result] == [
        ("job-1", "a"), ("job-2", "b"), ("job-10", "c"),
    ]  # fmt: skip
    assert not trace_reader.has_ranks(tmp_path)


def test_a_directory_of_several_jobs_is_refused_with_the_name_of_each(tmp_path: Path) -> None:
    job(tmp_path / "job-1", "./solve mesh")
    job(tmp_path / "job-2", "./post")
    with pytest.raises(UsageError, match=r"2 jobs: .*job-1 \(./solve mesh, 1 rank\), .*job-2"):
        check_trace(tmp_path)


def test_rings_that_a_killed_process_left_in_memory_are_moved_beside_its_trace(tmp_path: Path) -> None:
    memory = tmp_path / "shm" / "elbow-trace-7-rank-00000-99"
    memory.mkdir(parents=True)
    (memory / "thread-00000.ring").write_text("ring")
    job(tmp_path / "t", "a", str(memory))
    trace_reader.settle(tmp_path / "t")
    assert not memory.exists()
    assert (tmp_path / "t" / memory.name / "thread-00000.ring").read_text() == "ring"
