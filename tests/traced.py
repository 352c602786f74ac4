"""Programs of an MPI with its interposer preloaded, and both ends of the messages that were recorded."""

from __future__ import annotations

import fcntl
import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build, native
from elbowroom.launch.mpi import Mpi, find_mpi
from trace_rings import Recorded, read_rings

ROOT = Path(__file__).parents[1]
PMPI = ROOT / "lib" / "pmpi"
MPIS = ("embedded", "openmpi", "mpich")
SEND, RECEIVE = 4, 5
PATIENCE = 120


def mpi_called(name: str) -> Mpi:
    try:
        found = find_mpi(name)
    except ElbowroomError as error:
        pytest.skip(error.sentence())
    if name != "embedded" and found.embedded:
        pytest.skip(f"no other {name} than the embedded one")
    return found


def minikernel(mpi: Mpi) -> Path:
    """elbow_minikernel for an MPI: the one that the environment names is the default MPI's."""
    with pytest.MonkeyPatch.context() as patch:
        if mpi.compiler != find_mpi().compiler:
            patch.delenv("ELBOWROOM_ELBOW_MINIKERNEL", raising=False)
        return build.application("elbow_minikernel", mpi)


def interposer(mpi: Mpi) -> Path:
    """What to preload for an MPI: as users build it, and for MPICH over another MPI's recorder."""
    if mpi.kind == "mpich" and not mpi.embedded:
        folder = _interposer(mpi, build.trace_libraries(find_mpi()))
    else:
        folder = build.trace_libraries(mpi)
    return folder / "libelbow_trace_mpi.so"


def _interposer(mpi: Mpi, recorder: Path) -> Path:
    options = shlex.split(os.environ.get("ELBOWROOM_CMAKE", ""))
    key = native.source_key(ROOT, [], [str(ROOT), mpi.compiler, mpi.version, str(recorder)])
    folder = native.cache_folder().parent / "interposers" / key
    words = ["cmake", "-S", str(PMPI), "-B", str(folder), "-G", "Ninja", f"-DMPI_CXX_COMPILER={mpi.compiler}"]
    words += [f"-DELBOW_TRACE_FOLDER={recorder}", *options]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:  # one worker builds, another finds it there
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (words, ["ninja", "-C", str(folder)]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder / "preload"


class Ran(NamedTuple):
    """A program that ended: its exit code, what it said, and the folder that it wrote into."""

    code: int
    said: str
    folder: Path

    def recorded(self, rank: int) -> Recorded:
        return read_rings(self.folder / "trace", rank)

    def ledger(self, rank: int) -> list[list[str]]:
        return [line.split() for line in (self.folder / f"ledger-{rank}.txt").read_text().splitlines()]


def run(mpi: Mpi, ranks: int, words: list[str], folder: Path, preload: Path | None) -> Ran:
    folder.mkdir()
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    told = []
    if preload is not None:
        told = [f"LD_PRELOAD={preload}", f"ELBOW_TRACE_DIRECTORY={folder / 'trace'}", "ELBOW_TRACE_JOB=7"]
        told += ["ELBOW_TRACE_CATEGORIES=mpi,poll,message,clock"]
    command = [mpi.launcher, *more, "-n", str(ranks), "env", *told, *words]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False
    )
    return Ran(done.returncode, done.stdout, folder)


class End(NamedTuple):
    """One end of a message: who it is from and for, over what, which one."""

    source: int
    destination: int
    communicator: int
    tag: int
    sequence: int
    bytes: int


def ends(recorded: Recorded, rank: int, kind: int, name: str = "message") -> list[End]:
    found = []
    for event in recorded.of(name, kind):
        peer, size = event.first & 0xFFFFFFFF, event.second & (1 << 40) - 1
        source, destination = (rank, peer) if kind == SEND else (peer, rank)
        tag = event.small - (1 << 32) if event.small >> 31 else event.small
        found.append(End(source, destination, event.first >> 32, tag, event.second >> 40, size))
    return found
