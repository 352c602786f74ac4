"""trace-reader as a program: what it says where, and its exit codes. What it reads is tested natively."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from elbowroom.launch import build


@pytest.fixture(scope="module")
def reader() -> Path:
    return build.trace_reader()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A rank without events: its first line and its last."""
    clock = {"counter": False, "start_ticks": 0, "start_ns": 0, "scale": 0}
    first = {"record": "trace", "format": 1, "job": 7, "rank": 0, "ranks": 1, "pid": 1, "memory": "/none"}
    sums = dict.fromkeys(("recorded", "kept", "lost", "texts_lost", "advised_bytes", "event_ns"), 0)
    lines = [{**first, "clock": clock}, {"record": "end", **sums}]
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "rank-00000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def asked(reader: Path, *words: str | Path) -> tuple[int, str, str]:
    done = subprocess.run([reader, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_a_sound_trace_is_exit_code_0_with_one_document(reader: Path, trace: Path) -> None:
    code, out, err = asked(reader, "check", trace)
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["schema"], told["version"], told["ranks"], told["events"]) == (
        "elbowroom/trace-check",
        1,
        1,
        0,
    )


def test_a_damaged_trace_is_exit_code_3_and_told(reader: Path, trace: Path) -> None:
    with (trace / "rank-00000.jsonl").open("a") as lines:
        lines.write("torn")
    code, out, _ = asked(reader, "check", trace)
    assert code == 3
    assert json.loads(out)["damage"][0]["file"] == "rank-00000.jsonl"


def test_what_is_no_trace_is_exit_code_1_with_a_sentence(reader: Path, tmp_path: Path) -> None:
    code, out, err = asked(reader, "stat", tmp_path / "nowhere")
    assert (code, out) == (1, "")
    assert "there is no such folder; name the folder" in err


def test_a_command_that_is_not_there_is_exit_code_2(reader: Path, trace: Path) -> None:
    assert asked(reader, "chek", trace)[0] == 2
    assert asked(reader, "merge", trace, "--to", "mp3", "-o", "x")[0] == 2


@pytest.mark.parametrize(
    "words", [["check"], ["merge", "--to", "columns", "-o", "-"]], ids=lambda w: str(w[0])
)
def test_a_full_disk_behind_stdout_is_exit_code_1(reader: Path, trace: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [reader, words[0], trace, *words[1:]], stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr
