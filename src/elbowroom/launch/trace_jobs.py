"""The jobs in a trace's directory: one for each MPI_COMM_WORLD, or process, that recorded into it.

The first job has the directory itself, the next ones job-2, job-3 ... inside it (lib/trace/job_folder.hpp).
Once all have ended, several jobs are all in folders of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    words = [command_of(job), f"{ranks} rank{'s' if ranks != 1 else ''}"]
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
