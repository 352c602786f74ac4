"""Where programs in C, Fortran and C++ call MPI, and where their diagnosis says that they wait."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from counted import c_wrapper
from elbowroom import cli
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.profile.profile import Profile, read_profile
from elbowroom.profile.rank_file import POSTED_RECEIVE
from elbowroom.profile.sites import locate
from traced import MPIS, mpi_called, run

C = """
#include <mpi.h>
#include <unistd.h>
static void exchange(int other, int* x) {
  MPI_Request both[2];
  MPI_Irecv(x, 1, MPI_INT, other, 0, MPI_COMM_WORLD, both);  // exchange
  MPI_Isend(x + 1, 1, MPI_INT, other, 0, MPI_COMM_WORLD, both + 1);  // exchange
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);  // exchange
  x[0]++;
}
int main(int argc, char** argv) {
  int rank, x[2] = {0, 1};
  MPI_Init(&argc, &argv);  // main
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);  // main
  for (int i = 0; i < 10; i++) {
    MPI_Pcontrol(1);  // main
    usleep(rank == 0 ? 20000 : 1000);
    MPI_Barrier(MPI_COMM_WORLD);  // main
    exchange(1 - rank, x);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // main
  MPI_Finalize();  // main
  return x[0] != 2;
}
"""

FORTRAN = """
module halo
contains
  subroutine exchange(other)
    use mpi
    integer :: other, x(2), err, both(2)
    call MPI_Irecv(x(1), 1, MPI_INTEGER, other, 0, MPI_COMM_WORLD, both(1), err)  ! halo::exchange
    call MPI_Isend(x(2), 1, MPI_INTEGER, other, 0, MPI_COMM_WORLD, both(2), err)  ! halo::exchange
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, err)  ! halo::exchange
    x(1) = x(2)
  end subroutine
end module
subroutine meet()
  use mpi
  integer :: err
  call MPI_Barrier(MPI_COMM_WORLD, err)  ! meet
  if (err /= 0) stop 3
end subroutine
program app
  use mpi
  use halo
  integer :: rank, err, i
  call MPI_Init(err)  ! main
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)  ! main
  do i = 1, 10
    call exchange(1 - rank)
    call meet()
  end do
  call MPI_Finalize(err)  ! main
  if (err /= 0) stop 4
end program
"""

FORTRAN_2008 = FORTRAN.replace("use mpi", "use mpi_f08").replace(
    ", both(2)\n", "\n    type(MPI_Request) :: both(2)\n"
)

CPP = """
#include <mpi.h>
#include <vector>
namespace app {
template <typename Value>
struct Halo {
  std::vector<Value> values = std::vector<Value>(2);
  __attribute__((noinline)) void exchange(int other) {
    MPI_Sendrecv(&values[0], 1, MPI_INT, other, 0, &values[1], 1, MPI_INT, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // app::Halo<int>::exchange
    values[0]++;
  }
};
}
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);  // main
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);  // main
  app::Halo<int> halo;
  for (int i = 0; i < 10; i++) halo.exchange(1 - rank);
  MPI_Finalize();  // main
  return 0;
}
"""

SOURCES = {
    "app.c": (C, "mpicc"),
    "app.f90": (FORTRAN, "mpif90"),
    "app.f08": (FORTRAN_2008, "mpif90"),
    "app.cpp": (CPP, "mpicxx"),
}

Profiled = Callable[..., Profile]


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def profiled(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    """The profile of a program of two ranks, each run once."""
    known: dict[tuple[str, ...], Profile] = {}

    def profile_of(source: str, *options: str) -> Profile:
        if (source, *options) not in known:
            folder = tmp_path_factory.mktemp(source)
            text, compiler = SOURCES[source]
            (folder / source).write_text(text)
            words = [wrapper(mpi, compiler), *(options or ("-g",)), "-O0", "-w", "-o", "app", source]
            subprocess.run(words, check=True, cwd=folder)
            (folder / "p").mkdir()
            preload = build.trace_libraries(mpi) / "libelbow_profile_mpi.so"
            told = [f"LD_PRELOAD={preload}", f"ELBOW_PROFILE_DIRECTORY={folder / 'p'}"]
            ran = run(mpi, 2, ["env", *told, str(folder / "app")], folder / "run", None)
            assert (ran.code, ran.said) == (0, "")
            known[source, *options] = read_profile(folder / "p")
        return known[source, *options]

    return profile_of


def wrapper(mpi: Mpi, name: str) -> str:
    if name == "mpicc":
        return str(c_wrapper(mpi))
    found = mpi.compiler.replace("mpicxx", name)
    if shutil.which(found) is None:
        pytest.skip(f"{found} is missing")
    return found


def expected(source: str) -> set[tuple[str, str, int]]:
    """Function of MPI, function of the program and line of each call, by the comments."""
    places = set()
    for number, line in enumerate(SOURCES[source][0].splitlines(), 1):
        code, mark, function = line.replace("  ! ", "  // ").partition("  // ")
        if mark:
            called = next((word for word in code.replace("(", " ").split() if word.startswith("MPI_")), "")
            # The last line of a call that has several.
            places.add((called if f"{called}(" in code else "MPI_Sendrecv", function.strip(), number))
    return places


@pytest.mark.parametrize("source", SOURCES)
def test_each_call_has_its_function_and_line(profiled: Profiled, source: str) -> None:
    for rank in profiled(source).ranks:
        assert rank.sites is not None
        sites = [site for site in rank.sites if site.module]
        seen = {
            (site.call, str(where.function), where.line or 0)
            for site, where in zip(sites, locate(sites), strict=True)
        }
        # A call that spans lines has one of them.
        lines = {
            (call, function, line + more) for call, function, line in expected(source) for more in (0, -1)
        }
        if source in ("app.f90", "app.f08"):
            # Of these two, Open MPI 4 gives the line of the program statement.
            lines |= {one for one in seen if one[0] in ("MPI_Init", "MPI_Finalize")}
        assert seen <= lines
        assert {one[:2] for one in seen} == {one[:2] for one in expected(source)}
        assert {Path(str(where.file)).name for where in locate(sites)} == {source}


def test_two_calls_of_one_function_are_two_sites(profiled: Profiled) -> None:
    profile = profiled("app.c")
    events = profile.events.of_rank(0)
    assert events.site is not None
    sites = Counter(int(site) for site in events.site if events.sites[site].call == "MPI_Barrier")
    assert sorted(sites.values()) == [1, 10]
    kinds = {kind.name: kind.count for kind in profile.ranks[0].call_kinds if kind.count}
    assert (kinds["MPI_Barrier"], kinds["MPI_Irecv"]) == (11, 10)


def test_an_operation_has_the_site_of_its_post(profiled: Profiled) -> None:
    events = profiled("app.c").events
    assert events.site is not None
    sites = {events.sites[site] for site in events.site[events.kind == POSTED_RECEIVE]}
    assert {site.call for site in sites} == {"MPI_Irecv"}
    assert {where.function for where in locate(tuple(sites))} == {"exchange"}


@pytest.mark.parametrize("options", [("-g",), ("-s",)])
def test_the_diagnosis_names_the_call_that_waits(
    profiled: Profiled, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """By function and line, else by module and offset: rank 1 waits in the first MPI_Barrier."""
    profile = profiled("app.c", *options)
    assert cli.run(["diagnose", "--profile", profile.folder, "--json"]) == 0
    parts = {row["part"]: row for row in json.loads(capsys.readouterr().out)["parts"]}
    wait = parts["collective_wait"]
    assert wait["rank"] == 1
    line = next(n for call, _, n in sorted(expected("app.c")) if call == "MPI_Barrier")
    where = f"in main (app.c:{line})" if options == ("-g",) else "at app+0x"
    assert wait["site"].startswith(f"MPI_Barrier {where}")
