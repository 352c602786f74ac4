"""Starts trace-reader, the program that reads traces (lib/trace/merge), and hands on what it says.

A trace's directory has a job for each MPI_COMM_WORLD, or process, that recorded into it. The first job has
the directory itself, the next ones job-2, job-3 ... inside it (lib/trace/job_folder.hpp). Once all have
ended, several jobs are all in folders of their own.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from elbowroom.errors import MachineError, UsageError
from elbowroom.files import no_space, wrong_kind
from elbowroom.launch import build, native, processes
from elbowroom.progress import Progress
from elbowroom.quantities import plural
from elbowroom.trace.documents import Stat, TraceCheck, decode
from elbowroom.trace.overlap import otf2_library

DOUBTFUL = 3
"""Exit code of trace-reader: done, but times are not to be trusted."""

BINS = 100
"""Intervals of time, by default."""

MOST_BINS = 100_000

LARGE_JSON = 32 << 20
"""Bytes of JSON that Python reads in half a second; for more, the program that reads it is built, once."""

LARGE_OTF2 = 4 << 20
"""Bytes of events of OTF2 that Python reads in a second."""

PACKED = 12
"""Bytes of a profiler's JSON in a byte of gz."""

_USAGE = 2
_PREFIX = "trace-reader: "
_PROGRESS = "progress "

Tell = Callable[[int, int], object]
"""Told how much of how much is done."""


class ReaderOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A document of trace-reader as JSON, and whether what it is about can be trusted."""

    document: bytes
    trusted: bool


def read(words: Sequence[str], tell: Tell | None = None) -> ReaderOutput:
    """What `trace-reader WORDS` prints on stdout. `tell` hears how far it is.

    UsageError where it refuses the request, MachineError where it fails or dies. Interrupted, it is ended,
    and what it has not finished writing is gone.
    """
    with _started(words, tell) as running:
        document = running.stdout.read()
    return ReaderOutput(document=document, trusted=_trusted(running, words))


def copy(words: Sequence[str], out: IO[bytes], tell: Tell | None = None) -> ReaderOutput:
    """The same where WORDS write to stdout (`-o -`), which is copied to `out`; the document comes apart."""
    with _started(words, tell) as running:
        shutil.copyfileobj(running.stdout, out)
    return ReaderOutput(trusted=_trusted(running, words), document="\n".join(running.lines).encode())


class ColumnStream:
    """The columns of a merged trace (lib/trace/outputs/columns.hpp).

    Read `stream` while it is open; `summary` and `trusted` are set once it was read to its end and closed.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.summary = b""
        self.trusted = True


@contextmanager
def columns(
    directory: str | Path, tell: Tell | None = None, begin_ns: int | None = None, end_ns: int | None = None
) -> Iterator[ColumnStream]:
    """A merged trace as the stream that Parquet files and timelines are written from; raises as `read`.

    `begin_ns` and `end_ns` select a part of the time, ns since the start of the job.
    """
    words = ["merge", str(directory), "--to", "columns", "-o", "-"]
    words += [] if begin_ns is None else ["--from", str(begin_ns)]
    words += [] if end_ns is None else ["--until", str(end_ns)]
    with _started(words, tell) as running:
        merged = ColumnStream(running.stdout)
        yield merged
        running.stdout.read()
    merged.trusted = _trusted(running, words)
    merged.summary = "\n".join(running.lines).encode()


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The last record of a process: events recorded and lost, and events kept by category and by type.

    `advised_bytes`: the size of a buffer that would have lost none.
    """

    recorded: int
    lost: int
    advised_bytes: int
    by_category: dict[str, int]
    by_type: dict[str, int]


def ends(directory: Path) -> list[End]:
    """The last record of each process, read without trace-reader.

    Processes without a last record, or with files that cannot be read, are left out.
    """
    last_records = []
    for path in sorted(directory.glob("rank-*.jsonl")):
        categories: dict[int, str] = {}
        types: dict[int, tuple[str, str]] = {}
        end: dict[str, Any] | None = None
        for line in path.read_bytes().splitlines():
            try:
                record = msgspec.json.decode(line)
                if record["record"] == "category":
                    categories[record["number"]] = record["name"]
                elif record["record"] == "type":
                    types[record["number"]] = (categories.get(record["category"], ""), record["name"])
                elif record["record"] == "end":
                    end = record
            except (msgspec.DecodeError, KeyError, TypeError):
                continue
        if end is not None:
            last_records.append(_end(end, types))
    return last_records


def _end(record: dict[str, Any], types: dict[int, tuple[str, str]]) -> End:
    by_category, by_type = Counter[str](), Counter[str]()
    for one in record["types"]:
        category, name = types.get(one["type"], ("", ""))
        if category and one["kept"]:
            by_category[category] += one["kept"]
            by_type[name] += one["kept"]
    return End(
        recorded=record["recorded"],
        lost=record["lost"],
        advised_bytes=record["advised_bytes"],
        by_category=by_category,
        by_type=by_type,
    )


def _open_files(words: Sequence[str]) -> list[int]:
    """What a shell has opened for this process and names /dev/fd/63 (`>(gzip)`): the reader needs it."""
    matches = (re.fullmatch(r"/(?:dev|proc/self)/fd/(\d{1,6})", word) for word in words)
    return [int(match[1]) for match in matches if match is not None and int(match[1]) > 2]


class _ReaderProcess:
    """A running trace-reader: its stdout and, read by a thread, the lines of its stderr without progress."""

    def __init__(self, command: Sequence[str], tell: Tell) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=_open_files(command),
        )
        assert self.process.stdout is not None
        self.stdout: IO[bytes] = self.process.stdout
        self.lines: list[str] = []
        self._tell = tell
        self._thread = threading.Thread(target=self._read, daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self.process.kill()
            self.process.communicate()
            raise

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            line = raw.decode(errors="replace").rstrip("\n")
            words = line.removeprefix(_PROGRESS).split()
            if line.startswith(_PROGRESS) and len(words) == 2 and all(word.isdigit() for word in words):
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
def _started(words: Sequence[str], tell: Tell | None) -> Iterator[_ReaderProcess]:
    path = build.trace_reader()
    more = ["--progress"] if words[0] == "merge" else []
    bar = Progress(0, what="", doing="reading the trace")

    def reached(done: int, total: int) -> None:
        bar.reach(done, total)
        if tell is not None:
            tell(done, total)

    try:
        running = _ReaderProcess([str(path), *words, *more], reached)
    except (OSError, RuntimeError) as error:
        # RuntimeError: no thread can be started.
        why = getattr(error, "strerror", None) or error
        raise MachineError(
            f"cannot be started ({why})", field="trace-reader", value=str(path), hint="try again"
        ) from error
    try:
        with bar:
            yield running
    except BaseException:
        # A KeyboardInterrupt has reached it as well; otherwise nobody reads what it says any longer.
        running.process.terminate()
        raise
    finally:
        running.end()


def _trusted(running: _ReaderProcess, words: Sequence[str]) -> bool:
    """Whether it can be trusted; raises where it failed."""
    code = running.process.returncode
    if code in (0, DOUBTFUL):
        return code == 0
    messages = [line.removeprefix(_PREFIX) for line in running.lines if line.strip()]
    # CLI11 ends its refusals with a line about --help.
    sentence = "it printed nothing" if not messages else messages[0 if code == _USAGE else -1]
    if code < 0:
        raise MachineError(
            f"was ended by signal {-code}: {sentence}", field="trace-reader", value=words[0], hint="try again"
        )
    raise (UsageError if code == _USAGE else MachineError)(sentence)


class Checked(NamedTuple):
    """What is to be said of a trace, and whether its times can be trusted."""

    check: TraceCheck
    trusted: bool


def read_check(directory: str | Path) -> Checked:
    """Whether the trace in this folder is whole, and its times can be trusted."""
    check_folder(directory)
    output = read(["check", str(directory)])
    return Checked(decode(output.document, TraceCheck), output.trusted)


def read_stat(directory: str | Path, bins: int) -> Stat:
    """Events by type and over time, in `bins` intervals, by thread, and what recording took by rank."""
    check_folder(directory)
    check_bins(bins)
    return decode(read(["stat", str(directory), "--bins", str(bins)]).document, Stat)


def check_bins(bins: int) -> None:
    """UsageError for fewer intervals than one, or so many that their counts would fill the memory."""
    if bins < 1:
        raise UsageError("there is at least one", field="bins", value=bins, hint="leave it out")
    if bins > MOST_BINS:
        raise UsageError(
            f"there are at most {MOST_BINS}", field="bins", value=bins, hint=f"leave it out for {BINS}"
        )


def check_folder(directory: str | Path) -> None:
    """UsageError where a directory holds no trace, or those of several jobs."""
    path = Path(directory)
    if has_ranks(path):
        return
    several = jobs(path)
    if several:
        raise UsageError(
            f"holds {len(several)} jobs: {', '.join(map(described, several))}",
            field="directory",
            value=str(directory),
            hint=f"name one of them, for instance {several[0]}",
        )
    raise UsageError(
        wrong_kind(path, "folder") or "holds no trace (rank-*.jsonl)",
        field="directory",
        value=str(directory),
        hint="name the directory that `elbowroom trace record -o` was given",
    )


FIRST = "job-1"
_FRONT = "elbow-trace-"


def has_ranks(folder: Path) -> bool:
    """Whether some process has recorded into this folder itself."""
    return any(folder.glob("rank-*.jsonl"))


def jobs(directory: Path) -> list[Path]:
    """The folders of all jobs that recorded something, in the order in which they began."""
    numbered = []
    for path in directory.glob("job-*"):
        number = re.fullmatch(r"job-(\d{1,6})", path.name)
        if number is not None and has_ranks(path):
            numbered.append((int(number[1]), path))
    first = [directory] if has_ranks(directory) else []
    return [*first, *(path for _, path in sorted(numbered))]


def started(directory: Path) -> bool:
    """Whether some process at least tried to record here."""
    return (directory / "job.json").exists() or bool(jobs(directory))


def command_of(job: Path) -> str:
    """The command of a job's first process; empty where nobody knows."""
    with contextlib.suppress(OSError, ValueError):
        command = json.loads((job / "job.json").read_text(errors="replace")).get("command", "")
        return str(command)
    return ""


def described(job: Path) -> str:
    """`t/job-2 (./solve mesh.bin, 4 ranks)`."""
    ranks = len(list(job.glob("rank-*.jsonl")))
    words = [command_of(job), plural(ranks, "rank")]
    return f"{job} ({', '.join(word for word in words if word)})"


def settle(directory: Path) -> list[Path]:
    """The folders of all jobs, after all have ended.

    Rings that killed processes of this host left in memory are moved beside their trace; the first of several
    jobs is moved into a folder of its own.
    """
    folders = jobs(directory)
    alive = False
    for job in folders:
        for memory in _left_in_memory(job):
            alive = _live(memory) or alive
            if not _live(memory):
                _move(memory, job / memory.name)
    if len(folders) > 1 and folders[0] == directory and not alive:
        _set_apart(directory)
        folders[0] = directory / FIRST
    return folders


def _left_in_memory(job: Path) -> Iterator[Path]:
    """Folders that the first lines of the ranks name, where they are still there."""
    for lines in job.glob("rank-*.jsonl"):
        with contextlib.suppress(OSError, ValueError, KeyError), lines.open(errors="replace") as file:
            first: Any = json.loads(file.readline())
            memory = Path(str(first["memory"]))
            if memory.name.startswith(_FRONT) and memory.is_dir() and memory.stat().st_uid == os.getuid():
                yield memory


def _live(memory: Path) -> bool:
    """Whether the process still holds its lock (lib/trace/memory_folder.hpp)."""
    try:
        with (memory / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _move(memory: Path, place: Path) -> None:
    try:
        shutil.copytree(memory, place, ignore=shutil.ignore_patterns("lock"))
    except (OSError, shutil.Error):
        shutil.rmtree(place, ignore_errors=True)  # they stay in memory, where the merge finds them
        return
    shutil.rmtree(memory, ignore_errors=True)


def _set_apart(directory: Path) -> None:
    (directory / FIRST).mkdir()
    for pattern in ("rank-*", f"{_FRONT}*", "agreement", "job.json"):
        for path in list(directory.glob(pattern)):
            path.rename(directory / FIRST / path.name)


_NAMES = ("otf2", "open-trace-format2")
"""Of the otf2_library_name: OTF2's own, and Debian's."""


def otf2_library_name() -> str:
    """The name of libotf2, installed now where ./elbowroom can. UsageError where it is not installed."""
    for _ in range(2):
        for name in _NAMES:
            path = ctypes.util.find_library(name)
            if path is not None:
                return path
        if not native.install("libotf2-trace-dev"):
            break
    raise UsageError(
        "needs libotf2, which is not installed",
        field="trace",
        value="OTF2",
        hint="install libotf2-trace-dev (Debian, Ubuntu) or OTF2, or give the trace in another format",
    )


class EventsReader(NamedTuple):
    """The program that reads a trace into columns (lib/events), and its options."""

    program: Path
    options: tuple[str, ...] = ()

    @contextmanager
    def start(self, path: Path) -> Iterator[Callable[[], IO[bytes]]]:
        """Starts it; the function waits for it and gives the file, on disk, that it wrote; an empty one where
        it declined the trace. A pipe is read as its standard input. MachineError where the disk is full.
        """
        source: Any = subprocess.DEVNULL
        with contextlib.ExitStack() as open_:
            if not path.is_file():
                source, path = open_.enter_context(open(path, "rb")), Path("-")
            out = open_.enter_context(tempfile.TemporaryFile(prefix="elbowroom-events-"))
            words = [str(self.program), *self.options, str(path)]
            process = processes.start(
                words, field="json-events", hint="try again", stdin=source, stdout=out, stderr=subprocess.PIPE
            )
            open_.callback(_stop, process)

            def wait() -> IO[bytes]:
                _, errors = process.communicate()
                if process.returncode == 1 and os.strerror(errno.ENOSPC).encode() in errors:
                    raise no_space("the events of the trace")
                out.seek(0)
                return out

            yield wait

    @contextmanager
    def __call__(self, path: Path) -> Iterator[IO[bytes]]:
        """What it writes."""
        with self.start(path) as wait:
            yield wait()


def json_reader(*paths: Path) -> EventsReader | None:
    """What reads large traces in JSON, or a pipe; None for smaller ones, which are read before the program is
    built, and where it cannot be built.
    """
    size = sum(_size_of(path) for path in paths)
    if size < LARGE_JSON:
        return None
    try:
        return EventsReader(build.json_events())
    except MachineError:
        if not all(path.is_file() for path in paths):
            raise
        return None


def _size_of(path: Path) -> int:
    """Bytes of JSON, about."""
    if not path.is_file():
        return LARGE_JSON
    return path.stat().st_size * (PACKED if path.suffix == ".gz" else 1)


def perfetto_reader() -> EventsReader:
    """What reads traces of Perfetto. MachineError where it cannot be built."""
    return EventsReader(build.json_events(), ("--perfetto",))


def otf2_reader(anchor: Path) -> EventsReader | None:
    """What reads large archives; None for smaller ones, which are read before the program is built, and where
    it cannot be built.
    """
    if sum(one.stat().st_size for one in anchor.with_suffix("").glob("*.evt")) < LARGE_OTF2:
        return None
    try:
        return EventsReader(build.otf2_events())
    except MachineError:
        return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


@contextmanager
def otf2_records(archive: Path) -> Iterator[IO[bytes]]:
    """What the archive holds (trace.overlap.otf2 reads it), from a process that reads it by
    trace.overlap.otf2_library. UsageError as `otf2_library_name`, MachineError if the process cannot be
    started. The archive may end the process early: the stream ends then.
    """
    # -I: without the folders of the user's own modules; the program needs Python's alone.
    words = [sys.executable, "-I", str(otf2_library.__file__), otf2_library_name(), str(archive)]
    with _reading(words, "otf2") as stream:
        yield stream


@contextmanager
def _reading(words: Sequence[str], field: str) -> Iterator[IO[bytes]]:
    """The output of a program that reads a trace; it ends when the stream is no longer read."""
    process = processes.start(
        words,
        field=field,
        hint="try again",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
