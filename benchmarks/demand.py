"""Pairs of programs on this machine's memory and cache: predicted from the demand of each, then measured.

    python benchmarks/demand.py FOLDER [--repeat N] [--programs ep,cg] [--seconds S] [--json]

Eight mini-kernels whose working sets go from a first-level cache to several last-level ones, and four
programs of the zoo with the structure of real ones, one rank each. The demand of each is measured beside a
known load, and all pairs are predicted by the rule of docs/reference/demand.md, which was frozen on the
day that the output names. Only then are the pairs measured. FOLDER keeps all; where the command is
stopped, the same command continues.

Exit code 1 where a bar is missed: a mean error of 5 %, a rank correlation of 0.9, and a regret of 1 % or
that of the measurement, if one half of it chooses the pairs for the other. A quarter of an hour on a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from command import Command, status

from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.launch.build import application
from elbowroom.launch.mpi import find_mpi
from elbowroom.measure.demand import SETTINGS, host_bench, loads_beside_loads, measure_demand
from elbowroom.measure.timed_commands import last_number
from elbowroom.models.demand import DEMAND, Demand, LoadBesideLoad, predicted_slowdown
from elbowroom.schedule.measured import agreement
from elbowroom.schedule.pairing import match, mean_of, random_mean

FROZEN = "2026-11-28"
"""The day from which on the rule of models/demand.py has not changed."""
KIB, MIB = 1 << 10, 1 << 20
KERNELS = {
    "ep": 16 * KIB, "lu": 512 * KIB, "sp": 4 * MIB, "bt": 12 * MIB, "mg": 20 * MIB, "is": 28 * MIB,
    "cg": 64 * MIB, "ft": 192 * MIB,
}  # fmt: skip
"""Bytes of the working set of each mini-kernel."""
ZOO = {"nas_cg": 1500000, "hpcg": 150, "minimd": 200000, "fft": 0}
"""Sizes of the zoo's programs (`bytes=`; 0: their own)."""
SOURCES = Path(__file__).parents[1] / "tests" / "zoo"
KERNEL_STEPS = 4
NOISY = 2.0
"""Times the noise of the measurement from which on a loss is one."""
MOST_ERROR, LEAST_RANKS, MOST_REGRET = 5.0, 0.9, 1.0
PERCENT = 100.0
STOPPED = 130
TELL: Callable[[str], object] = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and the pattern that finds its seconds."""

    words: tuple[str, ...]
    metric: str


class PairTime(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of `a` and `b` beside each other, or of `a` alone (b empty)."""

    repetition: int
    a: str
    b: str
    first: float
    second: float
    when: str


def run(words: Sequence[str], cores: Sequence[int]) -> str:
    """What a program prints on these cores."""
    pinned = ("taskset", "-c", ",".join(map(str, cores)), *words)
    done = subprocess.run(pinned, capture_output=True, text=True, env={**os.environ, **SETTINGS}, check=False)
    if done.returncode:
        raise MachineError(f"failed: {done.stderr.strip()[-300:]}", field="command", value=" ".join(words))
    return done.stdout


def seconds_of(program: Program, cores: Sequence[int]) -> float:
    value = last_number(program.metric, run(program.words, cores))
    if value is None:
        raise MachineError("printed no time", field="command", value=" ".join(program.words))
    return value


def programs(folder: Path, names: Sequence[str], seconds: float, cores: Sequence[int]) -> dict[str, Program]:
    """The programs, each with as much work as takes `seconds` alone; kept in FOLDER."""
    path = folder / "programs.json"
    if path.exists():
        kept = msgspec.json.decode(path.read_bytes(), type=dict[str, Program])
        return {name: kept[name] for name in names}
    found = {}
    for name in names:
        TELL(f"sizing {name}")
        if name in KERNELS:
            words = (
                str(application("elbow_minikernel", find_mpi())), name, "--steps", str(KERNEL_STEPS),
                "--size", "64", "--compute", "work", "--working-set", str(KERNELS[name]),
                "--seconds-per-step", f"{seconds / KERNEL_STEPS:g}",
            )  # fmt: skip
            rate = json.loads(run(words, cores))["rate"]
            found[name] = Program(words=(*words, "--rate", f"{rate:.6g}"), metric=r'"seconds":([0-9.e+-]+)')
        else:
            words = (str(built(folder, name)), *((f"bytes={ZOO[name]}",) if ZOO[name] else ()))
            step = json.loads(run((*words, "steps=3"), cores))["step_s"]
            steps = max(3, round(seconds / step))
            found[name] = Program(words=(*words, f"steps={steps}"), metric=r'"step_s": ([0-9.e+-]+)')
    path.write_bytes(msgspec.json.encode(found))
    return found


def built(folder: Path, name: str) -> Path:
    """A program of the zoo."""
    path = folder / name
    compiler = Path(find_mpi().compiler)
    wrapper = compiler.with_name(compiler.name.replace("mpicxx", "mpicc"))
    words = (str(wrapper), "-O2", "-o", str(path), str(SOURCES / f"{name}.c"), "-lm")
    subprocess.run(words, check=True, capture_output=True)
    return path


def demands(folder: Path, chosen: dict[str, Program], repetitions: int) -> dict[str, Demand]:
    """The demand of each program, measured unless it is there."""
    found = {}
    for name, program in chosen.items():
        path = folder / f"demand-{name}.json"
        if not path.exists():
            TELL(f"the demand of {name}")
            with host_bench(program.words, metric=program.metric) as bench:
                beside = loads(folder, bench)
                demand = measure_demand(bench, repetitions=repetitions, loads=beside, tell=TELL)
            DEMAND.write(path, demand)
        found[name] = DEMAND.read(path)
    return found


def loads(folder: Path, bench: Any) -> list[LoadBesideLoad]:
    """What the load loses beside itself: the same for all programs."""
    path = folder / "loads.json"
    if not path.exists():
        path.write_bytes(msgspec.json.encode(loads_beside_loads(bench)))
    return msgspec.json.decode(path.read_bytes(), type=list[LoadBesideLoad])


def predictions(folder: Path, found: dict[str, Demand]) -> dict[str, Any]:
    """Percent of each program (column) beside each (row), written before any pair is measured."""
    path = folder / "predicted.json"
    if not path.exists():
        names = list(found)
        table = [[PERCENT * predicted_slowdown(found[a], found[b]).value for a in names] for b in names]
        record = {"rule": FROZEN, "written": now(), "programs": names, "percent": table}
        path.write_text(json.dumps(record, indent=1))
    record = json.loads(path.read_text())
    if record["programs"] != list(found):
        raise MachineError("was predicted for other programs", field="folder", value=str(folder))
    return dict(record)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def measured(
    folder: Path, chosen: dict[str, Program], places: Sequence[Sequence[int]], repetitions: int
) -> list[PairTime]:
    """Every program alone, and all pairs, in random order in each repetition."""
    path = folder / "pairs.jsonl"
    kept = path.read_bytes().splitlines() if path.exists() else []
    lines = [msgspec.json.decode(line, type=PairTime) for line in kept]
    done = {(line.repetition, line.a, line.b) for line in lines}
    names = list(chosen)
    for repetition in range(repetitions):
        turns = [(a, "") for a in names] + [(a, b) for i, a in enumerate(names) for b in names[i:]]
        random.Random(repetition).shuffle(turns)
        for number, (a, b) in enumerate(turns):
            if (repetition, a, b) in done:
                continue
            if number % 10 == 0:
                TELL(f"repetition {repetition}: {number} of {len(turns)} runs")
            if b:
                first, second = beside(chosen[a], chosen[b], places)
            else:
                first, second = seconds_of(chosen[a], places[0]), 0.0
            line = PairTime(repetition=repetition, a=a, b=b, first=first, second=second, when=now())
            lines.append(line)
            with path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
    return [line for line in lines if line.repetition < repetitions]


def beside(a: Program, b: Program, places: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Seconds of both, each started again until both have run once beside the other; the first run of each
    counts, which the other one's cover.
    """
    times: list[list[float]] = [[], []]
    errors: list[ElbowroomError] = []
    ended = [threading.Event(), threading.Event()]

    def loop(which: int, program: Program) -> None:
        try:
            while not errors and not (times[which] and ended[1 - which].is_set()):
                times[which].append(seconds_of(program, places[which]))
                ended[which].set()
        except ElbowroomError as error:
            errors.append(error)
            ended[which].set()

    threads = [threading.Thread(target=loop, args=item) for item in enumerate((a, b))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return times[0][0], times[1][0]


def matrix(names: Sequence[str], lines: Sequence[PairTime]) -> np.ndarray:
    """Percent of each program (column) beside each (row): medians of the repetitions, of a program beside
    itself of both runs.
    """
    alone = {
        name: statistics.median(line.first for line in lines if (line.a, line.b) == (name, ""))
        for name in names
    }
    cells = np.zeros((len(names), len(names)))
    for i, companion in enumerate(names):
        for j, name in enumerate(names):
            values = [line.first for line in lines if (line.a, line.b) == (name, companion)]
            values += [line.second for line in lines if (line.b, line.a) == (name, companion)]
            cells[i, j] = PERCENT * statistics.median(values) / alone[name]
    return cells


def compared(names: Sequence[str], guess: np.ndarray, lines: Sequence[PairTime]) -> dict[str, Any]:
    """Errors and regret, and what the measurement repeated against itself gives."""
    cells = matrix(names, lines)
    found = agreement(guess.ravel().tolist(), cells.ravel().tolist())
    errors = np.abs(guess / cells - 1)
    row, column = np.unravel_index(np.argmax(errors), errors.shape)
    best = mean_of(cells, match(cells))
    parts = [[line for line in lines if line.repetition % 2 == part] or lines for part in (0, 1)]
    halves = [matrix(names, part) for part in parts]
    noise = float(np.median(np.abs(halves[0] - halves[1])))
    lose = np.abs(cells - PERCENT) > NOISY * noise
    itself = agreement(halves[0].ravel().tolist(), halves[1].ravel().tolist())
    own = [
        mean_of(there, match(here)) / mean_of(there, match(there)) - 1
        for here, there in (halves, halves[::-1])
    ]
    return {
        "mean_error": found.mean_error,
        "worst_error": found.worst_error,
        "worst": f"{names[int(column)]} beside {names[int(row)]}",
        "rank_correlation": found.rank_correlation,
        "rank_correlation_of_losses": ranked(guess[lose], cells[lose]),
        "losses": int(lose.sum()),
        "noise": noise,
        "measured_span": [float(cells.min()), float(cells.max())],
        "regret": PERCENT * (mean_of(cells, match(guess)) / best - 1),
        "regret_random": PERCENT * (random_mean(cells) / best - 1),
        "repeated": {
            "mean_error": itself.mean_error,
            "rank_correlation": itself.rank_correlation,
            "regret": PERCENT * float(np.mean(own)),
        },
        "predicted": guess.round(1).tolist(),
        "measured": cells.round(1).tolist(),
    }


def ranked(guess: np.ndarray, cells: np.ndarray) -> float | None:
    """The rank correlation of these; None of fewer than three."""
    return agreement(guess.tolist(), cells.tolist()).rank_correlation if len(guess) > 2 else None


def misses(found: dict[str, Any]) -> list[str]:
    """A sentence for each bar that is missed."""
    wrong, own = [], found["repeated"]
    if found["mean_error"] > MOST_ERROR:
        wrong.append(f"the mean error is {found['mean_error']:.1f} %, above {MOST_ERROR:g}")
    if found["rank_correlation"] is None or found["rank_correlation"] < LEAST_RANKS:
        wrong.append(
            f"the rank correlation is {found['rank_correlation']}, below {LEAST_RANKS:g}; that of the "
            f"measurement with itself is {own['rank_correlation']}"
        )
    if found["regret"] > max(MOST_REGRET, own["regret"]):
        wrong.append(f"the regret is {found['regret']:.2f} %, that of the measurement {own['regret']:.2f}")
    return wrong


def show(names: Sequence[str], found: dict[str, Any]) -> None:
    """Both matrices in one, and the figures."""
    print("% measured (predicted); columns are measured programs, rows companions")
    print(f"{'':7}" + "".join(f"{name:>12}" for name in names))
    for name, cells, guesses in zip(names, found["measured"], found["predicted"], strict=True):
        both = zip(cells, guesses, strict=True)
        print(f"{name:7}" + "".join(f"{cell:6.0f}({guess:4.0f})" for cell, guess in both))
    own = found["repeated"]
    print(f"mean error {found['mean_error']:.2f} %, worst {found['worst_error']:.1f} % ({found['worst']}), "
          f"rank correlation {found['rank_correlation']}, regret {found['regret']:.2f} % (random pairs "
          f"{found['regret_random']:.2f} %)")  # fmt: skip
    print(f"{found['losses']} cells differ from 100 % by more than {NOISY:g} times the noise "
          f"({found['noise']:.1f} %): rank correlation {found['rank_correlation_of_losses']}")  # fmt: skip
    print(f"the measurement against itself: mean error {own['mean_error']:.2f} %, rank correlation "
          f"{own['rank_correlation']}, regret {own['regret']:.2f} %")  # fmt: skip


def answers(options: argparse.Namespace) -> dict[str, Any]:
    """Sizes the programs, measures their demands, predicts, and only then measures the pairs."""
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = options.programs.split(",")
    with host_bench(("true",)) as bench:
        places = bench.facts.cores, bench.facts.load_cores
    started = time.monotonic()
    chosen = programs(folder, names, options.seconds, places[0])
    demand = demands(folder, chosen, options.demand_repeat)
    record = predictions(folder, demand)
    lines = measured(folder, chosen, places, options.repeat)
    found = compared(names, np.array(record["percent"]), lines)
    return {
        "rule_frozen": record["rule"],
        "predictions_written": record["written"],
        "pairs_measured": [min(line.when for line in lines), max(line.when for line in lines)],
        "programs": names,
        "untrusted": [f"{name}: {note}" for name in names for note in demand[name].notes],
        "unresolved": sorted(
            {one.unresolved for name in names for one in demand[name].pressure if one.unresolved}
        ),
        "took_s": round(time.monotonic() - started),
        **found,
    }


def main() -> int:
    parser = Command(
        __doc__.splitlines()[0],
        smoke="{folder} --repeat 1 --demand-repeat 1 --programs ep --seconds 0.02",
    )
    parser.add_argument("folder")
    parser.add_argument("--repeat", type=int, default=2, help="of all pairs")
    parser.add_argument("--demand-repeat", type=int, default=3, help="of each program beside each load")
    parser.add_argument("--programs", default=",".join((*KERNELS, *ZOO)))
    parser.add_argument("--seconds", type=float, default=0.5, help="of a run alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = answers(options)
    except ElbowroomError as error:
        print(f"demand: {error.sentence()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("demand: stopped; the same command continues", file=sys.stderr)
        return STOPPED
    wrong = [*found["untrusted"], *misses(found)]
    if options.json:
        print(json.dumps({**found, "missed": wrong}, indent=1))
    else:
        begin, end = found["pairs_measured"]
        print(f"rule frozen {found['rule_frozen']}, predictions written {found['predictions_written']}, "
              f"pairs measured {begin} to {end}")  # fmt: skip
        show(found["programs"], found)
        for sentence in found["unresolved"]:
            print(f"pressure unknown: {sentence}")
        for sentence in wrong:
            print(f"missed: {sentence}")
    return status(options, wrong)


if __name__ == "__main__":
    sys.exit(main())
