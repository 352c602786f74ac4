"""StarPU-MPI's programs with its header and with elbowroom/starpu_mpi.h: the same results, and what is
wrong is said (lib/starpu_mpi/examples).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import benchmark_modules
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from starpu_site import starpu_mpi
from traced import PATIENCE

ROOT = Path(__file__).parents[2]
RANKS = 3
LARGEST_RESIDUAL = 1e-12

BENCHMARK = benchmark_modules.load("starpu_broadcasts")


@pytest.fixture(scope="module")
def mpi() -> Mpi:
    return starpu_mpi()


@pytest.fixture(scope="module")
def home(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where StarPU keeps what it measures of a machine, once for all programs."""
    folder = tmp_path_factory.mktemp("home")
    BENCHMARK.measure_bus(folder)
    return folder


def run(program: str, side: str, home: Path, *words: object, ranks: int = RANKS) -> tuple[int, str, str]:
    job = BENCHMARK.launch(program, side, list(words), ranks, home, ())
    done = subprocess.run(job.command, env=BENCHMARK.environment(job), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def printed(program: str, side: str, home: Path, *words: object, ranks: int = RANKS) -> dict[str, str]:
    """The lines of a run that succeeds, by their first word."""
    code, said, error = run(program, side, home, *words, ranks=ranks)
    assert code == 0, said + error
    return dict(line.split(maxsplit=1) for line in said.splitlines())


@pytest.mark.parametrize("program", ["cholesky", "lu", "stencil"])
def test_an_example_has_the_same_bits_with_both_headers_with_and_without_priorities(
    mpi: Mpi, home: Path, program: str
) -> None:
    plain = printed(program, "starpu", home, 3, 16, 1, 1)
    for priorities in (0, 1):
        ours = printed(program, "elbowroom", home, 3, 16, 2, priorities)
        assert ours["result"] == plain["result"]
        assert ours["residual"] == plain["residual"]
    if program != "stencil":
        assert float(plain["residual"]) <= LARGEST_RESIDUAL


SHOWS_STARTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void show(const char* what) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(stderr, "%s %s %.6f\\n", what, getenv("OMPI_COMM_WORLD_RANK"), now.tv_sec + 1e-9 * now.tv_nsec);
}
int starpu_init(void* conf) {
  show("begins");
  if (*getenv("OMPI_COMM_WORLD_RANK") == '0') usleep(200000);
  int result = ((int (*)(void*))dlsym(RTLD_NEXT, "starpu_init"))(conf);
  show("ends");
  return result;
}
"""


def test_one_rank_of_a_machine_starts_starpu_before_the_others(
    mpi: Mpi, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "starts.so"
    (tmp_path / "starts.c").write_text(SHOWS_STARTS, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "starts.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    code, _, error = run("stencil", "elbowroom", home, 1, 1, 1, 0, ranks=2)
    assert code == 0, error
    at = {(what, rank): float(s) for what, rank, s in re.findall(r"(begins|ends) (\d) ([\d.]+)", error)}
    assert at["begins", "0"] < at["ends", "0"] < at["begins", "1"]


def test_data_that_several_ranks_read_are_broadcast(mpi: Mpi, home: Path) -> None:
    said = printed("broadcast", "elbowroom", home, 2, 32, 3, 1, ranks=4)
    found = re.fullmatch(r"(\d+) broadcasts (\d+) complete (\d+)", said["messages"])
    assert found is not None
    messages, broadcasts, complete = map(int, found.groups())
    # Each of four tiles has three readers, three times.
    assert (messages, broadcasts) == (36, 12)
    assert 0 <= complete <= broadcasts


@pytest.mark.parametrize(
    ("case", "value"),
    [
        ("tasks", 2610),  # 26 on rank 0 and 10 on rank 1
        ("elsewhere", 816),
        ("built", 1503),  # 15, and three callbacks
        ("flushed", 42),
        ("migrated", 60),  # 6, and the new owner
        ("ring", RANKS),
        ("detached", 8101),  # the second message has 8; one callback, and the right source
        ("unregistered", 20),
    ],
)
def test_a_call_does_what_it_does_in_starpu_mpi(mpi: Mpi, home: Path, case: str, value: int) -> None:
    for side in BENCHMARK.SIDES:
        assert printed("calls", side, home, case) == {case: str(value)}, side


def test_a_part_of_a_matrix_arrives_without_its_gaps(mpi: Mpi, home: Path) -> None:
    numbers = sum(5 + 100 * row + column for row in range(40) for column in range(30))
    for side in BENCHMARK.SIDES:
        assert printed("calls", side, home, "matrix") == {"matrix": str(numbers)}, side


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("missing", r"data with tag 100 of rank 0: .*submitted none that does"),
        ("sizes", r"rank 1: data with tag 100 of rank 0: receives 200000 bytes, but 400000 were sent"),
        ("unnamed", r"add: the data have no rank, or were unregistered; call starpu_mpi_data_register first"),
    ],
)
def test_a_wrong_program_ends_with_a_sentence(mpi: Mpi, home: Path, case: str, sentence: str) -> None:
    code, _, error = run("calls", "elbowroom", home, case)
    assert code != 0
    assert re.search(sentence, error), error


def test_another_order_of_tasks_on_one_rank_is_said(mpi: Mpi, home: Path) -> None:
    code, said, error = run("calls", "elbowroom", home, "order")
    assert (code, said) == (0, "order 1\n"), error
    (line,) = re.findall(r"^elbowroom: .*$", error, re.MULTILINE)
    assert line.startswith(
        "elbowroom: rank 1: task 1 since the last starpu_mpi_wait_for_all (take) is another one"
    )


def test_the_same_order_on_all_ranks_is_not_complained_of(mpi: Mpi, home: Path) -> None:
    code, _, error = run("calls", "elbowroom", home, "tasks")
    assert code == 0
    assert "elbowroom:" not in error


def test_another_version_of_starpu_than_compiled_for_is_refused(mpi: Mpi, home: Path) -> None:
    code, _, error = run("calls", "elbowroom", home, "version", ranks=1)
    assert code == 4
    assert re.search(r"elbowroom: StarPU 1\.\d is loaded, but the program was compiled with 1\.9", error)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("void f(void) { starpu_mpi_redux_data(MPI_COMM_WORLD, (starpu_data_handle_t)0); }",
         "has no starpu_mpi_redux_data; include starpu_mpi.h and link libstarpumpi"),
        ("#define __STARPU_MPI_H__", ""),
    ],
    ids=["reduction", "second header"],
)  # fmt: skip
def test_what_the_header_lacks_is_an_error_of_the_compiler(
    mpi: Mpi, tmp_path: Path, text: str, sentence: str
) -> None:
    header = '#include "elbowroom/starpu_mpi.h"\n'
    before, behind = ("", text) if sentence else (f"{text}\n", "")
    (tmp_path / "program.c").write_text(f"{before}{header}{behind}\n", encoding="ascii")
    compiler = mpi.compiler.replace("mpicxx", "mpicc")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "starpu-1.3"], capture_output=True, text=True, check=False
    ).stdout.split()
    words = [compiler, "-c", "-o", "/dev/null", f"-I{ROOT / 'include'}", *flags, str(tmp_path / "program.c")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert (sentence or "was included before elbowroom/starpu_mpi.h") in done.stderr


def test_a_program_that_includes_the_header_in_place_of_starpus_is_linked_with_the_installed_library(
    mpi: Mpi, home: Path, tmp_path: Path
) -> None:
    """Two files of one program, in C and in C++, by pkg-config alone."""
    tree, prefix = tmp_path / "build", tmp_path / "prefix"
    compilers = {"C": mpi.compiler.replace("mpicxx", "mpicc"), "CXX": mpi.compiler}
    options = [f"-DMPI_{language}_COMPILER={name}" for language, name in compilers.items()]
    finished("cmake", "-S", ROOT / "lib" / "starpu_mpi", "-B", tree, "-G", "Ninja", *options)
    finished("cmake", "--build", tree, "--target", "elbow_starpu_mpi", "elbow_taskflow")
    for part in ("broadcast", "taskflow", "starpu_mpi"):
        finished("cmake", "--install", tree, "--prefix", prefix, "--component", part)
    (pc,) = prefix.rglob("elbow_starpu_mpi.pc")
    (library,) = prefix.rglob("libelbow_starpu_mpi.so")
    folder = library.parent
    flags = finished(
        "env",
        f"PKG_CONFIG_PATH={pc.parent}",
        "pkg-config",
        "--cflags",
        "--libs",
        "elbow_starpu_mpi",
        "starpu-1.3",
    ).split()
    source = ROOT / "lib" / "starpu_mpi" / "examples" / "cholesky.c"
    (tmp_path / "second.cpp").write_text("#include <elbowroom/starpu_mpi.h>\n", encoding="ascii")
    finished(compilers["CXX"], "-c", "-o", tmp_path / "second.o", tmp_path / "second.cpp", *flags)
    program = tmp_path / "cholesky-elbowroom"
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-DELBOWROOM_BROADCASTS"]
    finished(compilers["C"], *warnings, "-c", "-o", tmp_path / "first.o", source, *flags)
    objects = [tmp_path / "first.o", tmp_path / "second.o"]
    finished(compilers["CXX"], *objects, "-o", program, *flags, "-lm", f"-Wl,-rpath,{folder}")
    job = BENCHMARK.launch("cholesky", "elbowroom", [3, 16], RANKS, home, ())
    words = [str(program) if word.endswith("cholesky-elbowroom") else word for word in job.command]
    done = subprocess.run(
        words, env=BENCHMARK.environment(job), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    residual = re.search(r"residual (\S+)", done.stdout)
    assert residual is not None
    assert float(residual[1]) <= LARGEST_RESIDUAL


def finished(*words: str | Path) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_examples_are_built_once_and_kept(mpi: Mpi) -> None:
    folder = build.starpu_examples()
    assert folder == build.starpu_examples()
    names = {
        f"{name}-{side}"
        for name in ("broadcast", "calls", "cholesky", "lu", "stencil")
        for side in BENCHMARK.SIDES
    }
    assert names <= {path.name for path in folder.iterdir()}
