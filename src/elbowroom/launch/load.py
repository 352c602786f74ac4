"""The known load (apps/load) as a process: settings to its input, counts from its output."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from elbowroom.errors import MachineError
from elbowroom.launch.build import load_program
from elbowroom.launch.processes import kill_all, start

FIELD = "load"


class LoadCount(NamedTuple):
    """What the load did until `ns` (CLOCK_MONOTONIC): bytes moved, and ns in which another thread had its
    cores (None: unknown).
    """

    ns: int
    bytes: int
    waited_ns: int | None

    def rate(self, before: LoadCount) -> float:
        """B/s since then."""
        return (self.bytes - before.bytes) / max(self.ns - before.ns, 1) * 1e9

    def waited(self, before: LoadCount, cores: int) -> float:
        """Share of the time since then in which others had its cores; 0 where it is unknown."""
        if self.waited_ns is None or before.waited_ns is None:
            return 0.0
        return (self.waited_ns - before.waited_ns) / max(self.ns - before.ns, 1) / cores


class KnownLoad:
    """A load on some cores; it does nothing until it is set."""

    def __init__(self, process: subprocess.Popen[bytes], cores: Sequence[int]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input: IO[bytes] = process.stdin
        self._output: IO[bytes] = process.stdout
        self.cores = tuple(cores)
        facts = self._answer()
        self.cache: int = facts["cache"]
        self.largest: int = facts["footprint"]
        """Bytes of each core's largest footprint."""

    def set(self, *, rate: float | None, footprint: int | None = None) -> LoadCount:
        """From now on `rate` B/s of each core (None: as fast as possible, 0: nothing) on `footprint`
        bytes.
        """
        request = {"rate": rate, "footprint": self.largest if footprint is None else footprint}
        return self._count(json.dumps(request))

    def count(self) -> LoadCount:
        """What it did until now."""
        return self._count("")

    def _count(self, line: str) -> LoadCount:
        try:
            self._input.write(line.encode() + b"\n")
            self._input.flush()
        except OSError:
            pass  # The answer, or its absence, says why.
        counts = self._answer()
        waited = counts["waited_ns"]
        return LoadCount(counts["ns"], counts["bytes"], None if waited < 0 else waited)

    def _answer(self) -> dict[str, Any]:
        line = self._output.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            code = self._process.wait()
            raise MachineError(
                f"ended with exit code {code}", field=FIELD, hint="it runs at most 10 min beside one program"
            ) from None
        if "error" in answer:
            raise MachineError(answer["error"], field=FIELD, value=",".join(map(str, self.cores)))
        return answer


@contextlib.contextmanager
def known_load(cores: Sequence[int], *, seconds: float, priority: str = "idle") -> Iterator[KnownLoad]:
    """A load on these cores for at most `seconds`, which ends with the block. MachineError where it cannot be
    built, or does not run on these cores.
    """
    words = [
        str(load_program()), "--cores", ",".join(map(str, cores)), "--seconds", f"{seconds:g}",
        "--priority", priority,
    ]  # fmt: skip
    process = start(words, field=FIELD, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield KnownLoad(process, cores)
    finally:
        kill_all(process)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
