"""The load of known memory traffic as a process: it does what it is set to, and never stays behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elbowroom.errors import MachineError
from elbowroom.launch.build import load_program
from elbowroom.launch.load import LoadCount, known_load

CORE = min(os.sched_getaffinity(0))
SMALL = 1 << 20
PATIENCE = 60.0


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie, within PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_load_moves_bytes_once_it_is_set_and_none_at_rate_zero() -> None:
    with known_load([CORE], seconds=PATIENCE, priority="normal") as load:
        assert load.count().bytes == 0
        begin = load.set(rate=None, footprint=SMALL)
        deadline = time.monotonic() + PATIENCE
        while load.count().bytes == begin.bytes and time.monotonic() < deadline:
            time.sleep(0.02)
        stopped = load.set(rate=0)
        assert stopped.bytes > begin.bytes
        time.sleep(0.05)
        assert load.count().bytes == stopped.bytes


def test_a_paced_load_moves_no_more_than_its_rate() -> None:
    with known_load([CORE], seconds=PATIENCE, priority="normal") as load:
        begin = load.set(rate=1e8, footprint=SMALL)
        time.sleep(0.3)
        end = load.count()
        debt, chunk = 0.2e-3 * 1e8, 1 << 15
        assert end.bytes - begin.bytes <= 1e8 * (end.ns - begin.ns) * 1e-9 + debt + 2 * chunk


def test_a_load_on_a_core_that_does_not_exist_is_an_error_of_the_machine() -> None:
    with pytest.raises(MachineError, match="does not exist"), known_load([4095], seconds=1.0):
        pass


def test_a_footprint_beyond_the_largest_is_refused() -> None:
    with known_load([CORE], seconds=PATIENCE) as load, pytest.raises(MachineError, match="footprint"):
        load.set(rate=None, footprint=load.largest + 1)


def test_a_load_ends_by_itself_after_its_time() -> None:
    words = [str(load_program()), "--cores", str(CORE), "--footprint", str(SMALL), "--seconds", "0.2"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as load:
        assert load.wait(PATIENCE) == 0


def test_a_load_ends_with_its_input() -> None:
    words = [str(load_program()), "--cores", str(CORE), "--footprint", str(SMALL)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
        assert load.stdout is not None
        assert load.stdout.readline()
        assert load.stdin is not None
        load.stdin.close()
        assert load.wait(PATIENCE) == 0


def test_a_load_ends_with_a_program_that_is_killed() -> None:
    code = (
        "import subprocess, sys\n"
        "load = subprocess.Popen(sys.argv[1:])\n"
        "print(load.pid, flush=True)\n"
        "load.wait()\n"
    )
    load = [str(load_program()), "--cores", str(CORE), "--footprint", str(SMALL)]
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", code, *load], stdin=read, stdout=subprocess.PIPE, pass_fds=(read,)
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.stdout.readline()
        parent.kill()
        assert ended(pid)
    for end in (read, write):
        os.close(end)


def test_rates_are_differences_of_counts() -> None:
    before, after = LoadCount(1_000, 50, 100), LoadCount(2_001_000, 4_050, 500_100)
    assert after.rate(before) == pytest.approx(2e6)
    assert after.waited(before, cores=1) == pytest.approx(0.25)
    assert after._replace(waited_ns=None).waited(before, cores=1) == 0.0
