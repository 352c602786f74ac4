"""Processes that elbowroom starts: run to their end, or ended with all that they started themselves."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from elbowroom import heartbeat
from elbowroom.errors import ElbowroomError, MachineError, UsageError

_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end this process."""

_ROUNDS = 3
_BETWEEN = 0.02
_TAIL = 300


class Finished(NamedTuple):
    """A command that has ended: its exit code (-N: by signal N), its outputs, and its wall time, s."""

    code: int
    stdout: str
    stderr: str
    wall_s: float

    @property
    def last_line(self) -> str:
        """The last line of stderr, or of stdout if that is empty: what a failure says of itself."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1] if lines else f"ended with exit code {self.code}"


class _Process(NamedTuple):
    number: int
    state: str
    parent: int
    session: int


def start(
    command: Sequence[str],
    *,
    field: str,
    hint: str = "",
    error: type[ElbowroomError] = MachineError,
    dies_with_parent: bool = True,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Starts a command in a session of its own; `options` are those of Popen.

    `dies_with_parent`: it is terminated when this process dies, which makes its start slower. Raises `error`
    if the command cannot be started.
    """
    try:
        if not dies_with_parent:
            return subprocess.Popen(command, start_new_session=True, **options)
        # Here Popen runs Python's fork hooks (os.register_at_fork; logging has some), and an interrupt that a
        # hook raises is printed and ignored. Signals wait until the process is started.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            prepare = partial(_die_with_parent, before)
            with heartbeat.paused():
                return subprocess.Popen(command, start_new_session=True, preexec_fn=prepare, **options)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise error(f"cannot be started ({why})", field=field, value=command[0], hint=hint) from problem


def run(
    command: Sequence[str],
    *,
    field: str,
    patience: float | None = None,
    given: bytes = b"",
    env: Mapping[str, str] | None = None,
    merged: bool = False,
    leaves_nothing: bool = False,
    doing: str | Callable[[str], str] = "",
    pass_fds: Sequence[int] = (),
    folder: str | os.PathLike[str] | None = None,
    hint: str = "try again",
    late: str = "stop other programs here, and try again",
    error: type[ElbowroomError] = MachineError,
) -> Finished:
    """Runs a command to its end, whatever its exit code.

    `given` is its stdin, `env` its whole environment; `merged`: stderr goes into stdout. `leaves_nothing`: it
    dies with this process, and processes that it leaves behind are killed. `doing` is what is said meanwhile
    (default: that the command runs), or makes it of the last lines of its stdout. The command inherits the
    open files `pass_fds`, and starts in `folder`. At the time limit, and if this process is interrupted, it
    is killed with all that it started.

    Raises `error` (with `hint`) if it cannot be started, MachineError (with the hint `late`) if it has not
    ended after `patience` seconds.
    """
    # Files and not pipes: a process that the command left behind may hold a pipe open for ever.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(given)
        stdin.seek(0)
        started = time.monotonic()
        process = start(
            command,
            field=field,
            hint=hint,
            error=error,
            dies_with_parent=leaves_nothing,
            stdin=stdin if given else subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT if merged else err,
            env=env,
            pass_fds=pass_fds,
            cwd=folder,
        )
        ended = False
        try:
            name = doing or f"running {os.path.basename(command[0])}"
            with heartbeat.Wait(name if isinstance(name, str) else lambda: name(_last_lines(out))):
                ended = _wait(process, patience)
            wall = time.monotonic() - started
        finally:
            if leaves_nothing or not ended:
                kill_all(process)
        if not ended:
            raise MachineError(
                f"did not end within {patience:g} s", field=field, value=" ".join(command), hint=late
            )
        return Finished(process.returncode, _text(out), _text(err), wall)


def run_program(
    words: Sequence[str],
    patience: float | None = None,
    *,
    env: Mapping[str, str] | None = None,
    field: str = "verify.command",
) -> Finished:
    """Runs a user's own program to its end, and kills the processes that it leaves behind.

    UsageError if there is no such program; MachineError if it fails, or has not ended after `patience`
    seconds.
    """
    finished = run(
        words,
        field=field,
        patience=patience,
        env=env,
        merged=True,
        leaves_nothing=True,
        doing=f"running {os.path.basename(words[0])}",
        hint="correct the path",
        late="raise the limit: --timeout",
        error=UsageError,
    )
    check_ended(finished.code, finished.stdout, words, field)
    return finished


def check_ended(code: int, output: str, words: Sequence[str], field: str) -> None:
    """MachineError with the last words of a user's own program that failed."""
    if code != 0:
        text = output.strip()[-_TAIL:] or "it printed nothing"
        raise MachineError(
            f"ended with exit code {code}: {text}", field=field, value=" ".join(words), hint="run it by hand"
        )


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode(errors="replace")
    return text


def _die_with_parent(mask: Collection[signal.Signals | int]) -> None:
    """In a child: be terminated when this process dies, so that a killed run leaves nothing measuring on.
    `mask`: the signals that it blocks.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _last_lines(file: Any) -> str:
    """The end of a file that a process is writing; its position, which they share, stays."""
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), _TAIL, max(0, size - _TAIL)).decode(errors="replace")


def poll(waiter: select.poll, deadline: float | None) -> list[tuple[int, int]]:
    """The events of `waiter`; none at the `deadline` (time.monotonic(); None: never)."""
    return waiter.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000)


def _wait(process: subprocess.Popen[bytes], patience: float | None) -> bool:
    """Waits for the process; False if it has not ended after `patience` seconds.

    Popen.wait with a time limit polls every 50 ms, which would be part of the measured time.
    """
    if patience is None:
        process.wait()
        return True
    handle = os.pidfd_open(process.pid)
    try:
        waiter = select.poll()
        waiter.register(handle, select.POLLIN)
        ended = bool(poll(waiter, time.monotonic() + min(patience, 1e6)))
    finally:
        os.close(handle)
    if ended:
        process.wait()
    return ended


def kill_session(session: int) -> bool:
    """Kills every process of a session; False when there was none left."""
    return _kill(lambda process: process.session == session)


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kills the leader of a session, every process of the session and its descendants, and waits for it.

    If the leader has ended already, only the processes of its session are killed.
    """
    family = _descendants(process.pid) if process.poll() is None else set()
    for _ in range(_ROUNDS):
        if not _kill(lambda one: one.session == process.pid or one.number in family):
            break
        time.sleep(_BETWEEN)
    process.wait()


def _descendants(number: int) -> set[int]:
    """A process and all below it, as far as nobody between them has ended."""
    children: dict[int, list[int]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process.number)
    family, waiting = set(), [number]
    while waiting:
        one = waiting.pop()
        family.add(one)
        waiting += [child for child in children.get(one, ()) if child not in family]
    return family


def _kill(chosen: Callable[[_Process], bool]) -> bool:
    killed = False
    for process in _processes():
        if process.state != "Z" and chosen(process):
            killed = True
            with contextlib.suppress(OSError):
                os.kill(process.number, signal.SIGKILL)
    return killed


def _processes() -> Iterator[_Process]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                # Fields after the command's closing bracket: state, parent, group, session.
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        yield _Process(int(entry), fields[0], int(fields[1]), int(fields[3]))


_LINEAR_ALGEBRA = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def one_thread() -> None:
    """Loads numpy and scipy with one thread for linear algebra, where the user has not asked for several.

    Fits are long rows of small matrices, whose threads only wait for one another.

    The libraries read these variables once, when they are loaded; the environment is left as it was, since
    programs that are started later inherit it. On a busy machine of two cores, fits then take a tenth of the
    time; on a quiet one, as long.
    """
    ours = [
        name for name in _LINEAR_ALGEBRA if name not in os.environ and "OMP_NUM_THREADS" not in os.environ
    ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        import numpy.linalg  # noqa: F401
        import scipy.linalg  # noqa: F401 (both are loaded for what they read from the environment)
    finally:
        for name in ours:
            del os.environ[name]
