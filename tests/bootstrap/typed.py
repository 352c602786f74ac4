"""Types every console line of README and docs/guide, page by page, each page in a folder of its own.

    python3 tests/bootstrap/typed.py [--log FILE] [--without REGEX] [PAGE...]

Started by typed.sh in a bare Debian root, as a user who may not write the checkout. Programs, files, hosts
and schedulers of a reader are stand-ins (tests/console_lines.py). A line fails with another exit code than 0
or 3, or where it writes nothing for more than SILENT seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from console_lines import (  # noqa: E402
    BUDGET,
    Line,
    created,
    lines,
    reason_not_to_type,
    saved_files,
    typed,
    unavailable,
)  # fmt: skip

LIMIT = 600
"""Seconds for one line, of which each is as many on a machine where processes wait for cores."""
MOST = 5
"""A budget is at most so many times as long on a busy machine."""
SILENT = 4.0
"""Seconds without output: 2 and as many for a machine that is busy, more where processes wait for cores."""

APP = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* Steps of some milliseconds that compute and then exchange 1 MiB with a neighbour. */
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = 1 << 17;
  double *a = calloc(count, 8), *b = calloc(count, 8), sum = 0, begun = MPI_Wtime();
  for (int step = 0; step < 40; ++step) {
    for (int round = 0; round < 20; ++round)
      for (int i = 0; i < count; ++i) a[i] = 0.5 * a[i] + b[i] + round;
    MPI_Sendrecv(a, count, MPI_DOUBLE, (rank + 1) % size, 0, b, count, MPI_DOUBLE,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(a, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("GFlop/s: %.3f\nstep %.6f s\n", 40.0 * 20 * count * 2e-9 / (MPI_Wtime() - begun),
                        (MPI_Wtime() - begun) / 40);
  MPI_Finalize();
}
"""
APPS = """
cores = 2
nodes = 1
number = 'step ([0-9.]+) s'
[apps.FT]
command = "mpirun -n {ranks} ./ft"
[apps.CG]
command = "mpirun -n {ranks} ./cg"
"""
COLLECTIVE = """
[collective]
operation = "allreduce"
size = "1MiB"
"""
PREPARE = (
    "$CHECKOUT/.elbowroom/venv/bin/python $CHECKOUT/tests/made_overlap.py profile.json",
    "for name in before after; do elbowroom trace overlap profile.json --json > $name.json; done",
    "mpicc -O2 app.c -o app && cp app ft && cp app cg && cp app ep",
    "elbowroom run model --machine henri --out runs/henri --no-report",
    "elbowroom run quick --machine henri --out runs/quick --no-report",
    "elbowroom run quick --machine henri --seed 1 --out runs/before --no-report",
    "elbowroom run quick --machine henri --seed 2 --out runs/after --no-report",
    "elbowroom run model --machine henri --seed 2 --out runs/again --no-report",
    "elbowroom run sizes --machine henri --out runs/sizes --no-report",
    "elbowroom fit runs/henri -o henri.json && cp henri.json M.json",
    "elbowroom export runs/henri --format curves -o curves.csv",
    "elbowroom machine show henri --toml > mine.toml",
    "for name in ft cg ep; do elbowroom profile -o $name.prof -- mpirun -n 2 ./$name; done; cp -r ft.prof p",
    "elbowroom trace record -o t -- mpirun -n 2 ./app",
    "elbowroom run sizes --kernels triad --sizes 1MiB --budget 30s --trace --out run || [ $? = 3 ]",
)
"""What a reader has: programs, runs, models, profiles and a trace, made with stand-ins."""


def slowness() -> float:
    """How much longer a command may take here: the processes that are ready to run for each core."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Outcome(NamedTuple):
    """What a line did: its exit code, seconds, the longest silence, and what it printed last."""

    code: int
    seconds: float
    silence: float
    output: str


def shell(text: str, folder: Path) -> Outcome:
    """Runs a line as a shell does, and watches its output."""
    begun = last = time.monotonic()
    silence, output = 0.0, b""
    process = subprocess.Popen(
        ["bash", "-c", text],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 1.0)
        now = time.monotonic()
        if ready:
            data = os.read(process.stdout.fileno(), 1 << 16)
            silence, last = max(silence, now - last), now
            output = (output + data)[-20_000:]
            if not data:
                break
        elif now - begun > LIMIT * slowness():
            os.killpg(process.pid, 9)
    return Outcome(process.wait(), time.monotonic() - begun, silence, output.decode(errors="replace"))


def prepared(home: Path) -> Path:
    """The folder with a reader's files, made once."""
    folder = home / "prepared"
    if not folder.exists():
        folder.mkdir()
        for name in ("docs", "machines", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "app.c").write_text(APP)
        shutil.copy(ROOT / "docs" / "guide" / "job.toml", folder)
        (folder / "apps.toml").write_text(APPS)
        (folder / "collective.toml").write_text((folder / "job.toml").read_text() + COLLECTIVE)
        (folder / "load.toml").write_text(first_toml_block(ROOT / "docs" / "guide" / "predict.md"))
        for text in PREPARE:
            done = shell(text, folder)
            if done.code:
                print(f"could not be prepared: {text}\n{done.output[-600:]}", flush=True)
    return folder


def page_of(name: str) -> Path:
    """The file of a page."""
    return ROOT / name if name == "README.md" else ROOT / "docs" / "guide" / name


def first_toml_block(page: Path) -> str:
    """What a page shows as a file."""
    found = re.search(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return found[1] if found else ""


def remove(path: Path) -> None:
    """What a line of the page makes itself."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def type_line(line: Line, folder: Path) -> tuple[str, Outcome]:
    """The line as it was typed; with a longer budget where it says that it needs one, and on a machine where
    processes wait for cores.
    """
    budget = round(BUDGET * min(slowness(), MOST))
    text = typed(line, budget)
    done = shell(text, folder)
    longer = re.search(r"give at least (\d+) ?(s|min)", done.output)
    if done.code == 2 and longer and "--budget" in text:
        seconds = int(longer[1]) * (60 if longer[2] == "min" else 1)
        text = typed(line, seconds + 5) if f"--budget {budget}s" in text else text
        done = shell(text, folder)
    return text, done


def verdict(line: Line, done: Outcome) -> str:
    """What is wrong with an outcome; empty where nothing is."""
    lacking = unavailable(line)
    if lacking and done.code == 2:
        return ""
    if done.code not in (0, 3):
        return f"exit code {done.code}"
    return f"silent for {done.silence:.1f} s" if done.silence > SILENT * slowness() else ""


def main() -> int:
    """Types the lines; 1 where one failed."""
    parser = argparse.ArgumentParser(description="Types the console lines of README and docs/guide.")
    parser.add_argument("--log", default="typed.log", help="a line for each console line, and what failed")
    parser.add_argument("--without", metavar="REGEX", help="leave the lines out that match")
    parser.add_argument("pages", nargs="*", help="only these pages: README.md trace.md")
    options = parser.parse_args()
    home = Path.home()
    # A reader has as many cores as the lines name ranks.
    os.environ.update(CHECKOUT=str(ROOT), OMPI_MCA_rmaps_base_oversubscribe="1")
    os.environ["PATH"] = f"{ROOT}:{os.environ['PATH']}"
    source = prepared(home)
    failed = typed_lines = 0
    with open(options.log, "w", encoding="utf-8") as log:
        chosen = [line for line in lines(ROOT) if not options.pages or line.page in options.pages]
        if options.without:
            chosen = [line for line in chosen if not re.search(options.without, line.text)]
        for page in dict.fromkeys(line.page for line in chosen):
            own = [line for line in chosen if line.page == page]
            folder = home / f"on-{page}"
            shutil.copytree(source, folder, symlinks=True)
            for name in {name for line in own for name in created(line)}:
                remove(folder / name)
            (folder / "elbowroom").symlink_to(ROOT / "elbowroom")
            for name, text in saved_files(page_of(page)).items():
                (folder / name).write_text(text)
            heading = ""
            for line in own:
                if line.heading != heading:
                    heading = line.heading
                    print(f"## {heading}", file=log, flush=True)
                reason = reason_not_to_type(line)
                if reason:
                    print(f"-    {page}:{line.number} {line.text}: {reason}", file=log, flush=True)
                    continue
                text, done = type_line(line, folder)
                wrong = verdict(line, done)
                typed_lines += 1
                failed += bool(wrong)
                head = f"{'FAIL' if wrong else 'ok  '} {page}:{line.number} {done.seconds:.0f} s {text}"
                print(head, f": {wrong}" if wrong else "", file=log, flush=True)
                print(head, f": {wrong}" if wrong else "", flush=True)
                shown = done.output[-1500:] if wrong or done.code else "\n".join(done.output.split("\n")[-4:])
                print("      " + shown.strip("\n").replace("\n", "\n      "), file=log, flush=True)
        print(f"{typed_lines} lines typed, {failed} failed", file=log)
    print(f"{typed_lines} lines typed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
