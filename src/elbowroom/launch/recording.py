"""Runs a program with the recorder preloaded: which MPI it is of, what fits it, what its ranks are told.

The ranks alone are preloaded, not their launcher, wherever the launcher takes settings for them. A launcher
that is preloaded all the same (srun, one in a script) takes no harm: it calls no MPI_Init, and records
nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple

import msgspec

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import build
from elbowroom.launch.mpi import (
    Mpi,
    describe,
    find_mpi,
    launch_environment,
    launcher_identity,
    loaded_library,
    output,
    said,
    wrapper_of,
)

Adapter = Literal["mpi", "starpu", "omp"]
Policy = Literal["stop", "overwrite", "drain", "grow"]

ADAPTERS: tuple[Adapter, ...] = ("mpi", "starpu", "omp")
POLICIES: tuple[Policy, ...] = ("stop", "overwrite", "drain", "grow")
LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun")
DIRECT = ("srun",)
"""Launchers that give ranks their own environment, and belong to no MPI."""

_SUFFIXES = ("", ".openmpi", ".mpich")
_NEEDS = {
    # Which library of a program an adapter is for; GCC's libgomp has no OMPT.
    "mpi": r"^\s*libmpi(?:ch|cxx)?\.so",
    "starpu": r"^\s*libstarpu(?:mpi)?-1",
    "omp": r"^\s*lib(?:omp|iomp5)\.so",
}
_MISSING = {
    "mpi": "name the program's MPI: --mpi PREFIX",
    "starpu": "on Debian or Ubuntu `apt-get install libstarpu-dev`",
    "omp": "on Debian or Ubuntu `apt-get install libomp-dev`",
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the recorder of each process is told: `categories` None for all; bytes of events and of texts for
    each thread; `core`: of the thread that drains; `sync_seconds` between comparisons of clocks at barriers,
    0 for the begin and the end only.
    """

    directory: str
    job: int
    categories: tuple[str, ...] | None = None
    bytes: int = 4 << 20
    text_bytes: int = 256 << 10
    policy: Policy = "stop"
    core: int | None = None
    sync_seconds: float = 10.0

    def environment(self) -> dict[str, str]:
        """As the environment of a process."""
        found = {
            "ELBOW_TRACE_DIRECTORY": os.path.abspath(self.directory),
            "ELBOW_TRACE_BYTES": str(self.bytes),
            "ELBOW_TRACE_TEXT_BYTES": str(self.text_bytes),
            "ELBOW_TRACE_POLICY": self.policy,
            "ELBOW_TRACE_JOB": str(self.job),
            "ELBOW_TRACE_SYNC_SECONDS": f"{self.sync_seconds:g}",
        }
        if self.categories is not None:
            found["ELBOW_TRACE_CATEGORIES"] = ",".join(self.categories)
        if self.core is not None:
            found["ELBOW_TRACE_CORE"] = str(self.core)
        return found


class Recording(NamedTuple):
    """A command line that records, its whole environment, what it preloads, and what is to be said of it."""

    command: tuple[str, ...]
    env: dict[str, str]
    adapters: tuple[Adapter, ...]
    mpi: Mpi | None
    notes: tuple[str, ...]


def prepare(
    words: Sequence[str],
    settings: Settings | None,
    *,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    variables: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Recording:
    """The command `words`, recorded. `adapters`: those to preload, by default what the program's libraries
    ask for, and MPI's behind a launcher. Without `settings` nothing is recorded, nor preloaded. `variables`:
    what the program's processes are to be told besides.

    UsageError where there is no such command, an adapter is not there or the MPI cannot be told.
    """
    env = dict(os.environ if env is None else env)
    words = _found(words, env)
    place = launcher_of(words)
    told = dict(variables or {})
    chosen: tuple[Adapter, ...] = ()
    notes: tuple[str, ...] = ()
    found = None
    if settings is not None:
        libraries = program_libraries(words[0 if place is None else place + 1 :])
        chosen, notes = _chosen(adapters, place is not None, libraries)
        found = _mpi_of(words, place, libraries, mpi) if "mpi" in chosen else None
        told |= settings.environment()
        if chosen:
            preloads = _preloads(build.trace_libraries(found), chosen)
            theirs = [env["LD_PRELOAD"]] if env.get("LD_PRELOAD") else []
            told["LD_PRELOAD"] = ":".join([*map(str, preloads), *theirs])
    if place is None:
        return Recording(tuple(words), env | told, chosen, found, notes)
    whole = env | {name: value for name, value in launch_environment().items() if name not in env}
    if Path(words[place]).name in DIRECT or not told:
        return Recording(tuple(words), whole | told, chosen, found, notes)
    kind = found.kind if found is not None else _launcher_kind(words[place])
    inherited = {name: value for name, value in told.items() if name != "LD_PRELOAD"}
    return Recording(forwarded(words, place, kind, told), whole | inherited, chosen, found, notes)


def launcher_of(words: Sequence[str]) -> int | None:
    """Where the launcher of an MPI is among the words of a command; None where there is none."""
    for place, word in enumerate(words):
        name = Path(word).name
        if any(name == known + suffix for known in LAUNCHERS for suffix in _SUFFIXES):
            return place
    return None


def forwarded(
    words: Sequence[str], place: int, kind: str | None, variables: Mapping[str, str]
) -> tuple[str, ...]:
    """The command with options that let the launcher give its ranks these variables, on whichever host: of
    Open MPI for each program of the job (they are separated by `:`), of MPICH for all.
    """
    if kind == "mpich":
        told = [part for name, value in variables.items() for part in ("-genv", name, value)]
        return (*words[: place + 1], *told, *words[place + 1 :])
    told = [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    found = [*words[: place + 1], *told]
    for word in words[place + 1 :]:
        found += [word, *told] if word == ":" else [word]
    return tuple(found)


def program_libraries(words: Sequence[str]) -> dict[Adapter, str]:
    """For which adapters the programs among `words` have a library, and the first such program."""
    found: dict[Adapter, str] = {}
    for word in words:
        path = shutil.which(word)
        if path is None or not _is_elf(path):
            continue
        linked = said("ldd", path)
        for adapter in ADAPTERS:
            if adapter not in found and re.search(_NEEDS[adapter], linked, re.MULTILINE):
                found[adapter] = path
    return found


def run(recording: Recording, stdout: IO[bytes] | int | None = None) -> int:
    """Runs it to its end and gives its exit code, as a shell does: 128 + the number of a signal.

    An interrupt from the terminal reaches the program, too, and is left to it; SIGTERM is handed on.
    """
    try:
        process = subprocess.Popen(recording.command, env=recording.env, stdout=stdout)
    except OSError as error:
        raise MachineError(
            f"cannot be started ({error.strerror})",
            field="command",
            value=recording.command[0],
            mend="mend the path",
        ) from error
    with _left_to(process):
        code = process.wait()
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _left_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals are the program's while it runs; in a thread (a notebook) they are nobody's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number)),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _found(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if not words:
        raise UsageError(
            "no command is given", field="command", mend="write it behind --: -- mpirun -n 4 ./app"
        )
    if shutil.which(words[0], path=env.get("PATH")) is None:
        raise UsageError(
            "is not found, or cannot be executed", field="command", value=words[0], mend="mend its path"
        )
    return list(words)


def _chosen(
    asked: Sequence[Adapter] | None, launched: bool, libraries: Mapping[Adapter, str]
) -> tuple[tuple[Adapter, ...], tuple[str, ...]]:
    if asked is not None:
        return tuple(dict.fromkeys(asked)), ()
    chosen = tuple(name for name in ADAPTERS if name in libraries or (name == "mpi" and launched))
    if chosen:
        return chosen, ()
    return (), (
        "Nothing is preloaded: the command starts no MPI launcher and links neither MPI nor StarPU nor an "
        "OpenMP with OMPT; only what the program records itself is in the trace (--adapters names others).",
    )


def _mpi_of(
    words: Sequence[str], place: int | None, libraries: Mapping[Adapter, str], asked: str | None
) -> Mpi | None:
    """The MPI to record: what was asked for, else that of the program's library, else the launcher's."""
    if asked is not None:
        return find_mpi(asked)
    library = loaded_library(Path(libraries["mpi"])) if "mpi" in libraries else None
    wrapper = wrapper_of(library) if library is not None else None
    if wrapper is not None:
        return describe(wrapper)
    if place is not None and Path(words[place]).name not in DIRECT:
        return _beside(words[place])
    what = "the program's" if place is None else f"{Path(words[place]).name} tells no MPI, and the program's"
    raise UsageError(
        f"{what} MPI cannot be told",
        field="mpi",
        value=library,
        mend="name it with --mpi PREFIX, or leave it out with --adapters starpu,omp",
    )


def _beside(word: str) -> Mpi:
    """The MPI whose compiler wrapper is beside this launcher."""
    path = Path(shutil.which(word) or word)
    kind, version = launcher_identity(output(str(path), "--version"))
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        for suffix in _SUFFIXES:
            compiler = folder / f"mpicxx{suffix}"
            if not compiler.exists():
                continue
            with contextlib.suppress(ElbowroomError):
                mpi = describe(compiler)
                if kind is None or (mpi.kind, mpi.version) == (kind, version):
                    return mpi
    raise UsageError(
        "has no mpicxx of the same MPI beside it, so its interposer cannot be built",
        field="mpi",
        value=str(path),
        mend="install it (Debian: libopenmpi-dev, libmpich-dev), name another with --mpi PREFIX, or leave "
        "MPI out with --adapters starpu,omp",
    )


def _launcher_kind(word: str) -> str | None:
    return launcher_identity(output(shutil.which(word) or word, "--version"))[0]


def _preloads(folder: Path, adapters: Sequence[Adapter]) -> list[Path]:
    found = []
    for name in adapters:
        path = folder / f"libelbow_trace_{name}.so"
        if not path.exists():
            raise UsageError("this adapter is not there", field="adapters", value=name, mend=_MISSING[name])
        found.append(path)
    return found


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
