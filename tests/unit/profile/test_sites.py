"""Function, file and line of the places that call MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from elbowroom.profile import sites as s
from elbowroom.profile.rank_tables import Site
from elbowroom.profile.symbols import functions_at

SOURCE = """
static int halo(int x);
int exchange(int x) {
  return halo(x) + 1;
}
static __attribute__((noinline)) int halo(int x) { return x * 3; }
int main(int argc, char** argv) { return exchange(argc) == 0; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None or shutil.which("nm") is None:
        pytest.skip("no compiler")
    folder = tmp_path_factory.mktemp("sites")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run(["cc", "-g", "-O0", "-o", "app", "app.c"], check=True, cwd=folder)
    return folder / "app"


def address(program: Path, name: str) -> int:
    table = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(f" {name}"))


def site_in(path: Path, offset: int) -> Site:
    status = path.stat()
    module = str(path.resolve())
    return Site(
        call="MPI_Send", module=module, offset=offset, size=status.st_size, mtime_ns=status.st_mtime_ns
    )


def test_a_site_has_its_function_file_and_line(program: Path) -> None:
    inside = address(program, "exchange") + 12
    (where,) = s.locate([site_in(program, inside)])
    assert (where.function, Path(str(where.file)).name, where.line) == ("exchange", "app.c", 4)
    assert where.text == "exchange (app.c:4)"


def test_without_addr2line_the_symbol_table_gives_the_function(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s, "_TOOLS", ())
    inside = address(program, "exchange") + 5
    (where,) = s.locate([site_in(program, inside)])
    assert (where.function, where.file, where.line) == ("exchange", None, None)
    assert where.text == f"exchange (app+{inside:#x})"


def test_a_stripped_program_names_no_function_that_is_only_near(program: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    inside = address(program, "halo") + 5
    subprocess.run(["strip", "-o", stripped, program], check=True)
    (where,) = s.locate([site_in(stripped, inside)])
    assert (where.function, where.file, where.line) == (None, None, None)
    assert where.text == f"stripped+{inside:#x}"


def test_a_program_that_was_built_again_has_only_offsets(program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "app"
    shutil.copy(program, copy)
    site = site_in(copy, address(program, "exchange") + 12)
    os.utime(copy, ns=(1, 1))
    (where,) = s.locate([site])
    assert where.function is None
    assert where.text == f"app+{site.offset:#x}"


@pytest.mark.parametrize("module", ["", "relative", "/nowhere/app", "/dev/null", "/tmp", "-e"])
def test_what_is_no_file_has_no_symbols(module: str) -> None:
    (where,) = s.locate([Site(call="MPI_Send", module=module, offset=16)])
    assert (where.function, where.file, where.line) == (None, None, None)


def test_sites_are_located_in_their_order(program: Path) -> None:
    sites = [site_in(program, address(program, name) + 6) for name in ("main", "halo", "main")]
    assert [where.function for where in s.locate(sites)] == ["main", "halo", "main"]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(100), b"x" * 5000])
def test_files_that_are_no_programs_have_no_functions(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    assert functions_at(tmp_path / "f", [16]) == [None]


@pytest.mark.parametrize(
    ("symbol", "file", "name"),
    [
        ("exchange", "a.c", "exchange"),
        ("exchange_", "a.f90", "exchange"),
        ("exchange_", "a.c", "exchange_"),
        ("__halo_MOD_exchange", "a.f90", "halo::exchange"),
        ("halo_mp_exchange_", None, "halo::exchange"),
        ("MAIN__", "a.f90", "main"),
        ("solve.constprop.0.isra.0", "a.c", "solve"),
        ("main._omp_fn.3", "a.c", "main"),
        ("app::Halo<int>::exchange(int, char const*)", "a.cpp", "app::Halo<int>::exchange"),
        ("run(int) [clone .isra.0]", "a.cpp", "run"),
        ("app::F::operator()(int)", "a.cpp", "app::F::operator()"),
        ("__pyx_pw_6mpi4py_3MPI_4Comm_23Send", None, "mpi4py.MPI.Comm.Send"),
        (None, None, None),
    ],
)
def test_names_are_as_their_authors_wrote_them(
    symbol: str | None, file: str | None, name: str | None
) -> None:
    assert s.plain_name(symbol, file) == name


@pytest.mark.parametrize(
    ("where", "file", "line"),
    [
        ("/src/a.c:12", "/src/a.c", 12),
        ("/src/a.c:12 (discriminator 3)", "/src/a.c", 12),
        ("/src/a.c:12:7", "/src/a.c", 12),
        ("/src/a.c:?", "/src/a.c", None),
        ("??:?", None, None),
        ("??:0", None, None),
    ],
)
def test_answers_of_addr2line_are_read(where: str, file: str | None, line: int | None) -> None:
    assert s._frame("f", where) == ("f", file, line)
