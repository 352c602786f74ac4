"""Starts trace-reader, the program that reads traces (lib/trace/merge), and hands on what it says."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import build

DOUBTFUL = 3
"""Exit code of trace-reader: done, but times are not to be trusted."""

_USAGE = 2
_PREFIX = "trace-reader: "
_PROGRESS = "progress "

Tell = Callable[[int, int], object]
"""Told how much of how much is done."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A document of trace-reader as JSON, and whether what it is about can be trusted."""

    document: bytes
    trusted: bool


def read(words: Sequence[str], tell: Tell | None = None) -> Said:
    """What `trace-reader WORDS` prints on stdout. `tell` hears how far it is.

    UsageError where it refuses the request, MachineError where it fails or dies. Interrupted, it is ended,
    and what it has not finished writing is gone.
    """
    with _started(words, tell) as running:
        document = running.stdout.read()
    return Said(document=document, trusted=_judged(running, words))


class Columns:
    """The columns of a merged trace as they are written (lib/trace/outputs/columns.hpp): `stream` while it is
    open, `summary` and `trusted` once it was read to its end and closed.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.summary = b""
        self.trusted = True


@contextmanager
def columns(directory: str | Path, tell: Tell | None = None) -> Iterator[Columns]:
    """A trace, merged, as the stream that Parquet and the timeline are made of; raises as `read`."""
    words = ["merge", str(directory), "--to", "columns", "-o", "-"]
    with _started(words, tell) as running:
        found = Columns(running.stdout)
        yield found
        running.stdout.read()
    found.trusted = _judged(running, words)
    found.summary = "\n".join(running.lines).encode()


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What a process said when its recorder stopped: events recorded and lost, bytes of a ring that none is
    lost in, and events kept by category.
    """

    recorded: int
    lost: int
    advised_bytes: int
    by_category: dict[str, int]


def ends(directory: Path) -> list[End]:
    """What each process said at its end, quickly: trace-reader is not asked. Processes without an end, or
    with files that cannot be read, are left out.
    """
    found = []
    for path in sorted(directory.glob("rank-*.jsonl")):
        categories: dict[int, str] = {}
        types: dict[int, str] = {}
        end: dict[str, Any] | None = None
        for line in path.read_bytes().splitlines():
            try:
                record = msgspec.json.decode(line)
                if record["record"] == "category":
                    categories[record["number"]] = record["name"]
                elif record["record"] == "type":
                    types[record["number"]] = categories.get(record["category"], "")
                elif record["record"] == "end":
                    end = record
            except (msgspec.DecodeError, KeyError, TypeError):
                continue
        if end is not None:
            found.append(_end(end, types))
    return found


def _end(record: dict[str, Any], types: dict[int, str]) -> End:
    counted: dict[str, int] = {}
    for one in record["types"]:
        name = types.get(one["type"], "")
        if name and one["kept"]:
            counted[name] = counted.get(name, 0) + one["kept"]
    return End(
        recorded=record["recorded"],
        lost=record["lost"],
        advised_bytes=record["advised_bytes"],
        by_category=counted,
    )


class _Running:
    """A trace-reader at work: its stdout, and beside it, read by a thread, the lines of stderr but those that
    tell how far it is.
    """

    def __init__(self, command: Sequence[str], tell: Tell | None) -> None:
        import threading

        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.stdout: IO[bytes] = self.process.stdout
        self.lines: list[str] = []
        self._tell = tell
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            line = raw.decode(errors="replace").rstrip("\n")
            words = line.removeprefix(_PROGRESS).split()
            if line.startswith(_PROGRESS) and len(words) == 2 and all(word.isdigit() for word in words):
                if self._tell is not None:
                    self._tell(int(words[0]), int(words[1]))
            else:
                self.lines.append(line)

    def end(self) -> None:
        """Waits for it, and for all it said."""
        self.process.wait()
        self._thread.join()
        assert self.process.stderr is not None
        self.stdout.close()
        self.process.stderr.close()


@contextmanager
def _started(words: Sequence[str], tell: Tell | None) -> Iterator[_Running]:
    path = build.trace_reader()
    more = ["--progress"] if tell is not None else []
    try:
        running = _Running([str(path), *words, *more], tell)
    except OSError as error:
        raise MachineError(
            f"cannot be started ({error.strerror})", field="trace-reader", value=str(path), mend="try again"
        ) from error
    try:
        yield running
    except BaseException:
        # A KeyboardInterrupt has reached it as well; otherwise nobody reads what it says any longer.
        running.process.terminate()
        raise
    finally:
        running.end()


def _judged(running: _Running, words: Sequence[str]) -> bool:
    """Whether it can be trusted; raises where it failed."""
    code = running.process.returncode
    if code in (0, DOUBTFUL):
        return code == 0
    told = [line.removeprefix(_PREFIX) for line in running.lines if line.strip()]
    # CLI11 ends its refusals with a line about --help.
    sentence = "it said nothing" if not told else told[0 if code == _USAGE else -1]
    if code < 0:
        raise MachineError(
            f"was ended by signal {-code}: {sentence}", field="trace-reader", value=words[0], mend="try again"
        )
    raise (UsageError if code == _USAGE else MachineError)(sentence)
