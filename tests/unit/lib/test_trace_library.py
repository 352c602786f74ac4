"""The installed library of lib/trace: its examples in C and C++, through CMake and pkg-config."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "lib" / "trace"
CONSUMER = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(elbowroom-trace 0.1 REQUIRED)
add_executable(example example.c)
add_executable(example_cpp example.cpp)
target_link_libraries(example PRIVATE elbowroom::trace)
target_link_libraries(example_cpp PRIVATE elbowroom::trace)
"""

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "c++", "cc", "pkg-config"))), reason="needs a compiler"
)


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library is installed, built in the folder of all native tests where that is there."""
    folder = tmp_path_factory.mktemp("trace")
    given = Path(os.environ.get("ELBOWROOM_PREDICT") or os.devnull)
    tree = given if (given / "lib" / "trace").exists() else folder / "build"
    if tree != given:
        run("cmake", "-S", SOURCES, "-B", tree, "-G", "Ninja")
    run("cmake", "--build", tree, "--target", "elbow_trace")
    for component in ("clock", "trace"):
        run("cmake", "--install", tree, "--prefix", folder / "prefix", "--component", component)
    return folder / "prefix"


def check_traced(program: Path, folder: Path, events: int, **environment: str) -> None:
    said = run(program, folder / "trace", **environment)
    assert said.startswith(f"kept {events} events of 1 threads, lost 0;"), said
    lines = [json.loads(line) for line in (folder / "trace" / "rank-00000.jsonl").read_text().splitlines()]
    assert lines[-1]["record"] == "end"
    assert lines[-1]["kept"] == events
    assert [line["name"] for line in lines if line["record"] == "category"] == ["task"]
    assert (folder / "trace" / "rank-00000.thread-00000.ring").exists()


def test_an_installed_library_is_found_by_cmake_for_c_and_cpp(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER)
    for name in ("example.c", "example.cpp"):
        shutil.copy(SOURCES / name, tmp_path)
    build = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    check_traced(build / "example", tmp_path / "c", 302)
    # Events of a level above ELBOW_TRACE_LEVEL are not compiled.
    check_traced(build / "example_cpp", tmp_path / "cpp", 202)


def test_pkg_config_names_all_that_the_c_example_needs(prefix: Path, tmp_path: Path) -> None:
    (found,) = prefix.rglob("elbow_trace.pc")
    path = {"PKG_CONFIG_PATH": str(found.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "elbow_trace", **path).split()
    assert {"-lelbow_trace", "-lelbow_clock"} <= set(flags)
    run("cc", "-O2", SOURCES / "example.c", "-o", tmp_path / "example", *flags)
    libraries = run("pkg-config", "--variable=libdir", "elbow_trace", **path).strip()
    check_traced(tmp_path / "example", tmp_path, 302, LD_LIBRARY_PATH=libraries)


def test_a_program_compiled_with_recording_off_records_nothing(prefix: Path, tmp_path: Path) -> None:
    (found,) = prefix.rglob("elbow_trace.pc")
    path = {"PKG_CONFIG_PATH": str(found.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "elbow_trace", **path).split()
    run("cc", "-O2", "-DELBOW_TRACE_OFF", SOURCES / "example.c", "-o", tmp_path / "example", *flags)
    libraries = run("pkg-config", "--variable=libdir", "elbow_trace", **path).strip()
    # The region of interest is the library's own to record.
    check_traced(tmp_path / "example", tmp_path, 2, LD_LIBRARY_PATH=libraries)
