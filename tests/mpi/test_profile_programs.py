"""Programs that cannot be profiled, or leave nothing: a sentence, and output and exit code stay their own.

And every function of an MPI library: the profiler has what it is said to record.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from counted import c_wrapper
from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from traced import MPIS, PMPI, mpi_called

SILENT = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("said\\n");
  MPI_Finalize();
  return rank == 0 ? 5 : 0;
}
"""


@pytest.fixture(params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture
def mpich() -> Mpi:
    return mpi_called("mpich")


def shared_library(mpi: Mpi, folder: Path) -> Path:
    linked = subprocess.run(["ldd", compiled(mpi, folder)], capture_output=True, text=True, check=True)
    match = re.search(r"libmpi\S* => (\S+)", linked.stdout)
    assert match is not None
    return Path(match[1])


def compiled(mpi: Mpi, folder: Path, *libraries: str | Path) -> Path:
    """The program with the MPI's libraries, or with others."""
    source = folder / "silent.c"
    source.write_text(SILENT)
    wrapper = c_wrapper(mpi)
    shown = subprocess.run([wrapper, "-show"], capture_output=True, text=True, check=True).stdout.split()
    compiler = ["cc", *(word for word in shown if word.startswith("-I"))] if libraries else [wrapper]
    line = [*compiler, "-o", folder / "silent", source, *libraries]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr[-300:])
    return folder / "silent"


def words_of(mpi: Mpi, program: Path) -> list[str]:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return [mpi.launcher, *more, "-n", "2", str(program)]


def test_an_mpi_that_is_linked_statically_leaves_nothing_and_runs_as_alone(
    mpich: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    static = shared_library(mpich, tmp_path).parent / "libmpich.a"
    if not static.exists():
        pytest.skip("there is no static MPI here")
    needs = subprocess.run(
        ["ldd", shared_library(mpich, tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    others = re.findall(r"(/\S+/lib(?:ucp|ucs|uct|hwloc|fabric|m|numa)\.so\S*)", needs)
    program = compiled(mpich, tmp_path, static, *others, "-lpthread")
    found = api.record_profile(words_of(mpich, program), tmp_path / "p").document
    assert (found.exit_code, found.ranks, found.calls) == (5, 0, 0)
    assert "linked statically" in found.notes[0]
    assert capfd.readouterr().out.split() == ["said"]


def test_a_program_of_another_abi_than_its_launchers_is_refused_before_it_runs(
    mpich: Mpi, tmp_path: Path
) -> None:
    # No compiler wrapper belongs to this copy, as on a site that has the library only.
    library = tmp_path / "libmpich.so.12"
    shutil.copy(shared_library(mpich, tmp_path), library)
    program = compiled(mpich, tmp_path, library, f"-Wl,-rpath,{tmp_path}")
    other = mpi_called("openmpi")
    for named in (None, "openmpi"):
        with pytest.raises(UsageError, match="another binary interface than Open MPI"):
            api.record_profile(words_of(other, program), tmp_path / "p", mpi=named)
    assert not (tmp_path / "p").exists()


def test_a_program_without_communication_has_a_profile_that_says_so(
    mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = compiled(mpi, tmp_path)
    found = api.record_profile(words_of(mpi, program), tmp_path / "p").document
    assert (found.exit_code, found.ranks) == (5, 2)
    assert capfd.readouterr().out.split() == ["said"]
    summary = api.show_profile(tmp_path / "p").summary
    assert "the program sent no data by MPI" in summary.notes
    assert [node.idle_share for node in summary.nodes] == [1.0]


def test_the_profiler_has_every_function_that_it_is_said_to_record(mpi: Mpi) -> None:
    words = [sys.executable, "-B", str(PMPI / "coverage.py"), "--wrapper", mpi.compiler]
    states = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    library = build.trace_libraries(mpi) / "libelbow_profile_mpi.so"
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    exported = set(re.findall(r" (\w+)$", symbols.stdout, re.MULTILINE))
    recorded = {name for name, state in states.items() if not state.startswith("passed: ")}
    assert len(recorded) > 300
    assert {name for name in recorded if name[0] == "M"} <= exported
    passed = {name for name, state in states.items() if state.startswith("passed: ")}
    # Not recorded, but heard: requests of C that Fortran completes.
    assert passed & exported <= {"MPI_Request_c2f"}
