"""Programs of an MPI with its interposer preloaded, and both ends of the messages that were recorded."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
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
PATIENT = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "OMP_WAIT_POLICY": "passive",
}
"""By these, ranks and threads that wait let others run: tests share their cores with other tests."""


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
    folder = build.trace_libraries(mpi)
    if mpi.kind == "mpich" and not mpi.embedded:
        folder = _over_recorder(folder, build.trace_libraries(find_mpi()))
    return folder / "libelbow_trace_mpi.so"


def _over_recorder(own: Path, recorder: Path) -> Path:
    """A folder with an interposer of `own` beside the recorder of another: libraries find others beside
    themselves.
    """
    folder = native.cache_folder("interposers") / f"{own.name}-{recorder.name}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        shutil.copytree(recorder, made, dirs_exist_ok=True)
        shutil.copy2(own / "libelbow_trace_mpi.so", made)
        try:
            made.rename(folder)
        except OSError:  # another worker was faster
            shutil.rmtree(made)
    return folder


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
