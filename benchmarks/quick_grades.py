"""Whether `elbowroom run quick --budget 30s` answers, and how often its grade is right.

    python benchmarks/quick_grades.py [--budget 30s] [--runs 10] [--placebo 20] [--simulate 2000] [--keep DIR]

Real runs, on this machine as it is:

- a budget that cannot give one point: refused with exit code 2 within 2 s, and the smallest one that it names
  is not refused;
- as it is, and beside a load that this script starts (a process that alternates 100 ms of memory traffic and
  100 ms of sleep): every run has a grade other than `cannot say`;
- placebo: the probe measures A, B, A, B in place of A, B, AB; the second A and B stand for what happens
  together. Nothing ever runs together, so the truth is a loss of 0 in the real noise of this machine: `yes`
  in at most one of 20;
- planted: the same, with the second B multiplied by 0.7 before it is stored: the communication loses 30 %.
  `yes` or `likely` in nine of ten.

A run prints a line with the load average, its grade, the losses and the smallest visible one. `--simulate`
then counts grades of made-up runs without this machine: 14 sides in 3 to 10 repetitions, five kinds of noise,
without a loss and with one of 30 % on the main point's communication. Goal: `yes` without a loss in at most
5 %.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from command import Command, status
from numpy.typing import NDArray

import elbowroom
from elbowroom.measure import campaign
from elbowroom.quantities import parse_duration
from elbowroom.results.grades import assess
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Side
from elbowroom.stats.summary import kept as kept_of

PLANTED = 0.3
REFUSED_S = 2.0
SURE = ("yes", "likely")


class Counted(NamedTuple):
    """One line of the table of real runs."""

    name: str
    good: int
    runs: int
    least: int
    what: str


def planted(loss: float) -> None:
    """From now on the probe measures each side twice alone, and the second time stands for both together; the
    communication then loses that share.
    """
    program_for = campaign.Loop.program_for

    class Alone:
        """The program that answers, asked for other phases."""

        def __init__(self, program: Any) -> None:
            self._program = program

        def ask(self, unit: Any, message: dict[str, Any], patience: float) -> dict[str, Any]:
            if "AB" not in message["sequence"]:
                return self._program.ask(unit, message, patience)
            answer = self._program.ask(unit, message | {"sequence": ["A", "B", "A", "B"]}, patience)
            if answer.get("record") == "repetition":
                answer["phases"] = [*answer["phases"][:2], together(*answer["phases"][2:], loss)]
            return answer

        def __getattr__(self, name: str) -> Any:
            return getattr(self._program, name)

    campaign.Loop.program_for = lambda *words: Alone(program_for(*words))  # type: ignore[method-assign]


def together(comp: dict[str, Any], comm: dict[str, Any], loss: float) -> dict[str, Any]:
    """A phase AB made of a phase A and a phase B, of which the communication loses that share."""
    part = 1 / (1 - loss) if comm["comm"]["unit"] == "us" else 1 - loss
    lost = comm["comm"] | {
        "value": comm["comm"]["value"] * part,
        "batches": [value * part for value in comm["comm"].get("batches", ())],
    }
    worst = comm["status"] if comp["status"] == "ok" else comp["status"]
    flags = sorted({*comp["flags"], *comm["flags"]})
    seconds = comp["measured_s"] + comm["measured_s"]
    return comm | {
        "phase": "AB", "index": 2, "comp": comp["comp"], "comm": lost, "status": worst, "flags": flags,
        "start_ns": comp["start_ns"], "measured_s": seconds,
    }  # fmt: skip


def run_once(out: Path, options: argparse.Namespace, loss: float | None = None) -> tuple[int, str]:
    """Runs the command, or a planted run, in a process of its own; its exit code and what it printed."""
    words = [sys.executable, "-m", "elbowroom", "run", "quick", "--no-open"]
    if loss is not None:
        words = [sys.executable, __file__, "--planted-run", str(loss)]
    words += ["--budget", options.budget, "--out", str(out)]
    words += ["--machine", options.machine] if options.machine else []
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def refusal(options: argparse.Namespace, folder: Path) -> Counted:
    """Whether a budget of 3 s is refused in time, and the smallest one that the message names is not."""
    short = argparse.Namespace(budget="3s", machine=options.machine)
    begun = time.monotonic()
    code, said = run_once(folder / "short", short)
    seconds = time.monotonic() - begun
    smallest = said.partition("give at least ")[2].split()[0] if "give at least " in said else ""
    print(f"budget 3s: exit code {code} in {seconds:.1f} s, smallest {smallest or 'not named'}", flush=True)
    good = int(code == 2 and seconds <= REFUSED_S and bool(smallest))
    if smallest:
        again = argparse.Namespace(budget=smallest, machine=options.machine)
        code, _ = run_once(folder / "smallest", again)
        print(f"budget {smallest}: exit code {code}", flush=True)
        good += int(code in (0, 3))
    return Counted("refusal", good, 2, 2, "refused in time; the smallest is not")


def runs(
    name: str, count: int, options: argparse.Namespace, folder: Path, loss: float | None = None
) -> list[str]:
    """The grades of so many runs, a line for each; `refused` of a run that has none."""
    grades = []
    for number in range(count):
        out = folder / f"{name}-{number}"
        load = os.getloadavg()[0]
        code, said = run_once(out, options, loss)
        if code not in (0, 3):
            print(f"{name} {number}: exit code {code}: {said.strip()[-200:]}", flush=True)
            grades.append("refused")
            continue
        run = elbowroom.open(out)
        verdict = run.verdict
        losses = [
            "-"
            if side is None or side.low is None
            else f"{side.loss:.0%} ({side.low:.0%} to {side.high:.0%})"
            for side in (verdict.comp, verdict.comm)
        ]
        visible = "-" if verdict.visible is None else f"{verdict.visible:.0%}"
        print(
            f"{name} {number}: load {load:.1f}, exit code {code}, {verdict.grade}: comp {losses[0]}, comm "
            f"{losses[1]}, visible {visible}",
            flush=True,
        )
        grades.append(verdict.grade)
    return grades


@contextlib.contextmanager
def loaded() -> Iterator[None]:
    """Beside memory traffic that comes and goes on the communication's core of a small machine."""
    script = Path(__file__).with_name("quick.py")
    with subprocess.Popen([sys.executable, str(script), "--neighbour", "--core", "0"]) as process:
        try:
            yield
        finally:
            process.kill()


def real(options: argparse.Namespace, folder: Path) -> list[Counted]:
    """All real runs."""
    counted = [] if options.machine else [refusal(options, folder)]
    whole, most = options.runs, options.placebo

    def count(grades: list[str], *good: str) -> int:
        print(dict(Counter(grades)), flush=True)
        return sum(grade in good for grade in grades)

    graded = ("yes", "likely", "no", "at most")
    counted.append(
        Counted("as it is", count(runs("as-it-is", whole, options, folder), *graded), whole, whole, "graded")
    )
    with loaded():
        grades = runs("loaded", whole, options, folder)
    counted.append(Counted("loaded", count(grades, *graded), whole, whole, "graded"))
    grades = runs("planted", whole, options, folder, PLANTED)
    counted.append(
        Counted("planted 30 %", count(grades, *SURE), whole, math.ceil(0.9 * whole), "yes or likely")
    )
    grades = runs("placebo", most, options, folder, 0.0)
    quiet = count(grades, *(grade for grade in set(grades) if grade not in ("yes", "refused")))
    counted.append(Counted("placebo", quiet, most, math.ceil(0.95 * most), "not yes"))
    return counted


NOISES = ("normal", "heavy tails", "half speed", "bursts", "drift")


def phases(noise: str, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """ln of what phases A, B, AB reach, relative to the truth: shape (..., repetitions, 3)."""
    if noise == "normal":
        return rng.normal(0, 0.05, shape)
    if noise == "heavy tails":
        return 0.05 * rng.standard_t(2, shape)
    if noise == "half speed":
        return rng.normal(0, 0.03, shape) - math.log(2) * (rng.random(shape) < 0.2)
    if noise == "drift":
        return rng.normal(0, 0.05, shape) + 0.01 * np.arange(shape[-2] * 3).reshape(shape[-2], 3)
    # A neighbour that comes and goes: each phase remembers most of what was before it.
    steps = 0.05 * rng.standard_t(3, (*shape[:-2], shape[-2] * 3))
    for phase in range(1, steps.shape[-1]):
        steps[..., phase] += 0.8 * steps[..., phase - 1]
    return steps.reshape(shape)


def simulated_run(base: PointResult, logs: NDArray[np.float64]) -> str:
    """The grade of points whose phases reached that much: shape (points, 2, repetitions, 3)."""
    points = []
    for size, sides in enumerate(np.exp(logs), start=1):
        made = [
            Side(
                kept=kept_of(
                    {number: [float(phase[0])] for number, phase in enumerate(side)},
                    {number: [float(phase[2])] for number, phase in enumerate(side)},
                )
            )
            for side in sides
        ]
        made = [msgspec.structs.replace(base.comp, kept=side.kept) for side in made]
        points.append(msgspec.structs.replace(base, id=f"p{size}", size=10**size, comp=made[0], comm=made[1]))
    found = assess(points)
    return "none" if found is None else found.grade


def simulate(count: int, base: PointResult) -> bool:
    """Prints a line for each noise and number of repetitions; whether `yes` was rare without a loss."""
    print(
        f"\nsimulated, {count} runs each: yes and likely without a loss; yes, and yes or likely, of a 30 % "
        "loss"
    )
    good = True
    for noise in NOISES:
        for repetitions in (3, 4, 5, 6, 8, 10):
            rng = np.random.default_rng([len(noise), repetitions])
            grades: dict[bool, Counter[str]] = {}
            for loss in (False, True):
                grades[loss] = Counter()
                for _ in range(count if not loss else max(1, count // 4)):
                    logs = phases(noise, rng, (7, 2, repetitions, 3))
                    logs[-1, 1, :, 2] += math.log(1 - PLANTED) * loss
                    grades[loss][simulated_run(base, logs)] += 1
            none, lost = (
                {name: made[name] / made.total() for name in SURE} for made in (grades[False], grades[True])
            )
            # Three standard errors, so that a right test is not called wrong by chance.
            good &= none["yes"] <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)
            print(
                f"{noise:12} {repetitions:3} repetitions: {none['yes']:6.1%} {none['likely']:6.1%}   "
                f"{lost['yes']:6.1%} {lost['yes'] + lost['likely']:6.1%}",
                flush=True,
            )
    return good


def base_point() -> PointResult:
    """A point of a virtual run, of which all but what its sides kept is used."""
    with tempfile.TemporaryDirectory() as folder:
        run = elbowroom.run("quick", machine="henri", repeat=1, out=Path(folder) / "base")
        return next(point for point in run.points() if point.role != "control" and point.kernel == "triad")


def main() -> int:
    parser = Command(__doc__, smoke="--machine henri --runs 1 --placebo 1 --simulate 4")
    parser.add_argument("--budget", default="30s")
    parser.add_argument("--runs", type=int, default=10, help="as it is, loaded and planted, each")
    parser.add_argument("--placebo", type=int, default=20)
    parser.add_argument("--simulate", type=int, default=2000, help="made-up runs of each kind; 0: none")
    parser.add_argument("--machine", default="", help="a virtual machine in place of this one")
    parser.add_argument("--keep", type=Path, help="folder for the runs")
    parser.add_argument("--planted-run", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.planted_run is not None:
        planted(options.planted_run)
        machine = {"machine": options.machine} if options.machine else {}
        run = elbowroom.run(
            "quick", budget=parse_duration(options.budget, "budget"), out=options.out, **machine
        )
        return 0 if run.verdict.trusted else 3
    counted: list[Counted] = []
    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or Path(folder)
        if options.runs or options.placebo:
            counted = real(options, keep)
    right = simulate(options.simulate, base_point()) if options.simulate else True
    missed = [line for line in counted if line.good < line.least]
    print()
    for line in counted:
        mark = "MISSED" if line in missed else ""
        print(f"{line.name:14} {line.good:3} of {line.runs} {line.what} (goal {line.least}) {mark}".rstrip())
    print(json.dumps([line._asdict() for line in counted]))
    return status(options, missed or not right)


if __name__ == "__main__":
    sys.exit(main())
