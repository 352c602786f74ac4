"""The programs of the zoo compile without warnings, and diagnose names what is planted in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import zoo_programs
from traced import mpi_called


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_all_programs_compile_without_warnings(kind: str, tmp_path: Path) -> None:
    mpi = mpi_called(kind)
    programs = {row.program for row in zoo_programs.problems().values()}
    for program in sorted(programs | {f"{name}.c" for name in zoo_programs.REAL}):
        if zoo_programs.has_compiler(program, mpi):
            try:
                zoo_programs.build(program, mpi, tmp_path)
            except subprocess.CalledProcessError as error:
                pytest.fail(f"{program}: {error.stderr}")


def test_the_table_has_sixteen_problems_in_three_languages_and_known_causes() -> None:
    rows = zoo_programs.problems().values()
    assert len(rows) >= 16
    assert {row.language for row in rows} == {"C", "Fortran", "Python"}
    assert all((zoo_programs.FOLDER / row.program).exists() for row in rows)
