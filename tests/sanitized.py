"""Builds with sanitizers, made at the lowest priority beside the other tests, which leave a core idle."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = "test_sanitizers.py"
TESTS = {
    "address,undefined": (
        "core_tests",
        "broadcast_tests",
        "taskflow_tests",
        "predict_tests",
        "trace_reader_tests",
    ),
    "thread": ("core_tests", "broadcast_tests", "taskflow_tests", "predict_tests"),
}  # fmt: skip

READERS = ("json-events", "otf2-events", "fuzz-otf2")
"""Programs that read files of others, and what tries one; with sanitizers for memory."""

_one_at_a_time = ThreadPoolExecutor(1)
_begun: dict[str, Future[Path]] = {}


def begin() -> None:
    """Starts all builds; they end while other tests run."""
    for sanitizers in TESTS:
        if sanitizers not in _begun:
            _begun[sanitizers] = _one_at_a_time.submit(_build, sanitizers)


def built(sanitizers: str) -> Path:
    """The folder of a build, once it is there; AssertionError with the compiler's words where it failed."""
    begin()
    return _begun[sanitizers].result()


def _build(sanitizers: str) -> Path:
    """The native tests and, where the MPI's compiler is known, the probe with sanitizers for memory."""
    folder = Path(os.environ["ELBOWROOM_SANITIZERS"]) / sanitizers.replace(",", "-")
    compiler = Path(os.environ.get("ELBOWROOM_MPIRUN", "")).parent / "mpicxx"
    readers = [] if sanitizers == "thread" else list(READERS)
    probe = ["probe"] if compiler.exists() and sanitizers != "thread" else []
    command = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DELBOWROOM_TESTS=ON"]
    command += ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DELBOWROOM_SANITIZE={sanitizers}"]
    # Optimised, what those for memory add takes the compiler twice as long, and what that for threads adds
    # runs far faster; -g1 keeps the stacks readable.
    level = "-O1" if sanitizers == "thread" else "-O0"
    # One instruction set instead of all that the kernels choose from.
    command += [f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={level} -g1 -DHWY_COMPILE_ONLY_STATIC"]
    command += [f"-DMPI_CXX_COMPILER={compiler}" if compiler.exists() else "-DELBOWROOM_MPI=OFF"]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:  # one worker builds, another finds it there
        fcntl.flock(lock, fcntl.LOCK_EX)
        for step in (
            command,
            ["cmake", "--build", str(folder), "--target", *TESTS[sanitizers], *readers, *probe],
        ):
            done = subprocess.run(["nice", "-n", "19", *step], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder
