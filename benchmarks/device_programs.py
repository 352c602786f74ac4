"""Programs that speak the line protocol (docs/reference/protocol.md), driven by the standard library alone.

They run where nothing is installed (benchmarks/device.py), so nothing of elbowroom is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

GRACE = 1.0
"""Seconds that a program has to end after `quit`."""
TAIL = 600
LONGEST_TEMPORARY = 40
"""Characters: sockets of the MPI's launcher lie below TMPDIR, and their paths may not exceed 107 bytes."""
LOADER = "/lib64/ld-linux-x86-64.so.2"


class Lost(Exception):
    """The program ended, was silent for too long, or sent something else than an answer."""


class Program:
    """A program at work, with all its ranks in a session of their own."""

    running: ClassVar[set[int]] = set()
    """Sessions of programs that have not ended."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], patience: float) -> None:
        """Starts it and reads `hello`; raises Lost where none comes within `patience` seconds."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise Lost(f"{command[0]} cannot be started: {error.strerror}") from error
        Program.running.add(self._process.pid)
        try:
            self.hello = self._answer(patience)
            if self.hello.get("record") != "hello":
                raise Lost(str(self.hello.get("message", self.hello))[:TAIL])
        except BaseException:
            self.close()
            raise

    def ask(self, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
        """The answer to a request; raises Lost where none comes within `patience` seconds."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise Lost(self._end()) from error
        return self._answer(patience)

    def close(self) -> None:
        """Asks the program to end, and kills what is left of it; waits at most twice GRACE."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.write(b'{"op": "quit"}\n')
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
        end(self._process.pid)
        # A process that hangs in the driver cannot be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        for file in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):
                assert file is not None
                file.close()

    def _answer(self, patience: float) -> dict[str, Any]:
        last = time.monotonic() + patience
        while True:
            line = self._line(last).strip()
            # Some MPIs print warnings on stdout.
            if line.startswith(b"{"):
                try:
                    answer: dict[str, Any] = json.loads(line)
                except ValueError as error:
                    raise Lost(f"an answer is no JSON: {line[:200]!r}") from error
                return answer

    def _line(self, last: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            left = last - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise Lost(f"no answer in time{self._tail()}")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise Lost(self._end())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _end(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        return f"the program ended (exit code {self._process.poll()}){self._tail()}"

    def _tail(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL))
        text = " | ".join(self._errors.read().decode(errors="replace").split("\n")).strip(" |-\t")
        return f": {text}" if text else ""


def end(session: int) -> None:
    """Kills each process of a session; ranks may be in process groups of their own."""
    for _ in range(3):
        members = list(_members(session))
        for process in members:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not members:
            break
        time.sleep(0.02)
    Program.running.discard(session)


def end_all() -> None:
    """Kills all programs that are still at work."""
    for session in tuple(Program.running):
        end(session)


def _members(session: int) -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = Path("/proc", name, "stat").read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    yield int(name)


def output(command: Sequence[str], environment: Mapping[str, str], patience: float) -> str:
    """What a short command prints on stdout; raises Lost where it fails or takes longer than `patience` s."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise Lost(f"{command[0]} cannot be started: {error.strerror}") from error
        Program.running.add(process.pid)
        try:
            code = process.wait(patience)
        except subprocess.TimeoutExpired:
            raise Lost(f"{command[0]} did not end within {patience:.0f} s") from None
        finally:
            end(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        errors.seek(0)
        if code != 0:
            words = errors.read().decode(errors="replace").strip()[-TAIL:]
            raise Lost(f"{os.path.basename(command[0])} failed (exit code {code}): {words}")
        printed.seek(0)
        return printed.read().decode(errors="replace")


def library_path(bundle: Path, system: str, *, all_spare: bool = False) -> str:
    """Where the carried programs find their libraries; `system` is LD_LIBRARY_PATH, which may have the
    driver. Those of spare/ only stand in for what this system lacks, since libraries of the driver may need
    the system's newer ones; `all_spare`: all of them.
    """
    folders = [bundle / "lib", bundle / "mpi" / "lib"]
    spare = sorted((bundle / "spare").glob("*"))
    folders += [folder for folder in spare if all_spare or not _loads(folder.name)]
    return os.pathsep.join(filter(None, (*map(str, folders), system)))


def own_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for the carried programs: nothing of it is of another MPI."""
    foreign = ("OMPI_", "OPAL_", "PMIX_", "PRTE_", "UCX_", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in environment.items() if not name.startswith(foreign)}
    if len(kept.get("TMPDIR", "")) > LONGEST_TEMPORARY:
        kept["TMPDIR"] = "/tmp"
    return {"HOME": "/", **kept}


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def with_libraries(path: str, words: Iterable[str]) -> list[str]:
    """A command with this search path of libraries. It is not inherited: the launcher of the MPI has its own
    libraries, and no variable of the environment is needed.
    """
    return [LOADER, "--library-path", path, *words]


def cuda_folders(environment: Mapping[str, str]) -> list[str]:
    """Folders that may have NVRTC and cuBLASLt: those that ELBOWROOM_CUDA_LIBRARIES names, wheels of each
    Python in PATH, and the toolkit's.
    """
    named = environment.get("ELBOWROOM_CUDA_LIBRARIES", "").split(os.pathsep)
    folders = [Path(folder) for folder in named if folder]
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and any(Path(folder).glob("python3*")):
            prefix = Path(folder).parent
            folders += sorted(prefix.glob("lib/python3*/*-packages/nvidia/*/lib"))
    for pattern in ("local/cuda*/lib64", "local/cuda*/targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"):
        folders += sorted(Path("/usr").glob(pattern))
    libraries = ("libnvrtc.so*", "libcublasLt.so*")
    return [
        str(folder)
        for folder in dict.fromkeys(folders)
        if any(next(folder.glob(name), None) for name in libraries)
    ]
