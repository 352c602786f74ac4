"""Every command on a pseudo-terminal of 50 columns that shows only ASCII: none is silent for two seconds, or
longer where the machine is slow, and no line is wider.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest

import elbowroom
import terminal
import trace_stand_ins
import wrong_files
from cli_commands import every_command
from elbowroom.profile import rank_file as f
from made_profiles import MS, Row, write_profile

ROOT = Path(__file__).resolve().parents[3]
CURVES = """# name: m
# cores_first_socket: 4
# numa_per_socket: 1
comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together
0,0,1,5630.2,10871.0,5630.0,10865.1
"""
SILENCE = 2.0
"""Seconds without a byte that are allowed, on a machine that does nothing else."""

EXAMPLES = {
    "accept site": "accept --virtual 10 --plant link:3",
    "doctor": "doctor",
    "run": "run quick --machine henri --out r",
    "study": "study denis2021 --machine henri --quick --only 'Fig. 2' -o s",
    "papers": "papers tan2012",
    "show": "show run",
    "compare": "compare run run",
    "report": "report run -o r.html",
    "export": "export run --format csv -o e.csv",
    "plans": "plans",
    "advise": "advise henri --job job.toml",
    "calibrate": "calibrate --machine henri --points 3 --repeat 5 --run-out c -o c.json",
    "explain": "explain run",
    "list": "list .",
    "machine list": "machine list",
    "machine show": "machine show henri",
    "machine from-run": "machine from-run measured -o m.toml",
    "predict-step": "predict-step henri --cores 4 --comp-node 0 --comm-node 0 "
    "--comp-bytes 2GB --comm-bytes 256MB",
    "import": "import curves.csv -o i.json",
    "fit": "fit measured -o f.json",
    "evaluate": "evaluate measured fitted.json",
    "colocate measure": "colocate measure apps.toml -o cm --repeat 5",
    "colocate predict": "colocate predict p q",
    "colocate schedule": "colocate schedule --matrix matrix.csv",
    "predict": "predict henri --cores 4 --comp-node 0 --comm-node 0",
    "schema": "schema model",
    "simulate-memory": "simulate-memory --machine henri",
    "broadcast tune": "broadcast tune",
    "broadcast draw": "broadcast draw --tree binary --recipients 30",
    "help": "help virtual",
    "completion": "completion bash",
    "manual": "manual",
    "diagnose": "diagnose --profile p --model henri --cores 2 --job-out j.toml",
    "profile show": "profile show p",
    "profile what-if": "profile what-if p --model henri --cores 2",
    "trace merge": "trace merge t -o o.json",
    "trace stat": "trace stat t",
    "trace check": "trace check t",
    "trace sync": "trace sync t",
}
"""A small example of each command, which takes its files from `wrong_files.furnish`."""

NOT_HERE = {
    "accept history": "reads tables of runs, which are small: tests/unit/accept/test_history.py",
    "tour": "runs commands that are here",
    "broadcast simulate": "waits for a program: test_silence",
    "broadcast bench": "waits for a program: test_silence",
    "broadcast factorize": "waits for a program: test_silence",
    "broadcast curves": "waits for a program: test_silence",
    "nic measure": "waits for a program: test_silence",
    "colocate demand": "needs a quiet machine for minutes; it waits as colocate measure does",
    "colocate fit": "needs a quiet machine for minutes; its bar is that of every measurement",
    "nic run": "the terminal is the program's",
    "guard": "the terminal is the program's",
    "profile record": "the terminal is the program's",
    "trace record": "the terminal is the program's",
    "trace overhead": "waits for a program: test_silence",
    "trace flushes": "waits for a program: test_silence",
    "trace activity": "reads as trace merge does",
    "trace overlap": "reads as trace merge does",
}
"""Commands without an example, and why."""


def test_every_command_has_an_example_or_a_reason() -> None:
    assert {name for name, _ in every_command()} == set(EXAMPLES) | set(NOT_HERE)
    assert set(EXAMPLES) & set(NOT_HERE) == set()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the examples."""
    folder = tmp_path_factory.mktemp("terminals")
    wrong_files.furnish(folder, ROOT / "tests" / "data" / "quick", ROOT / "docs")
    out = str(folder / "measured")
    run = elbowroom.run("model", machine="henri", repeat=5, out=out, report=False, tell=lambda _: None)
    elbowroom.fit(run, out=str(folder / "fitted.json"))
    trace_stand_ins.recorded(folder / "t")
    trace_stand_ins.reader(folder)
    rows: list[list[Row]] = [[], []]
    for step in range(20):
        for rank in (0, 1):
            both = ((10 * step + 7) * MS, (10 * step + 10) * MS, 1 << 20, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL | f.BETWEEN), (*both, f.RECEIVE, f.BETWEEN)]
    write_profile(folder / "p", rows, (0, 1), end=200 * MS, host=b"henri")
    shutil.copytree(folder / "p", folder / "q")
    (folder / "curves.csv").write_text(CURVES)
    return folder


def is_allowed(silence: float, place: Path) -> bool:
    """Whether a command may write nothing for so many seconds: more where this machine starts an empty
    command slowly now.
    """
    return (
        silence < SILENCE or silence < SILENCE + 3 * terminal.elbowroom(["completion", "bash"], place).seconds
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_command_is_silent_for_two_seconds_or_needs_a_wide_terminal(place: Path, name: str) -> None:
    env = {"ELBOWROOM_TRACE_READER": str(place / "trace-reader"), "PYTHONIOENCODING": "ascii"}
    screen = terminal.elbowroom(shlex.split(EXAMPLES[name]), place, env=env, columns=NARROW)
    assert screen.code in (0, 3, 4), screen.text
    gap, before = screen.longest_silence()
    assert is_allowed(gap - 2 * screen.late, place), before
    assert screen.text.isascii()
    if name not in AS_IT_STANDS:
        wide = [line for line in lines(screen.text) if len(line) > NARROW and not unbroken(line)]
        assert wide == []


NARROW = 50
"""Columns of the terminal."""
AS_IT_STANDS = {"completion", "help", "manual", "schema"}
"""Commands that print a page or a file as it is."""


def lines(text: str) -> list[str]:
    """What stays on the terminal, without colours."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text.replace("\r\n", "\n"))
    return [line.rpartition("\r\x1b[K")[2] for line in plain.split("\n")]


def unbroken(line: str) -> bool:
    """A word, a command that can be copied, or a message, which is one line for those who search for it."""
    return " " not in line.strip() or line.startswith(("next: ", "scontrol ", "warning: ", "elbowroom: "))


def slow(folder: Path, seconds: float) -> Path:
    """A program that only sleeps, and then fails."""
    path = folder / "slow"
    path.write_text(f"#!/bin/sh\nsleep {seconds}\nexit 1\n")
    path.chmod(0o755)
    return path


def test_a_program_that_takes_five_seconds_is_heard_of_all_the_time(place: Path, tmp_path: Path) -> None:
    env = {"ELBOWROOM_SIMULATOR": str(slow(tmp_path, 5))}
    screen = terminal.elbowroom(["simulate-memory", "--machine", "henri"], tmp_path, env=env)
    assert screen.seconds > 5
    assert is_allowed(screen.longest_silence()[0] - 2 * screen.late, place)
    assert "simulating, 3 s" in screen.text


APPS = "cores = 2\n[apps.a]\ncommand = 'sleep 30'\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_stopped_command_leaves_the_terminal_as_it_was(tmp_path: Path, number: int) -> None:
    (tmp_path / "apps.toml").write_text(APPS)
    words = ["colocate", "measure", "apps.toml", "-o", "m", "--repeat", "5"]
    screen = terminal.elbowroom(words, tmp_path, stop=("0 of ", number))
    assert screen.code == 1
    assert (tmp_path / "m" / "times.jsonl").exists()
    assert "\x1b[?25l" not in screen.text  # the cursor was never hidden
    drawn, _, after = screen.text.rpartition("\r\x1b[K")
    assert "0 of " in drawn
    assert after.startswith("elbowroom: out 'm': stopped; what was timed is kept")
    assert after.endswith("\n")


def test_forty_columns_have_one_line_that_does_not_wrap(tmp_path: Path) -> None:
    (tmp_path / "apps.toml").write_text(APPS)
    words = ["colocate", "measure", "apps.toml", "-o", "m", "--repeat", "5"]
    env = {"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    stop = ("0 of ", signal.SIGINT)
    screen = terminal.elbowroom(words, tmp_path, env=env, columns=40, stop=stop)
    drawn = [part for part in screen.text.split("\r\x1b[K")[1:-1] if part and "\n" not in part]
    assert drawn
    assert max(map(len, drawn)) < 40
    assert screen.text.isascii()


def test_a_dumb_terminal_has_lines(tmp_path: Path) -> None:
    (tmp_path / "apps.toml").write_text(APPS)
    words = ["colocate", "measure", "apps.toml", "-o", "m", "--repeat", "5"]
    screen = terminal.elbowroom(words, tmp_path, env={"TERM": "dumb"}, stop=("running sleep", signal.SIGINT))
    assert "\x1b" not in screen.text
    assert "measuring " in screen.text
