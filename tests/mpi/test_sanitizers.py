"""Native code under the sanitizers: memory and undefined behaviour with ranks, data races without.

Slow (two builds from nothing, tests/sanitized.py), so only when ELBOWROOM_SANITIZERS names a folder to build
in.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import benchmark_modules
import sanitized
from damage import damages
from made_overlap import Recipe, kineto, make
from perfetto_file import Slices, compressed, track
from sanitized import TESTS

write_archive = benchmark_modules.load("otf2_archive").write_archive

CORES = sorted(os.sched_getaffinity(0))
# hwloc's plugin for PCI is unloaded before leaks are looked for, so those of its libpciaccess have no name to
# suppress them by.
WITHOUT_PCI = {"HWLOC_PLUGINS_BLACKLIST": "hwloc_pci"}
MPI_LIBRARIES = (
    "libmpi",
    "libopen-",
    "libpmix",
    "libprrte",
    "libhwloc",
    "libevent",
    "libucs",
    "libfabric",
    "orted",
)

# The MPI's libraries have no frame pointers: only unwinding by their tables tells that a leak is theirs. The
# names inside the C library are not known on a machine without its debugging symbols.
WHOLE_STACKS = {"ASAN_OPTIONS": "fast_unwind_on_malloc=0"}

HALTS = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}

pytestmark = pytest.mark.skipif(
    not os.environ.get("ELBOWROOM_SANITIZERS"), reason="slow; set ELBOWROOM_SANITIZERS to a build folder"
)


def program(folder: Path, name: str) -> Path:
    """A program of the build: those of a library are in the library's folder."""
    return next(path for path in folder.rglob(name) if path.is_file() and "CMakeFiles" not in path.parts)


@pytest.fixture(scope="module")
def address() -> Path:
    return sanitized.built("address,undefined")


def run(command: list[str], environment: dict[str, str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | environment, input=text, capture_output=True, text=True, errors="replace"
    )


@pytest.fixture(scope="module")
def thread() -> Path:
    return sanitized.built("thread")


@pytest.mark.parametrize("tests", TESTS["address,undefined"])
def test_the_native_tests_pass_under_address_and_undefined_behaviour_sanitizers(
    address: Path, tests: str
) -> None:
    options = WITHOUT_PCI | HALTS
    # Counting the graph of the thesis takes a minute and a half there, and does nothing that others do not.
    chosen = ["--test-case-exclude=*of the thesis*"] if tests == "taskflow_tests" else []
    done = run([str(program(address, tests)), *chosen], options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("tests", TESTS["thread"])
def test_the_native_tests_pass_under_the_thread_sanitizer(thread: Path, tests: str) -> None:
    # Of the libraries only what starts threads: the rest takes half a minute and has none.
    parts = {
        "predict_tests": ["--source-file=*threads_test*"],
        "broadcast_tests": ["--source-file=*interface_test*"],
        "taskflow_tests": ["--source-file=*flow_test*"],
    }
    chosen = parts.get(tests, [])
    done = run([str(program(thread, tests)), *chosen], {"TSAN_OPTIONS": "halt_on_error=1"})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("options", [[], ["--perfetto"]], ids=["JSON", "Perfetto"])
def test_a_damaged_trace_breaks_no_rule_of_memory_in_json_events(
    address: Path, tmp_path: Path, options: list[str], packed: bool
) -> None:
    slices = Slices(incremental=True)
    slices.spans([("gemm", "kernel", 1, 1000 * at, 1000 * at + 900) for at in range(40)])
    packets = slices.data + compressed(track(1, "stream", 0))
    good = packets if options else kineto(make(Recipe(seed=1, instances=60)))
    path = tmp_path / "trace"
    for damaged in damages(gzip.compress(good) if packed else good, 200):
        path.write_bytes(damaged)
        done = run([str(program(address, "json-events")), *options, str(path)], HALTS)
        assert done.returncode in (0, 4), done.stderr[-4000:]


def test_a_damaged_archive_breaks_no_rule_of_memory_in_otf2_events(address: Path, tmp_path: Path) -> None:
    anchor = write_archive(tmp_path / "whole", 400)
    if anchor is None:
        pytest.skip("libotf2 or a compiler is missing")
    files = [one.relative_to(anchor.parent) for one in anchor.parent.rglob("*") if one.is_file()]
    for number in range(100):
        copy = tmp_path / str(number)
        shutil.copytree(anchor.parent, copy)
        file = copy / files[number % len(files)]
        file.write_bytes(next(damages(file.read_bytes() or b"x", 1, seed=number)))
        # libotf2 leaks what it opened, and ends the process on some damage.
        done = run([str(program(address, "otf2-events")), str(copy / anchor.name)], HALTS | NO_LEAKS)
        assert not re.search("Sanitizer|runtime error", done.stderr), done.stderr[-4000:]


def test_whatever_libotf2_reads_breaks_no_rule_in_otf2_events(address: Path) -> None:
    done = run([str(program(address, "fuzz-otf2")), "1000"], HALTS)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_a_repetition_passes_under_the_address_sanitizer(address: Path, tmp_path: Path) -> None:
    """Leaks of the MPI and what it loads are its own; any other leak, and any error, is a failure."""
    mpirun = os.environ.get("ELBOWROOM_MPIRUN", "")
    if shutil.which(mpirun) is None:
        pytest.skip("ELBOWROOM_MPIRUN does not name a launcher")
    suppressions = tmp_path / "leaks.txt"
    suppressions.write_text("".join(f"leak:{library}\n" for library in MPI_LIBRARIES))
    options = WITHOUT_PCI | WHOLE_STACKS
    environment = options | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_smsc": "^cma,xpmem,knem",
        "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    request = {
        "op": "measure",
        "point": "p",
        "repetition": 0,
        "sequence": ["A", "B", "AB"],
        "kernel": "triad",
        "comp_cores": [CORES[1]],
        "working_set": 8 << 20,
        "size": 100_001,
        "comm_cores": [CORES[0]],
        "peer_cores": [CORES[0]],
        "window": 0.02,
    }
    patterns = ("pingpong", "receive", "bidirectional", "ring")
    requests = [json.dumps(request | {"pattern": pattern}) for pattern in patterns]
    window = {"who": "both", "first": 1001, "step": 4001, "count": 3, "exchanges": 4, "data": "different"}
    others = {"sequence": ["B", "AB"], "kernel": "none", "peer_cores": [CORES[1]], "metric": "latency"}
    for barrier in (True, False):
        requests.append(json.dumps(request | others | {"extraneous": window | {"barrier": barrier}}))
    command = [mpirun, "--bind-to", "none", "--oversubscribe", "-n", "2", str(address / "probe"), "measure"]
    done = run(command, environment, "\n".join([*requests, '{"op": "quit"}']) + "\n")
    assert done.returncode == 0, done.stderr[-4000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["record"] for answer in answers] == ["hello"] + ["repetition"] * len(requests)
    assert all(answer["validated"] for answer in answers[1:])
