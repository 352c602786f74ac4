"""Where a program calls MPI: function, file and line of a site.

Lines are those of addr2line (binutils, or that of LLVM or elfutils), one process for each module. Without it,
or without debugging information, a site is named by its function or by its offset in the module. A module
that was changed since the program ran has neither.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import msgspec

from elbowroom.profile.rank_tables import Site
from elbowroom.profile.symbols import functions_at

_TOOLS = ("addr2line", "llvm-addr2line", "eu-addr2line")
_SECONDS = 20
"""For the lines of one module; debugging information may have gigabytes."""
_OF_MPI = re.compile(r"/(openmpi|mpich|mvapich2?|boost/mpi)/|/(mpi|mpi_proto|mpicxx)\.h$")
"""Headers whose functions only hand on, and are inlined."""
_FORTRAN = re.compile(r"\.(f|for|f77|f90|f95|f03|f08)$", re.IGNORECASE)
_CLONE = re.compile(r"( \[clone .*\])+$|\.(constprop|isra|part|cold|lto_priv|_omp_fn)\b.*$")


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A site as its symbols name it; None where there are none. `offset`: its return address."""

    module: str
    offset: int
    function: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def text(self) -> str:
        """As `exchange (halo.c:42)`, `exchange (libhalo.so+0x1140)`, or `unknown place`."""
        if not self.module:
            return "unknown place"
        where = f"{PurePath(self.module).name}+{self.offset:#x}"
        if self.file is not None:
            where = PurePath(self.file).name + ("" if self.line is None else f":{self.line}")
        return where if self.function is None else f"{self.function} ({where})"


class _SourceFrame(NamedTuple):
    function: str | None
    file: str | None
    line: int | None


_known: dict[Site, Location] = {}


def locate(sites: Sequence[Site]) -> tuple[Location, ...]:
    """The location of each site. Those of one module are looked up together, and once in a process."""
    modules: dict[tuple[str, int, int], list[Site]] = {}
    for site in dict.fromkeys(sites):
        if site not in _known:
            modules.setdefault((site.module, site.size, site.mtime_ns), []).append(site)
    for (module, size, mtime_ns), own in modules.items():
        # The call comes before the address to which it returns.
        addresses = [max(site.offset - 1, 0) for site in own]
        frames = (
            _frames(Path(module), addresses) if _is_unchanged(module, size, mtime_ns) else [None] * len(own)
        )
        for site, frame in zip(own, frames, strict=True):
            function, file, line = frame or (None, None, None)
            _known[site] = Location(
                module=module, offset=site.offset, function=function, file=file, line=line
            )
    return tuple(_known[site] for site in sites)


def _is_unchanged(module: str, size: int, mtime_ns: int) -> bool:
    path = Path(module)
    if not path.is_absolute():
        return False
    try:
        status = path.stat()
    except (OSError, ValueError):
        return False
    return path.is_file() and (status.st_size, status.st_mtime_ns) == (size, mtime_ns)


def _frames(module: Path, addresses: Sequence[int]) -> list[_SourceFrame]:
    symbols = functions_at(module, addresses)
    frames: list[_SourceFrame] = []
    for symbol, inlined in zip(symbols, _inlined(module, addresses), strict=True):
        known = [one for one in inlined if one.file is not None]
        own = [one for one in known if not _OF_MPI.search(str(one.file))]
        if known:
            frame = (own or known)[0]
        else:
            # The nearest symbol, demangled: right where one covers the address.
            frame = _SourceFrame(inlined[0].function if inlined and symbol else symbol, None, None)
        frames.append(frame._replace(function=plain_name(frame.function, frame.file)))
    return frames


def _inlined(module: Path, addresses: Sequence[int]) -> list[list[_SourceFrame]]:
    """Of each address the functions that are inlined there, the innermost one first; empty if not known."""
    tool = next(filter(None, map(shutil.which, _TOOLS)), None)
    if tool is None:
        return [[] for _ in addresses]
    # It would ask servers for what is not here.
    environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    try:
        done = subprocess.run(
            [tool, "-a", "-f", "-C", "-i", "-e", str(module)],
            input="".join(f"{address:#x}\n" for address in addresses),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return [[] for _ in addresses]
    frames: list[list[_SourceFrame]] = []
    name: str | None = None
    for line in done.stdout.splitlines():
        if name is None and re.fullmatch(r"0x[0-9a-f]+", line):
            frames.append([])
        elif name is None:
            name = line
        elif frames:
            frames[-1].append(_frame(name, line))
            name = None
    return frames if len(frames) == len(addresses) else [[] for _ in addresses]


def _frame(name: str, where: str) -> _SourceFrame:
    """Of two lines of addr2line: a name, and `file:line` with a column or a comment, or `??:?`."""
    match = re.fullmatch(r"(.*?):(\d+|\?)(?::\d+)?(?: \(discriminator \d+\))?", where)
    file = match[1] if match and match[1] not in ("", "??") else None
    line = int(match[2]) if match and file and match[2] not in ("?", "0") else None
    return _SourceFrame(None if name in ("", "??") else name, file, line)


def plain_name(name: str | None, file: str | None = None) -> str | None:
    """A function's name as its author wrote it: without what compilers add to names of Fortran and to copies
    of functions, and without the types of arguments.
    """
    if name is None:
        return None
    name = _CLONE.sub("", name)
    if module := re.fullmatch(r"__(\w+?)_MOD_(\w+)|(\w+?)_mp_(\w+?)_", name):
        return "::".join(part for part in module.groups() if part)
    if name == "MAIN__":
        return "main"
    if cython := re.fullmatch(r"__pyx_(?:pw|pf|f|pyw)_(\d.*)", name):
        return _cython_name(cython[1])
    if name.endswith(")"):
        name = _without_arguments(name)
    if file is not None and _FORTRAN.search(file):
        name = name.rstrip("_") or name
    return name


def _without_arguments(name: str) -> str:
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at] or name
    return name


def _cython_name(mangled: str) -> str:
    """`6mpi4py_3MPI_4Comm_23Send` as `mpi4py.MPI.Comm.Send`: lengths before all names but the last."""
    parts: list[str] = []
    while match := re.match(r"(\d+)", mangled):
        length, rest = int(match[1]), mangled[match.end() :]
        if rest[length : length + 1] != "_":
            return ".".join([*parts, rest])
        parts.append(rest[:length])
        mangled = rest[length + 1 :]
    return ".".join([*parts, mangled])
