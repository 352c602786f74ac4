"""Tests that run in several workers, and one that must be alone (tests/turns.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import turns

OTHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import turns
print("waits", flush=True)
with turns.turn(Path(sys.argv[2]), alone=sys.argv[3] == "alone"):
    print("runs", flush=True)
"""


def other(folder: Path, how: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-S", "-E", "-c", OTHER, str(Path(turns.__file__).parent), str(folder), how]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_tests_run_beside_each_other(tmp_path: Path) -> None:
    with turns.turn(tmp_path, alone=False), other(tmp_path, "beside") as process:
        assert process.communicate(timeout=60)[0] == "waits\nruns\n"


@pytest.mark.parametrize("mine", [True, False])
def test_a_test_that_must_be_alone_waits_for_others_and_they_for_it(tmp_path: Path, mine: bool) -> None:
    with turns.turn(tmp_path, alone=mine):
        process = other(tmp_path, "beside" if mine else "alone")
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    assert process.communicate(timeout=60)[0] == "runs\n"
