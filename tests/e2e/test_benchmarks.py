"""Each benchmark behind a figure of README and docs still starts and ends (benchmarks/README.md)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COMMANDS = [path for path in sorted(BENCHMARKS.glob("*.py")) if "__main__" in path.read_text()]
PATIENCE = 300  # s, on a busy machine whose first benchmark builds its programs


@pytest.mark.real
@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_benchmark_works_on_tiny_sizes(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path), "--smoke"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        # Beside other tests, the threads of linear algebra wait for one another (elbowroom.cli.blas).
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    missing = re.search(r"^.* is not installed.*$", done.stderr, re.MULTILINE)
    if done.returncode == 1 and missing is not None:
        pytest.skip(missing[0])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_benchmark_is_described_in_the_list(path: Path) -> None:
    assert f"benchmarks/{path.name}" in (BENCHMARKS / "README.md").read_text(encoding="utf-8")
