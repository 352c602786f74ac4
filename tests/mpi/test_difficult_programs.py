"""Programs that are difficult to diagnose or to run again: nothing is harmed, and no wrong cause is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counted import build_counter, c_wrapper, read_counts
from elbowroom.launch.mpi import Mpi
from traced import MPIS, mpi_called

HERE = Path(__file__).parent
PATIENCE = 240


class Programs(NamedTuple):
    """Programs of difficult.c for an MPI: as it is, and with a PMPI tool linked in."""

    mpi: Mpi
    plain: Path
    with_tool: Path

    def line(self, *words: str, ranks: int = 2, steps: int = 60, before: Sequence[str] = ()) -> list[str]:
        """A launch line; `words`: the mode of the program, `before`: what runs it."""
        free = [] if self.mpi.kind == "mpich" else ["--oversubscribe", "--bind-to", "none"]
        mode = list(words) or ["plain"]
        return [self.mpi.launcher, *free, "-n", str(ranks), *before, str(self.plain), str(steps), *mode]


@pytest.fixture(scope="module", params=MPIS[:1])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    mpi = mpi_called(request.param)
    folder = tmp_path_factory.mktemp("difficult")
    build = [c_wrapper(mpi), "-O1", HERE / "difficult.c", "-o"]
    subprocess.run([*build, folder / "plain"], check=True)
    subprocess.run([*build, folder / "tool", "-DOWN_TOOL"], check=True)
    return Programs(mpi, folder / "plain", folder / "tool")


class Diagnosed(NamedTuple):
    """How the command ended: its document, None without one, what it and the program said, and what the
    program wrote into its file.
    """

    code: int
    document: dict[str, Any] | None
    said: str
    written: str = ""

    @property
    def causes(self) -> list[str]:
        assert self.document is not None, self.said
        return [cause["cause"] for cause in self.document["causes"]]

    @property
    def notes(self) -> str:
        assert self.document is not None, self.said
        return " ".join(self.document["notes"])


def diagnosed(
    folder: Path,
    line: Sequence[str],
    *options: str,
    given: str | Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Diagnosed:
    """Runs the command in `folder`; `given`: standard input, a text through a pipe, or a file."""
    own = [sys.executable, "-m", "elbowroom", "diagnose", "--json", "-o", str(folder / "p"), *options, "--"]
    work = folder / "work"
    work.mkdir(exist_ok=True)
    with open(given if isinstance(given, Path) else os.devnull, encoding="ascii") as file:
        done = subprocess.run(
            [*own, *line],
            cwd=work,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, **(variables or {})},
            **({"input": given} if isinstance(given, str) else {"stdin": file}),
        )
    document = json.loads(done.stdout) if done.stdout else None
    return Diagnosed(done.returncode, document, done.stderr)


def of_program(causes: Sequence[str]) -> list[str]:
    """Without what other tests beside this one may cause."""
    return [cause for cause in causes if cause != "shared-core"]


def test_a_program_of_less_than_a_tenth_of_a_second_has_no_cause(programs: Programs, tmp_path: Path) -> None:
    done = diagnosed(tmp_path, programs.line(ranks=1, steps=5), "--no-try")
    assert (done.code, done.causes) == (0, [])
    assert done.document is not None
    assert done.document["not_judged"].startswith("Cannot say: the steps took ")


@pytest.fixture(scope="module")
def tried(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Diagnosed:
    """Trials of a program that reads a file as its standard input, writes a fixed file into a folder that is
    copied, and fails on one core: once, as they take half a minute.
    """
    folder = tmp_path_factory.mktemp("tried")
    (folder / "given").write_text("42\n", encoding="ascii")
    mode = "input-file" if len(os.sched_getaffinity(0)) < 2 else "input-file-strict"
    done = diagnosed(
        folder, programs.line(mode, steps=30), "--try", "--copy-dir", "--budget", "100s",
        given=folder / "given",
    )  # fmt: skip
    assert done.code == 0, done.said
    return done._replace(written=(folder / "work" / "steps.txt").read_text(encoding="ascii"))


def test_a_line_under_which_the_program_fails_is_dropped_and_named(tried: Diagnosed) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("the program fails on one core, and this machine has no other")
    assert "Dropped: " in tried.notes, tried.notes
    assert "exit code 9" in tried.notes


def test_a_file_that_is_standard_input_is_read_again_by_each_run(tried: Diagnosed) -> None:
    assert "30 steps, read 42" in tried.said
    assert tried.document is not None
    assert tried.document["tried"], tried.notes
    assert "exit code 8" not in tried.notes


def test_with_copies_of_its_folder_a_program_that_writes_a_fixed_file_is_tried(tried: Diagnosed) -> None:
    assert tried.document is not None
    assert tried.document["tried"], tried.notes
    assert tried.written == "30 steps\n"


def test_a_pipe_that_is_standard_input_is_read_once_and_nothing_is_tried(
    programs: Programs, tmp_path: Path
) -> None:
    done = diagnosed(tmp_path, programs.line("input"), "--try", given="42\n")
    assert done.code == 0, done.said
    assert "60 steps, read 42" in done.said
    assert "Nothing was tried: it reads standard input from a pipe" in done.notes


def test_a_program_that_writes_a_fixed_file_is_not_run_again(programs: Programs, tmp_path: Path) -> None:
    done = diagnosed(tmp_path, programs.line("file"), "--try")
    assert done.code == 0, done.said
    assert "Nothing was tried: the program writes files (steps.txt); --copy-dir" in done.notes
    assert (tmp_path / "work" / "steps.txt").read_text(encoding="ascii") == "60 steps\n"


def test_under_a_debugger_a_program_has_an_account_and_no_trials(programs: Programs, tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    around = ["gdb", "-nx", "-batch", "-ex", "run", "--args"]
    done = diagnosed(tmp_path, programs.line(before=around), "--try")
    if "ptrace" in done.said:
        pytest.skip("processes cannot be traced here")
    assert done.document is not None, done.said
    assert "60 steps, read 0" in done.said
    assert "Nothing was tried: the program runs under gdb." in done.notes
    assert "The program ran under gdb" in done.notes


def test_a_program_with_a_tool_linked_in_has_no_cause_from_calls_that_were_not_recorded(
    programs: Programs, tmp_path: Path
) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    line = [word.replace(str(programs.plain), str(programs.with_tool)) for word in programs.line()]
    done = diagnosed(tmp_path, line, "--no-try")
    assert (done.code, done.causes) == (0, []), done.said
    assert "tool: 60 exchanges" in done.said
    assert done.document is not None
    assert done.document["not_judged"].startswith("Cannot say: the program defines MPI_")
    assert "itself, as a PMPI tool that is linked in does" in done.notes


def test_a_tool_that_is_preloaded_counts_what_the_program_calls(programs: Programs, tmp_path: Path) -> None:
    counter = build_counter(programs.mpi, tmp_path)
    before = ["env", f"LD_PRELOAD={counter}", f"PMPI_COUNTER={tmp_path}"]
    done = diagnosed(tmp_path, programs.line(before=before), "--no-try")
    assert done.document is not None, done.said
    assert [one.calls["MPI_Sendrecv"] for one in read_counts(tmp_path)] == [60, 60]
    assert done.document["steps"]["count"] > 30


def test_a_script_that_starts_the_launcher_needs_its_mpi_named(programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\nexec {' '.join(programs.line())}\n", encoding="ascii")
    script.chmod(0o755)
    refused = diagnosed(tmp_path, [str(script)])
    assert refused.code == 2
    assert "name its MPI with --mpi PREFIX" in refused.said
    done = diagnosed(tmp_path, [str(script)], "--mpi", str(programs.mpi.prefix), "--try")
    assert done.code == 0, done.said
    assert "Nothing was tried: " in done.notes
    assert done.document is not None
    assert sum(done.document["account"].values()) == pytest.approx(1.0, abs=1e-3)


def test_beside_busy_cores_an_even_program_has_bounds_and_no_cause_of_its_own(
    programs: Programs, tmp_path: Path
) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        done = diagnosed(tmp_path, programs.line(steps=150), "--no-try")
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert done.code == 0, done.said
    assert "times are upper bounds" in done.notes
    assert of_program(done.causes) in ([], ["computation"]), done.document
