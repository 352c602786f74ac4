"""Restores what a guard changed outside of the program, whatever happens to the guard.

`Keeper` starts a process of its own session that holds the reading end of a pipe. Each change is written to a
file first, with what was there before, and only then made; the pipe closes when the guard ends or is killed,
and the keeper writes back what was there. Where the keeper is killed, too, the file
stays, and `restore_left_over` (the next guard, `guard --restore`) does the same.

A change is a file of the system with its contents (resctrl, cgroup, sysfs), or the cores or the scheduling
policy of a process, which is left alone where another process has its number by now.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.guard.board import SHARED
from elbowroom.quantities import format_cores

Kind = Literal["file", "cores", "policy"]


class SystemChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a lever is about to change. `where`: a file, or the number of a process; `before`: its contents,
    its cores ("0,1") or its policy ("0 0": number and priority); `started`: when that process began, in
    ticks of the kernel.
    """

    kind: Kind
    where: str
    before: str
    started: str = ""


class ChangeJournal:
    """The file of what is changed and not restored: the first change of each file, and of the cores and the
    policy of each process; a line of JSON each.
    """

    def __init__(self, path: Path) -> None:
        """At `path`, which is made with the first change."""
        self.path = path
        self._known: set[tuple[str, ...]] = set()

    def add(self, change: SystemChange) -> None:
        """In the file before this returns, and so before the change is made. A line that was cut short by a
        kill is of a change that was not made.
        """
        key = (change.kind, change.where, change.started)
        if key in self._known:
            return
        self._known.add(key)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(change) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def changes(self) -> tuple[SystemChange, ...]:
        """In their order; none where there is no file."""
        try:
            lines = self.path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return ()
        return tuple(msgspec.json.decode(line, type=SystemChange) for line in lines)

    def restore(self) -> tuple[str, ...]:
        """Writes back what was there, and removes the file unless something could not be restored; a sentence
        for each that could not.
        """
        failed: list[str] = []
        for change in self.changes():
            try:
                _RESTORED[change.kind](change)
            except OSError as error:
                failed.append(f"{change.where}: is not as before, {change.before!r} ({error.strerror})")
        if not failed:
            self.path.unlink(missing_ok=True)
        return tuple(failed)


def _restore_file(change: SystemChange) -> None:
    # A group that was removed needs no setting any more.
    with contextlib.suppress(FileNotFoundError):
        Path(change.where).write_text(change.before)


def _restore_cores(change: SystemChange) -> None:
    if _is_same(change):
        os.sched_setaffinity(int(change.where), [int(core) for core in change.before.split(",")])


def _restore_policy(change: SystemChange) -> None:
    if _is_same(change):
        policy, priority = (int(word) for word in change.before.split())
        os.sched_setscheduler(int(change.where), policy, os.sched_param(priority))


_RESTORED: dict[Kind, Callable[[SystemChange], None]] = {
    "file": _restore_file,
    "cores": _restore_cores,
    "policy": _restore_policy,
}


def started(process: int) -> str:
    """When a process began, in ticks of the kernel; "" of one that has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def _is_same(change: SystemChange) -> bool:
    return bool(change.started) and started(int(change.where)) == change.started


class Keeper:
    """The levers of one guard change the world through it, each change after its entry in the journal."""

    def __init__(self, journal: ChangeJournal, process: subprocess.Popen[bytes]) -> None:
        """A keeper that runs; `keeping` starts one."""
        self._journal = journal
        self._process = process

    @property
    def pid(self) -> int:
        """The process that restores."""
        return self._process.pid

    def write(self, path: Path, contents: str) -> None:
        """Writes to a file of the system. MachineError where it cannot be read or written."""
        try:
            self._journal.add(SystemChange(kind="file", where=str(path), before=path.read_text()))
            path.write_text(contents)
        except OSError as error:
            raise MachineError(
                f"cannot be changed ({error.strerror})", field="setting", value=str(path)
            ) from error

    def move(self, process: int, cores: Sequence[int]) -> None:
        """Lets a process run on `cores` only. MachineError where that is not allowed, or it has ended."""
        self._change(
            process,
            "cores",
            lambda: ",".join(map(str, sorted(os.sched_getaffinity(process)))),
            lambda: os.sched_setaffinity(process, cores),
            f"run on cores {format_cores(cores)}",
        )

    def schedule(self, process: int, policy: int) -> None:
        """Gives a process a scheduling policy (os.SCHED_IDLE). MachineError as `move`."""
        self._change(
            process,
            "policy",
            lambda: f"{os.sched_getscheduler(process)} {os.sched_getparam(process).sched_priority}",
            lambda: os.sched_setscheduler(process, policy, os.sched_param(0)),
            f"get scheduling policy {policy}",
        )

    def _change(
        self, process: int, kind: Kind, read: Callable[[], str], change: Callable[[], None], what: str
    ) -> None:
        try:
            entry = SystemChange(kind=kind, where=str(process), before=read(), started=started(process))
            self._journal.add(entry)
            change()
        except OSError as error:
            raise MachineError(f"cannot {what} ({error.strerror})", field="process", value=process) from error


@contextlib.contextmanager
def keeping(name: str, folder: Path = SHARED) -> Iterator[Keeper]:
    """A keeper while a guard runs; at the end everything is as before, or there is a MachineError."""
    journal = ChangeJournal(folder / f"elbow-guard-{name}.changes")
    reading, writing = os.pipe()
    # A session of its own: Ctrl-C and the end of the terminal are not for it.
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(journal.path)],
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(reading)
    try:
        _wait_until_ready(process)
        yield Keeper(journal, process)
    finally:
        os.close(writing)
        process.communicate()
        if failed := journal.restore():
            raise MachineError(
                failed[0],
                field="guard",
                value=str(journal.path),
                hint="run `elbowroom guard --restore` again",
            )


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    """Nothing is changed before the keeper ignores the signals that the guard may get."""
    assert process.stdout is not None
    if not process.stdout.read(1):
        raise MachineError("the keeper did not start", field="guard", hint="is there enough memory?")


def restore_left_over(folder: Path = SHARED) -> tuple[str, ...]:
    """Restores what guards left that were killed with their keepers, this user's; a sentence for each change
    that could not be restored. Journals of guards that run have a keeper, and are left to it.
    """
    failed: list[str] = []
    for path in sorted(folder.glob("elbow-guard-*.changes")):
        if path.stat().st_uid == os.getuid() and not _is_kept(path):
            failed += ChangeJournal(path).restore()
    return tuple(failed)


def _is_kept(journal: Path) -> bool:
    words = os.fsencode(journal)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = process.read_bytes().split(b"\0")
            if words in command and __name__.encode() in command:
                return True
    return False


def main(words: Sequence[str]) -> int:
    """The keeper's process: waits for the end of its stdin, and restores."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    os.write(1, b"\n")
    while os.read(0, 4096):
        pass
    try:
        return 1 if ChangeJournal(Path(words[0])).restore() else 0
    except (ElbowroomError, msgspec.MsgspecError):
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
