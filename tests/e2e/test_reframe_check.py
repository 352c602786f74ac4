"""The ReFrame test of docs/reference, run by ReFrame on a virtual machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import elbowroom

CHECK = Path(__file__).parents[2] / "docs" / "reference" / "elbowroom_check.py"


@pytest.mark.slow
def test_reframe_reads_the_values_of_a_run(tmp_path: Path) -> None:
    reframe = shutil.which("reframe")
    if reframe is None:
        pytest.skip("reframe is not installed: pip install reframe-hpc")
    program = tmp_path / "elbowroom"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m elbowroom "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    source = str(Path(elbowroom.__file__).parents[1])
    searched = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))
    plan = "--machine,henri,--sizes,64MB,--kernels,triad,--repeat,5"
    settings = ["-S", "ElbowroomCheck.plan=sizes", "-S", f"ElbowroomCheck.options={plan}"]
    run = subprocess.run(
        [
            reframe,
            "--nocolor",
            "-c",
            str(CHECK),
            "-r",
            "--prefix",
            str(tmp_path),
            *settings,
            "--performance-report",
        ],
        env={**os.environ, "PATH": path, "PYTHONPATH": searched},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout
    assert re.search(r"PASSED.*Ran 1/1 test", run.stdout)
    assert "comm-alone-mb-per-s" in run.stdout
