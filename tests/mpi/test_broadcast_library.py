"""The installed library of lib/broadcast: its examples over MPI (pkg-config) and over threads (CMake)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broadcast_library import SOURCES, built_tree, compiled_for, ranks_of, run
from elbowroom.launch.mpi import Mpi

CONSUMER = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(Threads REQUIRED)
find_package(elbowroom-broadcast 0.1 REQUIRED)
add_executable(example_threads example_threads.cpp)
target_link_libraries(example_threads PRIVATE elbowroom::broadcast Threads::Threads)
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "pkg-config"))), reason="needs a compiler"
)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is installed."""
    folder = tmp_path_factory.mktemp("broadcast")
    tree = built_tree(folder)
    run("cmake", "--install", tree, "--prefix", folder / "prefix", "--component", "broadcast")
    return folder / "prefix"


def test_a_plain_mpi_program_is_built_by_pkg_config_and_its_recipients_get_the_table(
    prefix: Path, tmp_path: Path, embedded_mpi: Mpi
) -> None:
    (found,) = prefix.rglob("elbow_broadcast.pc")
    path = {"PKG_CONFIG_PATH": str(found.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "elbow_broadcast", **path).split()
    libraries = run("pkg-config", "--variable=libdir", "elbow_broadcast", **path).strip()
    program = compiled_for(embedded_mpi, SOURCES / "example.c", tmp_path / "example", *flags)
    said = run(*ranks_of(embedded_mpi, 6), program, LD_LIBRARY_PATH=libraries)
    assert sorted(said.splitlines()) == [f"rank {rank}: the last value is 99999" for rank in (2, 4)]


def test_a_program_with_its_own_transport_is_built_by_cmake_and_needs_no_mpi(
    prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER)
    for name in ("example_threads.cpp", "example_threads.hpp"):
        shutil.copy(SOURCES / name, tmp_path)
    build = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    said = run(build / "example_threads", seconds=60)
    assert sorted(said.splitlines()) == [f"rank {rank}: the last value is 42" for rank in range(8)]
