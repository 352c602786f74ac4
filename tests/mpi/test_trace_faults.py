"""Calls of the system that fail inside the recorder, one after another: the traced program
does what it does untraced, and whatever its trace lacks is said in a sentence.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elbowroom.launch.mpi import find_mpi
from traced import interposer

ROOT = Path(__file__).parents[2]
FAULTS = ROOT / "tests" / "faults"
CODE = 7
EVENTS = 3 * 6000
MPI_EVENTS = 3 * 42  # at least: the calls of its three steps
KINDS = ["memory", "write", "open", "room", "mmap", "thread"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the programs and the library that makes calls fail."""
    made = tmp_path_factory.mktemp("faults")
    recorder = interposer(find_mpi()).parent
    shared = ["-shared", "-fPIC", FAULTS / "failing.c", "-o", made / "libfailing.so", "-ldl"]
    linked = [recorder / "libelbow_trace.so", recorder / "libelbow_clock.so", f"-Wl,-rpath,{recorder}"]
    program = [f"-I{ROOT / 'include'}", FAULTS / "recorded.c", "-o", made / "recorded", *linked]
    for words in (shared, [*program, "-lpthread", "-ldl"]):
        subprocess.run(["cc", "-w", "-O1", *map(str, words)], check=True, capture_output=True)
    return made


def fail(
    program: list[str],
    kind: str,
    ks: tuple[str, int, int],
    folder: Path,
    events: int = EVENTS,
    **environment: str,
) -> int:
    """Runs the program for the ks (first, last, step) and checks each; how many had a fault."""
    first, last, step = ks
    told = {"ELBOW_TRACE_JOB": "7", "ELBOW_TRACE_MEMORY": str(folder), "ELBOW_TRACE_TEXT_BYTES": "4096"}
    done = subprocess.run(
        [*program, kind, first, str(last), str(step), str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **told, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    faults = 0
    for k, status, counted in (map(int, line.split()) for line in done.stdout.splitlines()):
        said = (folder / f"{k}.err").read_text()
        assert status != signal.SIGALRM, f"{kind} {k}: hangs"
        assert os.WIFEXITED(status), f"{kind} {k}: ended by signal {os.WTERMSIG(status)}: {said}"
        assert os.WEXITSTATUS(status) == CODE, f"{kind} {k}: {said}"
        assert (folder / f"{k}.out").read_text() == "result 60\n"
        assert is_whole(folder / str(k), events) or said_why(folder / str(k), said), (
            f"{kind} {k}: nothing is said"
        )
        faults += counted >= k
    return faults


def _end(trace: Path) -> dict[str, Any]:
    """The last line of the only process; {} where its trace has no end."""
    (lines,) = list(trace.glob("rank-*.jsonl")) or [None]
    text = "" if lines is None else lines.read_text()
    last = json.loads(text.splitlines()[-1]) if text else {}
    return last if last.get("record") == "end" else {}


def is_whole(trace: Path, events: int) -> bool:
    """Whether nothing is lost."""
    end = _end(trace)
    return bool(end) and end["kept"] >= events and not end["lost"] and not end["refused_threads"]


def said_why(trace: Path, said: str) -> bool:
    """In the trace, or to the user."""
    end = _end(trace)
    return bool(said.strip() or end.get("refusal") or end.get("trouble"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["stop", "drain"])
def test_a_program_is_recorded_or_told_why_not_whatever_call_fails(
    policy: str, kind: str, folder: Path, tmp_path: Path
) -> None:
    words = [str(folder / "recorded")]
    environment = {
        "LD_PRELOAD": str(folder / "libfailing.so"),
        "ELBOW_TRACE_POLICY": policy,
        "ELBOW_TRACE_BYTES": "262144",
    }
    faults = fail(words, kind, ("1", 200, 1), tmp_path, **environment)
    assert faults > 0 or (kind, policy) == ("thread", "stop")


@pytest.mark.parametrize("kind", ["memory", "write", "open", "room"])
def test_a_program_goes_on_where_everything_fails_from_some_call_on(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    words = [str(folder / "recorded")]
    environment = {
        "LD_PRELOAD": str(folder / "libfailing.so"),
        "ELBOW_TRACE_POLICY": "drain",
        "ELBOW_TRACE_BYTES": "262144",
    }
    assert fail(words, kind, ("1+", 200, 9 if kind == "memory" else 3), tmp_path, **environment) > 0


@pytest.mark.parametrize(
    ("policy", "first", "last", "step"),
    [("stop", "1", 240, 80), ("stop", "1+", 400, 80), ("grow", "1+", 400, 100)],
)
def test_an_mpi_program_goes_on_where_its_interposer_has_no_memory(
    policy: str, first: str, last: int, step: int, folder: Path, tmp_path: Path
) -> None:
    mpi = find_mpi()
    program = folder / "mpi_recorded"
    words = [mpi.compiler, "-x", "c++", "-fpermissive", "-w", "-O1", "-DWITH_MPI", FAULTS / "recorded.c"]
    subprocess.run([*map(str, words), "-o", str(program), "-ldl"], check=True, capture_output=True)
    environment = {
        "LD_PRELOAD": f"{folder / 'libfailing.so'} {interposer(mpi)}",
        "ELBOW_TRACE_POLICY": policy,
        "ELBOW_TRACE_RANK": "0",
        "ELBOW_TRACE_RANKS": "1",
    }
    assert fail([str(program)], "memory", (first, last, step), tmp_path, MPI_EVENTS, **environment) > 0
