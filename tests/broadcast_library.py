"""lib/broadcast as a built tree, and programs that are compiled against it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from counted import c_wrapper
from elbowroom.launch.mpi import Mpi, launch_environment

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "lib" / "broadcast"


def run(*words: str | Path, seconds: float = 300, **environment: str) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, **launch_environment(), **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built_tree(folder: Path) -> Path:
    """Where the library is built: in the folder of all native tests where that is there."""
    given = Path(os.environ.get("ELBOWROOM_PREDICT") or os.devnull)
    tree = given if (given / "lib" / "broadcast").exists() else folder / "build"
    if tree != given:
        run("cmake", "-S", SOURCES, "-B", tree, "-G", "Ninja")
    run("cmake", "--build", tree, "--target", "elbow_broadcast")
    return tree


def library_folder(tree: Path) -> Path:
    """Where libelbow_broadcast.so is in such a tree."""
    return next(tree.rglob("libelbow_broadcast.so")).parent


def compiled_for(mpi: Mpi, source: Path, program: Path, *flags: str) -> Path:
    """A program in C for an MPI, without a warning."""
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror")
    run(c_wrapper(mpi), "-std=c11", "-O1", *warnings, source, "-o", program, *flags)
    return program


def ranks_of(mpi: Mpi, count: int) -> list[str]:
    """The words that start so many ranks, on however many cores."""
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return [mpi.launcher, *more, "-n", str(count)]
