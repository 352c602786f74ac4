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
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Literal, NamedTuple, Protocol

import msgspec

from elbowroom import heartbeat
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import build, launch_line, native
from elbowroom.launch.launch_line import DIRECT, SUFFIXES, forwarded, launcher_of
from elbowroom.launch.launcher import Launch
from elbowroom.launch.launchers import DEFAULT, detect
from elbowroom.launch.mpi import (
    Mpi,
    abi_of,
    describe,
    find_mpi,
    launch_environment,
    launcher_identity,
    loaded_library,
    output,
    stdout_of,
    wrapper_of,
)
from elbowroom.quantities import format_cores

Adapter = Literal["mpi", "starpu", "omp"]
Policy = Literal["stop", "overwrite", "drain", "grow", "flush"]
TraceClock = Literal["best", "monotonic"]

ADAPTERS: tuple[Adapter, ...] = ("mpi", "starpu", "omp")
POLICIES: tuple[Policy, ...] = ("stop", "overwrite", "drain", "grow", "flush")
CLOCKS: tuple[TraceClock, ...] = ("best", "monotonic")
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


DEFAULT_BYTES = 4 << 20
_LEAST_DEFAULT, _MOST_DEFAULT = 1 << 20, 32 << 20


def default_bytes(memory: str = "/dev/shm") -> int:
    """The default size of a thread's event buffer: a power of two, 1 to 32 MiB.

    Buffers of one thread per processor of this host take at most a quarter of its free memory.
    """
    try:
        status = os.statvfs(memory)
    except OSError:
        return DEFAULT_BYTES
    share = status.f_bavail * status.f_frsize // (4 * (os.cpu_count() or 1))
    return min(max(1 << max(share.bit_length() - 1, 0), _LEAST_DEFAULT), _MOST_DEFAULT)


class Preloaded(Protocol):
    """What the processes of a program get: environment variables, and a library for each adapter."""

    def environment(self) -> dict[str, str]:
        """The environment of a process."""

    def library(self, adapter: Adapter) -> str:
        """The file of what is preloaded."""


class RecorderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the recorder in each process.

    `categories`: None for all; `without`: types of events that are not recorded; `bytes` and `text_bytes`:
    buffers of each thread; `core`: of the thread that drains them; `sync_seconds`: time between comparisons
    of clocks at barriers, 0 for begin and end only, None for the begin only; `flush_at`: events of a thread
    after which the policy `flush` writes them for the first time (0: when the buffer is full); `clock`:
    `monotonic` is CLOCK_MONOTONIC, which NTP steers.
    """

    directory: str
    job: int
    categories: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    bytes: int = DEFAULT_BYTES
    text_bytes: int = 256 << 10
    policy: Policy = "stop"
    core: int | None = None
    sync_seconds: float | None = 10.0
    flush_at: int = 0
    clock: TraceClock = "best"

    def environment(self) -> dict[str, str]:
        """As the environment of a process."""
        variables = {
            "ELBOW_TRACE_DIRECTORY": os.path.abspath(self.directory),
            "ELBOW_TRACE_BYTES": str(self.bytes),
            "ELBOW_TRACE_TEXT_BYTES": str(self.text_bytes),
            "ELBOW_TRACE_POLICY": self.policy,
            "ELBOW_TRACE_JOB": str(self.job),
            "ELBOW_TRACE_SYNC_SECONDS": "once" if self.sync_seconds is None else f"{self.sync_seconds:g}",
        }
        if self.categories is not None:
            variables["ELBOW_TRACE_CATEGORIES"] = ",".join(self.categories)
        if self.without:
            variables["ELBOW_TRACE_WITHOUT"] = ",".join(self.without)
        if self.core is not None:
            variables["ELBOW_TRACE_CORE"] = str(self.core)
        if self.flush_at:
            variables["ELBOW_TRACE_FLUSH_AT"] = str(self.flush_at)
        if self.clock != "best":
            variables["ELBOW_CLOCK"] = self.clock
        return variables

    def library(self, adapter: Adapter) -> str:
        """The adapter that records its events."""
        return f"libelbow_trace_{adapter}.so"


class RecordedCommand(NamedTuple):
    """A command line that records, its whole environment, what it preloads, and what is to be said of it."""

    command: tuple[str, ...]
    env: dict[str, str]
    adapters: tuple[Adapter, ...]
    mpi: Mpi | None
    notes: tuple[str, ...]

    def line(self) -> str:
        """As one would type it into a shell with this process's environment."""
        added = {name: value for name, value in self.env.items() if os.environ.get(name) != value}
        return Launch(command=self.command, env=added).line()


def prepare(
    words: Sequence[str],
    settings: Preloaded | None,
    *,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    preloads: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
) -> RecordedCommand:
    """The command that runs `words` and records them.

    `adapters`: those to preload; by default those for the program's libraries, and MPI's behind a launcher or
    where `mpi` names the program's MPI.
    Without `settings` nothing is recorded. `preloads`: more libraries, `variables`: more environment
    variables of the program's processes.

    UsageError where there is no such command or MPI, an adapter is not there or the MPI cannot be identified.
    """
    env = dict(os.environ if env is None else env)
    words = _checked(words, env)
    place = launcher_of(words)
    exported = dict(variables or {})
    chosen: tuple[Adapter, ...] = ()
    notes: tuple[str, ...] = ()
    traced = None
    if mpi is not None:
        find_mpi(mpi)
    if settings is not None:
        libraries = program_libraries(words[0 if place is None else place + 1 :])
        chosen, notes = _chosen(adapters, place is not None or mpi is not None, libraries)
        if mpi is not None and "mpi" not in chosen:
            raise UsageError(
                "is only valid with the adapter mpi", field="mpi", value=mpi, hint="add it to --adapters"
            )
        traced = _mpi_of(words, place, libraries, mpi) if "mpi" in chosen else None
        exported |= settings.environment()
        if chosen:
            folder = launch_line.plain_folder(build.trace_libraries(traced))
            preloads = (*_adapters_in(folder, settings, chosen), *preloads)
    if preloads:
        own = launch_line.joined(*map(str, preloads))
        exported[launch_line.NAME] = launch_line.joined(own, env.get(launch_line.NAME))
        if place is None or Path(words[place]).name in DIRECT:
            words = launch_line.changed_by_env(words, own)
    if place is None:
        return RecordedCommand(tuple(words), env | exported, chosen, traced, notes)
    whole = env | {name: value for name, value in launch_environment().items() if name not in env}
    if Path(words[place]).name in DIRECT or not exported:
        return RecordedCommand(tuple(words), whole | exported, chosen, traced, notes)
    # That of the launcher: the program may be of another MPI.
    kind = _launcher_kind(words[place], traced)
    inherited = {name: value for name, value in exported.items() if name != launch_line.NAME}
    return RecordedCommand(forwarded(words, place, kind, exported), whole | inherited, chosen, traced, notes)


def check_core(words: Sequence[str], core: int) -> None:
    """UsageError for a core that no thread of this host can run on; those of other hosts are not known."""
    if launch_line.names_hosts(words) or detect(os.environ) != DEFAULT:
        return
    count = os.sysconf("SC_NPROCESSORS_CONF")
    if not 0 <= core < count:
        raise UsageError(
            "does not exist", field="drain_core", value=core, hint=f"cores of this host: 0-{count - 1}"
        )
    try:
        # The affinity is that of the thread which asks: this one ends with the question.
        with ThreadPoolExecutor(1) as asker:
            asker.submit(os.sched_setaffinity, 0, {core}).result()
    except OSError as error:
        raise UsageError(
            f"cannot be used by this process ({error.strerror})",
            field="drain_core",
            value=core,
            hint=f"name one of the cores {format_cores(sorted(os.sched_getaffinity(0)))}",
        ) from error


def program_libraries(words: Sequence[str]) -> dict[Adapter, str]:
    """For which adapters the programs among `words` have a library, and the first such program."""
    programs: dict[Adapter, str] = {}
    for word in words:
        path = shutil.which(word)
        if path is None or not is_elf(path):
            continue
        linked = stdout_of("ldd", path)
        for adapter in ADAPTERS:
            if adapter not in programs and re.search(_NEEDS[adapter], linked, re.MULTILINE):
                programs[adapter] = path
    return programs


_MPI_FUNCTION = re.compile(r" [TW] (MPI_\w+|mpi_\w+_)$", re.MULTILINE)


def own_mpi_functions(words: Sequence[str]) -> tuple[str, ...]:
    """Functions of MPI that programs among `words` define themselves, as a PMPI tool that is linked into them
    does: their calls go past what is preloaded. None where that is not known (nm of binutils is missing).
    """
    paths = {shutil.which(word) for word in words}
    listed = [stdout_of("nm", "--dynamic", "--defined-only", path) for path in paths if path and is_elf(path)]
    return tuple(sorted({name for text in listed for name in _MPI_FUNCTION.findall(text)}))


def run(recording: RecordedCommand, stdout: IO[bytes] | int | None = None) -> int:
    """Runs it to its end and gives its exit code, as a shell does: 128 + the number of a signal.

    Interrupts from the terminal reach the program, too, and are left to it; other signals are handed on.
    """
    if sys.stderr.isatty():
        heartbeat.say(
            f"running {os.path.basename(recording.command[0])}; the terminal is its own until it ends"
        )
    try:
        process = subprocess.Popen(recording.command, env=recording.env, stdout=stdout)
    except OSError as error:
        raise MachineError(
            f"cannot be started ({error.strerror})",
            field="command",
            value=recording.command[0],
            hint="correct the path",
        ) from error
    with _left_to(process), heartbeat.silent():
        code = process.wait()
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _left_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals are the program's while it runs; in a thread (a notebook) they are nobody's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hand_on(number: int, _: object) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, hand_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _checked(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    if not words:
        raise UsageError(
            "no command is given", field="command", hint="write it behind --: -- mpirun -n 4 ./app"
        )
    if shutil.which(words[0], path=env.get("PATH")) is None:
        raise UsageError(
            "is not found, or cannot be executed", field="command", value=words[0], hint="correct the path"
        )
    return list(words)


def _chosen(
    requested: Sequence[Adapter] | None, uses_mpi: bool, libraries: Mapping[Adapter, str]
) -> tuple[tuple[Adapter, ...], tuple[str, ...]]:
    if requested is not None:
        return tuple(dict.fromkeys(requested)), ()
    chosen = tuple(name for name in ADAPTERS if name in libraries or (name == "mpi" and uses_mpi))
    if chosen:
        return chosen, ()
    return (), (
        "Nothing is preloaded: the command starts no MPI launcher and links neither MPI nor StarPU nor an "
        "OpenMP with OMPT; only what the program records itself is in the trace. For a script that runs "
        "mpirun give --mpi PREFIX, the folder above the bin/ of that mpirun.",
    )


def _mpi_of(
    words: Sequence[str], place: int | None, libraries: Mapping[Adapter, str], requested: str | None
) -> Mpi | None:
    """The MPI to record: the one requested, else that of the program's library, else the launcher's."""
    if requested is not None:
        return find_mpi(requested)
    library = loaded_library(Path(libraries["mpi"])) if "mpi" in libraries else None
    wrapper = wrapper_of(library) if library is not None else None
    if wrapper is not None:
        return describe(wrapper)
    if place is not None and Path(words[place]).name not in DIRECT:
        mpi = _beside(words[place])
        if library is not None:
            check_abi(libraries["mpi"], library, mpi)
        return mpi
    launcher = "" if place is None else f"{Path(words[place]).name} does not reveal its MPI, and "
    raise UsageError(
        f"{launcher}the program's MPI is unknown",
        field="mpi",
        value=library,
        hint="name it with --mpi PREFIX; `trace record` may leave MPI out with --adapters starpu,omp",
    )


def check_abi(program: str, library: str, mpi: Mpi) -> None:
    """UsageError where a program's MPI library has another binary interface than this MPI."""
    if abi_of(library) not in (None, mpi.kind):
        raise UsageError(
            f"is linked with {Path(library).name}, which has another binary interface than {mpi.name}",
            field="command",
            value=program,
            hint="start it by the launcher of its own MPI, or name that MPI with --mpi PREFIX",
        )


def _beside(word: str) -> Mpi:
    """The MPI whose compiler wrapper is beside this launcher."""
    path = Path(shutil.which(word) or word)
    kind, version = launcher_identity(output(str(path), "--version"))
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        for suffix in SUFFIXES:
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
        hint="install it (Debian: libopenmpi-dev, libmpich-dev), or name another with --mpi PREFIX; `trace "
        "record` may leave MPI out with --adapters starpu,omp",
    )


def _launcher_kind(word: str, mpi: Mpi | None) -> str | None:
    path = shutil.which(word) or word
    if mpi is not None and os.path.realpath(mpi.launcher) == os.path.realpath(path):
        return mpi.kind
    if Path(path).name.startswith(("orterun", "prterun")):
        return "openmpi"  # the second says its own version
    kind = launcher_identity(output(path, "--version"))[0]
    return mpi.kind if kind is None and mpi is not None else kind


def _adapters_in(folder: Path, settings: Preloaded, adapters: Sequence[Adapter]) -> list[Path]:
    paths = []
    for name in adapters:
        path = folder / settings.library(name)
        # In a dry run the folder may not be built yet.
        if not path.exists() and not (native.is_dry_run() and not folder.exists()):
            raise UsageError("unknown adapter", field="adapters", value=name, hint=_MISSING[name])
        paths.append(path)
    return paths


def is_elf(path: str) -> bool:
    """Whether a file is a program or a library of this system, not a script."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
