"""Programs that elbowroom starts: timed to their end, and ended with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.processes import run_program

PATIENCE = 30.0


def python(text: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", text]


# A child that holds the output open for a minute, in the session of the program or in one of its own.
HOLDER = """
import os, sys, time
if os.fork() == 0:
    if {new_session}: os.setsid()
    with open({file!r}, "w") as file: file.write(str(os.getpid()))
    time.sleep(60)
while not (os.path.exists({file!r}) and os.path.getsize({file!r})): time.sleep(0.01)
print("started", flush=True)
time.sleep({seconds})
"""


def holder(file: Path, *, new_session: bool, seconds: float) -> list[str]:
    return python(HOLDER.format(file=str(file), new_session=new_session, seconds=seconds))


def is_gone(file: Path) -> bool:
    """Whether the process whose number is in the file has ended, or ends in time."""
    return waited(lambda: not is_running(int(file.read_text())))


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def waited(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("new_session", [False, True])
def test_a_grandchild_that_holds_the_output_does_not_hold_up_the_limit(
    tmp_path: Path, new_session: bool
) -> None:
    begun = time.monotonic()
    with pytest.raises(MachineError, match=r"did not end within 0\.5 s"):
        run_program(holder(tmp_path / "pid", new_session=new_session, seconds=60), 0.5)
    assert time.monotonic() - begun < PATIENCE
    assert is_gone(tmp_path / "pid")


def test_a_program_that_leaves_a_child_behind_has_ended_all_the_same(tmp_path: Path) -> None:
    done = run_program(holder(tmp_path / "pid", new_session=False, seconds=0), None)
    assert done.stdout == "started\n"
    assert done.wall_s < PATIENCE
    assert is_gone(tmp_path / "pid")


def test_output_is_both_streams_in_order_and_need_not_be_text() -> None:
    done = run_program(["sh", "-c", "printf 'a\\377'; printf b >&2; printf c"])
    assert done.stdout == "a\ufffdbc"


@pytest.mark.parametrize("words", [["/nowhere/program"], ["a\0b"]])
def test_a_program_that_is_not_there_is_a_sentence(words: list[str]) -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        run_program(words)


WRITE_PID = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_program_ends_with_elbowroom(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "pid"
    command = [sys.executable, "-S", "-E", "-c", WRITE_PID, str(file)]
    runner = "from elbowroom.launch.processes import run_program"
    code = f"from elbowroom import cli; {runner}; run_program({command})"
    if number not in (signal.SIGKILL, signal.SIGINT):
        code = (
            "from elbowroom.signals import ends_as_interrupt\n"
            "from elbowroom.launch.processes import run_program\n"
            f"with ends_as_interrupt(): run_program({command})"
        )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.DEVNULL, preexec_fn=default_dispositions
    )
    assert waited(lambda: file.exists() and file.read_text() != "")
    process.send_signal(number)
    process.wait(PATIENCE)
    assert is_gone(file)


SIGNAL_DURING_FORK = """
import os, signal
from elbowroom.launch.processes import run_program
from elbowroom.signals import ends_as_interrupt
os.register_at_fork({hook}=lambda: os.kill(os.getpid(), signal.SIGTERM))
with ends_as_interrupt():
    try:
        run_program(["sleep", "0"])
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("hook", ["before", "after_in_parent"])
def test_a_signal_that_arrives_while_a_program_is_started_is_not_lost(hook: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_DURING_FORK.format(hook=hook)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=default_dispositions,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_program_blocks_no_signals() -> None:
    done = run_program(["sh", "-c", "grep SigBlk /proc/self/status"])
    assert int(done.stdout.split()[1], 16) == 0


def default_dispositions() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def test_sigterm_ends_a_measurement_of_overhead_with_its_program_and_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    words = ["trace", "overhead", "--", sys.executable, "-S", "-E", "-c", WRITE_PID, str(file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "elbowroom", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=default_dispositions,
    )
    assert waited(lambda: (file.exists() and file.read_text() != "") or process.poll() is not None)
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, err
    assert err.splitlines()[-1] == "elbowroom: stopped"
    assert is_gone(file)
    assert [path.name for path in tmp_path.iterdir()] == ["pid"]
