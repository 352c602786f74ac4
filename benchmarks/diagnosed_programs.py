"""`elbowroom diagnose` of programs of tests/zoo whose faults are known, as a user types it, with its output.

    python benchmarks/diagnosed_programs.py [--only WORDS] [--page docs/measured/diagnosed-programs.md]

Each is a complaint, and a launch line: where a changed line helps, `diagnose` measures its gain. Exit code 1:
a gain that the fault allows was not found, or one was claimed where no line helps.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

import zoo_programs  # noqa: E402
from elbowroom.launch.mpi import Mpi, find_mpi  # noqa: E402

WIDTH = 80
FOLDERS = ("profile: ", "page: ", "job: ", "next: ")
"""Lines that name the folder of a run."""
LEAST = 3
PART = re.compile(r"[A-Za-z/ ]+ (\d+\.\d) % \d")
"""A part of a step, with its share."""
GAIN = "Another launch line saves "


class Complaint(NamedTuple):
    """What a user says of a program of the zoo, the launch line, and whether another line helps."""

    text: str
    program: str
    line: str
    helped: bool


COMPLAINTS = (
    Complaint("Two ranks are no faster than one", "stencil.c", "taskset -c 0 ./stencil steps=60", True),
    Complaint(
        "Messages inside the node are slow",
        "stencil.c",
        "--mca btl tcp,self ./stencil bytes=40000 messages=60 steps=100",
        True,
    ),
    Complaint(
        "Many short messages take a third of a step",
        "stencil.c",
        "./stencil bytes=4200 messages=1000 steps=100",
        True,
    ),
    Complaint(
        "Four ranks are slower than two", "stencil.c", "--oversubscribe -n 4 ./stencil steps=60", False
    ),
    Complaint("The exchange takes a sixth of each step", "late_rank.c", "./late_rank steps=80", False),
    Complaint("Is it the messages?", "late_rank.c", "./late_rank steps=80 repaired=1", False),
)


def words_of(complaint: Complaint) -> list[str]:
    """The launch line as it is typed: of two ranks, unless it says otherwise."""
    given = shlex.split(complaint.line)
    options = [] if "-n" in given else ["-n", "2"]
    at = next((i for i, word in enumerate(given) if word.startswith(("./", "taskset"))), 0)
    return ["mpirun", *given[:at], *options, *given[at:]]


def diagnose(complaint: Complaint, mpi: Mpi, folder: Path, options: Sequence[str]) -> str:
    """What `elbowroom diagnose` says on stderr."""
    program = zoo_programs.build(complaint.program, mpi, folder / "programs")[0]
    work = folder / f"work-{COMPLAINTS.index(complaint)}"
    work.mkdir(exist_ok=True)
    link = work / Path(complaint.program).stem
    link.unlink(missing_ok=True)
    link.symlink_to(program)
    problem = zoo_programs.Problem(name="complaint", program=complaint.program, cause="")
    environment = zoo_programs.started_with(problem, mpi, folder, repaired=True)
    path = f"{Path(mpi.launcher).parent}:{environment['PATH']}"
    command = [sys.executable, "-m", "elbowroom", "diagnose", *options, "--", *words_of(complaint)]
    done = subprocess.run(
        command,
        cwd=work,
        capture_output=True,
        text=True,
        env={**environment, "PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1"},
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{shlex.join(command)} ended with exit code {done.returncode}: {done.stderr}")
    return done.stderr.replace(socket.gethostname(), "vm").strip()


def page(said: Sequence[tuple[Complaint, str]], mpi: Mpi, load: float) -> Iterator[str]:
    """Lines of docs/measured/diagnosed-programs.md."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    yield "# Diagnosed programs of the zoo"
    yield ""
    yield "`elbowroom diagnose` of programs of `tests/zoo`, as typed, and what it printed:"
    yield ""
    yield "    python benchmarks/diagnosed_programs.py --page docs/measured/diagnosed-programs.md"
    yield ""
    yield f"Machine: that of [two-core-vm.md](two-core-vm.md), {mpi.name}; commit {commit.stdout.strip()},"
    yield f"load average {load:.1f} at the begin, {time.strftime('%Y-%m-%d')}."
    for complaint, text in said:
        yield ""
        yield f"## {complaint.text}"
        yield ""
        yield f"    elbowroom diagnose -- {shlex.join(words_of(complaint))}"
        yield ""
        yield "<!-- no output: measured as the page says -->"
        yield "```text"
        yield "\n".join(quoted(text)).rstrip()
        yield "```"


def quoted(text: str) -> Iterator[str]:
    """The lines without folders, and `…` for parts of a step below LEAST percent."""
    before = ""
    for line in text.splitlines():
        part = PART.match(line)
        line = "…" if part is not None and float(part[1]) < LEAST else line.rstrip()
        continued = before == "…" and line.startswith(" ")
        if not continued and not line.startswith(FOLDERS) and (line != before or line not in ("", "…")):
            yield line
            before = line


def main() -> int:
    parser = Command(__doc__, smoke="--only exchange --options=--no-try")
    parser.add_argument("--only", default="", help="complaints that this expression finds")
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--options", default="", help="more options of diagnose")
    parser.add_argument("--page", type=Path, help="write the page there")
    chosen = parser.parse_args()
    mpi, load, said, missed = find_mpi(chosen.mpi), os.getloadavg()[0], [], []
    with tempfile.TemporaryDirectory() as folder:
        for complaint in COMPLAINTS:
            if re.search(chosen.only, complaint.text) is None:
                continue
            text = diagnose(complaint, mpi, Path(folder), shlex.split(chosen.options))
            said.append((complaint, text))
            print(f"$ elbowroom diagnose -- {shlex.join(words_of(complaint))}\n{text}\n", flush=True)
            if (GAIN in " ".join(text.split())) != complaint.helped:
                missed.append(complaint.text)
    print("\n".join(f"missed: {text}" for text in missed) or "all as expected")
    if chosen.page is not None:
        chosen.page.write_text("\n".join(page(said, mpi, load)) + "\n", encoding="utf-8")
    return status(chosen, missed)


if __name__ == "__main__":
    sys.exit(main())
