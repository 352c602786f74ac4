"""Each benchmark behind a figure of README and docs still starts and ends (benchmarks/README.md)."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NoReturn

import pytest

from elbowroom.errors import UsageError
from traced import PATIENT

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COMMANDS = [path for path in sorted(BENCHMARKS.glob("*.py")) if "__main__" in path.read_text()]
PATIENCE = 300  # s, on a busy machine whose first benchmark builds its programs


BESIDE_NOTHING = ("clock", "demand", "guard", "guard_observe", "guard_progress", "guard_starpu")
"""Beside other tests, clocks cannot be compared and a load of the lowest priority hardly runs; one guard acts
on a node at a time.
"""


@pytest.mark.real
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.alone] * (path.stem in BESIDE_NOTHING)) for path in COMMANDS],
    ids=lambda path: path.stem,
)
def test_a_benchmark_works_on_tiny_sizes(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path), "--smoke"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        # Beside other tests, the threads of linear algebra wait for one another (launch/processes.py).
        env={**os.environ, **PATIENT, "OPENBLAS_NUM_THREADS": "1"},
    )
    missing = re.search(r"^.* is not installed.*$", done.stderr, re.MULTILINE)
    if done.returncode == 1 and missing is not None:
        pytest.skip(missing[0])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_benchmark_is_described_in_the_list(path: Path) -> None:
    assert f"benchmarks/{path.name}" in (BENCHMARKS / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def diagnose(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("diagnose")


def test_a_setup_that_is_diagnosed_wrongly_is_named_in_the_table(
    diagnose: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"cores": 2, "comp_node": 0, "comm_node": 0, "overlap": True}
    step = {"comm_bytes": 10.0, "t_comp": {"seconds": 0.1}}
    printed = b'{"bytes": 20, "steps": 2, "compute_s": 0.2}'
    steps = SimpleNamespace(steps=SimpleNamespace(count=2, recognised_by="marks"))
    monkeypatch.setattr(diagnose, "record_profile", lambda *_words, stdout, **_options: stdout.write(printed))
    monkeypatch.setattr(diagnose, "profiled_steps", lambda *_words, **_options: steps)
    monkeypatch.setattr(
        diagnose, "job_of_profile", lambda *_words: SimpleNamespace(data={"now": now, "step": step})
    )
    found = diagnose.measured(diagnose.Case(name="ft", command=("true",)), 1, [])
    assert found.setup == ("overlap True instead of False",)
    assert found.errors == (0.0, 0.0)


@pytest.mark.parametrize(("words", "code"), [([], 1), (["--smoke"], 0)])
def test_a_profile_without_steps_is_a_miss_and_fails_no_smoke_run(
    words: list[str],
    code: int,
    diagnose: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def no_steps(*_words: object) -> NoReturn:
        raise UsageError("has no steps", field="profile", value="ft", hint="profile more steps")

    for name in ("find_mpi", "trace_libraries", "load_model"):
        monkeypatch.setattr(diagnose, name, lambda *_words: None)
    monkeypatch.setattr(diagnose, "cases", lambda *_words: [diagnose.Case(name="ft", command=())])
    monkeypatch.setattr(diagnose, "measured", no_steps)
    monkeypatch.setattr(sys, "argv", ["diagnose.py", *words])
    assert diagnose.main() == code
    assert "no job: " in capsys.readouterr().out
