"""The ReFrame tests of docs/reference, run by ReFrame on a virtual machine and a virtual site."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import elbowroom

CHECKS = Path(__file__).parents[2] / "docs" / "reference"


def checked(check: str, settings: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What ReFrame says of a check with these variables set; skips where ReFrame is not installed."""
    reframe = shutil.which("reframe")
    if reframe is None:
        pytest.skip("reframe is not installed: pip install reframe-hpc")
    program = folder / "elbowroom"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m elbowroom "$@"\n')
    program.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    source = str(Path(elbowroom.__file__).parents[1])
    searched = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    words = [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
    line = [reframe, "--nocolor", "-c", str(CHECKS / check), "-r", "--prefix", str(folder), *words]
    return subprocess.run(
        [*line, "--performance-report"],
        env={**os.environ, "PATH": path, "PYTHONPATH": searched},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_reframe_reads_the_values_of_a_run(tmp_path: Path) -> None:
    plan = "--machine,henri,--sizes,64MB,--kernels,triad,--repeat,5"
    settings = {"ElbowroomCheck.plan": "sizes", "ElbowroomCheck.options": plan}
    run = checked("elbowroom_check.py", settings, tmp_path)
    assert run.returncode == 0, run.stdout
    assert re.search(r"PASSED.*Ran 1/1 test", run.stdout)
    assert "comm-alone-mb-per-s" in run.stdout


@pytest.mark.slow
def test_reframe_reads_the_medians_of_a_site_that_is_accepted(tmp_path: Path) -> None:
    run = checked("accept_check.py", {"AcceptCheck.options": "--virtual,64"}, tmp_path)
    assert run.returncode == 0, run.stdout
    assert re.search(r"PASSED.*Ran 1/1 test", run.stdout)
    assert re.search(r"bandwidth-beside: [0-9.]+ MB/s", run.stdout)


@pytest.mark.slow
def test_reframe_says_which_node_is_suspected(tmp_path: Path) -> None:
    run = checked("accept_check.py", {"AcceptCheck.options": "--virtual,64,--plant,link:12"}, tmp_path)
    assert run.returncode != 0
    assert "1 of 64 nodes is a suspect: n12." in run.stdout
