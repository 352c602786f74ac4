"""A probe at work: starts it, asks one question at a time, and ends it whatever happens.

Programs of apps/ are started with their settings in a file.

A recorded run answers the points of a plan again, for tests and for other people's runs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.heartbeat import Wait
from elbowroom.launch import processes
from elbowroom.launch.launcher import Launch
from elbowroom.launch.mpi import Mpi, mismatch
from elbowroom.launch.processes import kill_session, start
from elbowroom.points.unit import Startup, Unit, failed_record

PROTOCOL = 1
"""Version of docs/reference/protocol.md spoken here."""

_TAIL = 600
_GRACE = 3.0


class SessionLost(Exception):
    """The probe died or hangs; the sentence says which. The unit that was asked for is `failed`."""


class Conversation(Protocol):
    """What a run needs of a session: the live one here, and the one that replays a recorded run."""

    hello: dict[str, Any]

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The answer to a unit's request; raises SessionLost if none comes within `patience` seconds."""

    def close(self) -> None:
        """Ends the probe."""


class Session:
    """A live probe in a session and process group of its own.

    A session of its own matters where the kernel groups processes automatically (sched_autogroup), and lets
    all ranks be found and killed. This process sleeps while the probe measures, but for the heartbeat, and
    the probe's stderr goes to a file, so that no thread is needed to drain it.
    """

    what = "the probe"
    """How errors call it."""

    def __init__(
        self, launch: Launch, *, ranks: int, mpi: Mpi | None, patience: float = 60.0, greeted: bool = True
    ) -> None:
        """Starts the probe; `greeted`: and waits until it says hello, which else `greet` does."""
        self.hello: dict[str, Any] = {}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._buffer = b""
        self._chatter: list[str] = []
        self._command = launch.line()
        try:
            self._process = start(
                launch.command,
                field="launcher",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env={**os.environ, **launch.env},
            )
        except BaseException:
            self._errors.close()
            raise
        if greeted:
            self.greet(ranks, mpi, patience)

    def greet(self, ranks: int, mpi: Mpi | None, patience: float) -> None:
        """Waits until the probe has started; MachineError, and nothing is left of it, if it does not."""
        try:
            self.hello = self._hello(ranks, mpi, patience)
        except BaseException:
            self.close()
            raise

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """Sends one request and waits for its answer; raises SessionLost when the probe died or is silent."""
        self.begin(request)
        return self.finish(patience)

    def begin(self, request: dict[str, Any]) -> None:
        """Sends one request; raises SessionLost when the probe died."""
        try:
            self._send(msgspec.json.encode(request) + b"\n")
        except OSError as error:
            raise SessionLost(self._why()) from error

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        while data:
            data = data[self._process.stdin.write(data) or 0 :]

    def close(self) -> None:
        """Asks the probe to end, then kills whatever is left of its session."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._send(b'{"op": "quit"}\n')
            self._close_stdin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        self.kill()

    def kill(self) -> None:
        """Ends the launcher, then every process of its session: a rank may sit in a group of its own."""
        self._close_stdin()
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        for _ in range(3):
            if not kill_session(self._process.pid):
                break
            time.sleep(0.02)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _hello(self, ranks: int, mpi: Mpi | None, patience: float) -> dict[str, Any]:
        try:
            hello = self.finish(patience)
        except SessionLost as lost:
            raise MachineError(
                f"{self.what} did not start: {lost}",
                field="launcher",
                value=self._command,
                hint="try the same command by hand",
            ) from lost
        check_hello(hello, ranks, mpi, self._command)
        return hello

    def finish(self, patience: float) -> dict[str, Any]:
        """The next answer; raises SessionLost when the probe died or is silent."""
        end = time.monotonic() + patience
        while True:
            line = self._line(end, patience).strip()
            if line.startswith(b"{"):
                try:
                    answer = msgspec.json.decode(line)
                except msgspec.DecodeError as error:
                    raise SessionLost(
                        f"{self.what} answered something that is not JSON: {line[:200]!r}"
                    ) from error
                if isinstance(answer, dict):
                    return answer
            if line:
                # Some MPIs print warnings on stdout; they explain a failure that may follow.
                self._chatter.append(line.decode(errors="replace"))

    def _line(self, end: float, patience: float) -> bytes:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        waiter = select.poll()
        waiter.register(output, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._buffer:
            with Wait(f"waiting for {self.what}"):
                events = processes.poll(waiter, end)
            if not events:
                raise SessionLost(f"no answer within {patience:.0f} s{self._tail()}")
            data = os.read(output, 1 << 16)
            if not data:
                raise SessionLost(self._why())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _why(self) -> str:
        """How the probe ended, with the last words it said."""
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return f"{self.what} closed its output but did not end{self._tail()}"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{self.what} died ({how}){self._tail()}"

    def _tail(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4 * _TAIL))
        stderr = self._errors.read().decode(errors="replace").splitlines()
        lines = [line.strip() for line in [*self._chatter[-5:], *stderr] if line.strip(" -\t")]
        text = " | ".join(lines)
        return f": {text[-_TAIL:]}" if text else ""


def check_hello(hello: dict[str, Any], ranks: int, mpi: Mpi | None, command: str) -> None:
    """Refuses a probe that speaks another protocol, came up in pieces, or is linked to another MPI."""
    if hello.get("record") == "error":
        raise error_of(hello)
    if hello.get("record") != "hello" or hello.get("protocol") != PROTOCOL:
        raise MachineError(
            f"the probe speaks protocol {hello.get('protocol')!r}, this release {PROTOCOL}",
            field="probe",
            value=command,
            hint="build it again from this release's sources",
        )
    up = len(hello.get("ranks", ()))
    library = str(hello.get("mpi", {}).get("library", ""))
    if up != ranks:
        # The classic sign of a launcher and a library of different MPIs: N jobs of one rank each.
        raise MachineError(
            f"{ranks} ranks were requested but {up} started together: launcher and library ({library}) "
            "are probably of different MPIs",
            field="mpi",
            value=command,
            hint="take both from one prefix: --mpi PREFIX",
        )
    if mpi is not None and library and not library_matches(library, mpi):
        raise mismatch(mpi.name, library.split(",")[0].splitlines()[0], command)


def library_matches(library: str, mpi: Mpi) -> bool:
    """Whether MPI_Get_library_version's string is of the MPI the launcher belongs to."""
    if mpi.kind == "openmpi":
        return library.startswith(f"Open MPI v{mpi.version}")
    version = library.replace("\t", " ").split("MPICH Version:", 1)
    return len(version) == 2 and version[1].split()[0] == mpi.version


def error_of(record: dict[str, Any]) -> ElbowroomError:
    """A probe's `error` record as the error people see."""
    kind = UsageError if record.get("kind") == "usage" else MachineError
    return kind(
        str(record.get("message", "failed")),
        field=str(record.get("field", "")),
        value=record.get("value"),
        hint=str(record.get("hint", "")),
    )


class ProgramSession(Session):
    """A live program. Its settings are in a temporary file while it runs."""

    def __init__(self, launch: Callable[[str], Launch], startup: Startup, mpi: Mpi) -> None:
        """`launch` returns the command line for the path of the settings."""
        self.what = startup.name
        handle, self._config = tempfile.mkstemp(prefix=f"{self.what}-", suffix=".json")
        try:
            with open(handle, "wb") as file:
                file.write(msgspec.json.encode(startup.settings))
            super().__init__(launch(self._config), ranks=startup.ranks, mpi=mpi, patience=startup.patience)
        except BaseException:
            self._remove_settings()
            raise

    def close(self) -> None:
        """Ends the program and removes its settings."""
        super().close()
        self._remove_settings()

    def _remove_settings(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._config)


PREFIX = "replay:"


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded answer and what it was the answer to."""

    unit: Unit
    record: dict[str, Any]


class RecordedConversation:
    """A conversation with a recording: same requests, same answers, at once.

    What is not in the recording (other points, more repetitions) is answered as `failed` with that reason.
    """

    def __init__(self, hello: dict[str, Any], recording: Iterable[RecordedAnswer]) -> None:
        self.hello = hello
        self._answers = {item.unit: item.record for item in recording}

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The recorded answer."""
        answer = self._answers.get(unit)
        return failed_record(unit, "not in the recorded run") if answer is None else answer

    def close(self) -> None:
        """Nothing runs, so nothing ends."""
