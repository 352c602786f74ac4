"""All pairs of the eight mini-kernels behind an emulated NIC: measured, and predicted from profiles of each
alone.

    python benchmarks/pairs.py FOLDER [--repeat N] [--kernels ft,cg] [--compute sleep|work] [--measure]
                               [-o matrix.svg] [--json]

Nodes are emulated (docs/reference/nic.md): four of two cores, or eight of which a job has one core each. The
kernels sleep where they would compute: more ranks than cores can run, and nothing but the NIC is shared. With
`--compute work` they compute, as the NAS benchmarks do: two jobs need 16 cores.
FOLDER keeps profiles, times and the matrix: where the command is stopped, the same command continues.

Two settings are compared: with half of the cores on twice the nodes against all cores, as on the slides of
Koop, Luo and Panda, and with the same ranks on the same nodes alone and together. Exit code 1 where a bar is
missed: a mean error of 5 %, a rank correlation of 0.9, a regret of 1 % and less than half of random pairs';
a quarter of an hour on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from command import Command, status
from matrix_estimates import scalar_model

from elbowroom.api import record_profile
from elbowroom.draw.files import save_panels
from elbowroom.errors import ElbowroomError
from elbowroom.launch.build import application
from elbowroom.launch.mpi import find_mpi
from elbowroom.measure.colocation_commands import nic_settings
from elbowroom.measure.timed_commands import JOURNAL
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.forecast import forecast
from elbowroom.profile.profile import read_profile
from elbowroom.profile.summary import MANIFEST_FILE
from elbowroom.schedule.applications import Applications, Mode
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.measured import MeasuredMatrix, agreement
from elbowroom.schedule.pairing import match, matrix_figure, mean_of, random_mean
from elbowroom.verbs.colocate_measure import measure_pairs, read_applications

KERNELS = {
    "ep": (10, 8, 0.2),
    "cg": (2, 524288, 0.025),
    "ft": (6, 327680, 0.2),
    "is": (13, 163840, 0.08),
    "mg": (7, 131072, 0.2),
    "lu": (5, 10240, 0.4),
    "bt": (9, 131072, 0.2),
    "sp": (10, 81920, 0.1),
}
"""Steps, bytes of the largest message, and seconds of computation in a step."""

CORES, NODES = 2, 4
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BANDWIDTH = "25MB/s"
BURST = 4096
"""Bytes that an idle NIC passes on at once. A NIC of hardware sends a message at its bandwidth, too."""
OFFSETS = 48
MOST_ERROR, LEAST_RANKS, MOST_REGRET = 5.0, 0.9, 1.0
TOGETHER = {"half": "half of the cores against all", "ranks": "the same ranks, together against alone"}
PERCENT = 100.0


def rate_alone(words: list[str]) -> float:
    """Elements/s that a rank computes in one step without another job: what is work beside one, too."""
    done = subprocess.run(words, env={**os.environ, **ROOT}, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["rate"])


def applications(folder: Path, kernels: list[str], bandwidth: str, nodes: int, compute: str) -> Path:
    """Writes the file of applications that `colocate measure` takes."""
    mpi = find_mpi()
    program = application("elbow_minikernel", mpi)
    lines = [
        f"cores = {CORES}", f"nodes = {nodes}", """number = '"seconds":([0-9.]+)'""", "", "[nic]",
        f'bandwidth = "{bandwidth}"', "", "[env]", *(f'{name} = "{value}"' for name, value in ROOT.items()),
        f'OMPI_MCA_mpi_yield_when_idle = "{int(compute == "sleep")}"', f'ELBOW_NIC_BURST = "{BURST}"',
    ]  # fmt: skip
    for name in kernels:
        steps, size, seconds = KERNELS[name]
        start = f"{mpi.launcher} -n {{ranks}} --bind-to none --oversubscribe {program} {name} --size {size}"
        start += f" --seconds-per-step {seconds} --compute {compute}"
        if compute == "work":
            alone = start.format(ranks=CORES * nodes).split()
            start += f" --rate {rate_alone([*alone, '--steps', '1']):g}"
        lines += [
            "",
            f"[apps.{name}]",
            f'command = "{start} --steps {steps}"',
        ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "apps.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@contextlib.contextmanager
def environment(apps: Applications) -> Iterator[None]:
    """What the file of applications sets."""
    before = dict(os.environ)
    os.environ.update(apps.env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def profiles(apps: Applications, folder: Path, mode: Mode) -> dict[str, Analysis]:
    """Each application alone, recorded unless it is there."""
    found = {}
    for name in apps.names:
        where = folder / "profiles" / f"{name}-{mode}"
        if not (where / MANIFEST_FILE).exists():
            with environment(apps):
                nic = None if apps.nic is None else nic_settings(apps.nic, apps.place(mode)[0])
                record_profile(apps.words(name, mode), where, nic=nic, stdout=sys.stderr.fileno())
        found[name] = analyse(read_profile(where))
    return found


def predicted(jobs: dict[str, Analysis], *, half: bool) -> tuple[np.ndarray, np.ndarray]:
    """Percent of each job (column) beside each other one (row), and of each on half of the cores alone."""
    names = list(jobs)
    cells, spread = np.zeros((len(names), len(names))), np.full(len(names), PERCENT)
    for i, a in enumerate(names):
        for j, b in enumerate(names[i:], start=i):
            found = forecast(jobs[a], jobs[b], half=half, offsets=OFFSETS)
            cells[i, j], cells[j, i] = PERCENT * found.slowdown_b.value, PERCENT * found.slowdown_a.value
            if found.spread_a is not None and found.spread_b is not None:
                spread[i], spread[j] = PERCENT * found.spread_a.value, PERCENT * found.spread_b.value
    return cells, spread


def truth(matrix: MeasuredMatrix, *, half: bool) -> np.ndarray:
    """Measured percents, columns are measured applications: of all cores alone, or of the same ranks."""
    names = matrix.applications
    cells = np.array([[matrix.percent(name, beside) for name in names] for beside in names])
    alone = np.array([percent.value for percent in matrix.half])
    return cells if half else PERCENT * cells / alone


def compared(names: tuple[str, ...], guess: np.ndarray, cells: np.ndarray) -> dict[str, Any]:
    """Errors of the cells, and what pairing by the guess costs."""
    found = agreement(guess.ravel().tolist(), cells.ravel().tolist())
    errors = np.abs(guess / cells - 1)
    row, column = np.unravel_index(np.argmax(errors), errors.shape)
    best, chosen = mean_of(cells, match(cells)), mean_of(cells, match(guess))
    return {
        "mean_error": found.mean_error,
        "worst_error": found.worst_error,
        "worst": f"{names[column]} beside {names[row]}",
        "rank_correlation": found.rank_correlation,
        "best": best,
        "pairs": ["-".join(names[index] for index in pair) for pair in match(guess)],
        "best_pairs": ["-".join(names[index] for index in pair) for pair in match(cells)],
        "regret": {
            "forecast": PERCENT * (chosen / best - 1),
            "scalar model": PERCENT * (mean_of(cells, match(scalar_model(guess))) / best - 1),
            "random": PERCENT * (random_mean(cells) / best - 1),
        },
        "predicted": guess.round(2).tolist(),
        "measured": cells.round(2).tolist(),
    }


def misses(name: str, found: dict[str, Any]) -> list[str]:
    """A sentence for each bar that is missed."""
    wrong, regret = [], found["regret"]
    if found["mean_error"] > MOST_ERROR:
        wrong.append(f"{name}: the mean error is {found['mean_error']:.1f} %, above {MOST_ERROR:g}")
    if found["rank_correlation"] is None or found["rank_correlation"] < LEAST_RANKS:
        wrong.append(f"{name}: the rank correlation is {found['rank_correlation']}, below {LEAST_RANKS:g}")
    if regret["forecast"] > min(MOST_REGRET, regret["random"] / 2):
        wrong.append(
            f"{name}: the regret is {regret['forecast']:.2f} %, random pairs' {regret['random']:.2f}"
        )
    return wrong


def show(names: tuple[str, ...], title: str, found: dict[str, Any]) -> None:
    """Both matrices in one, and the figures."""
    print(f"\n{title}: % measured (predicted); columns are measured applications, rows companions")
    print(f"{'':4}" + "".join(f"{name:>14}" for name in names))
    for name, cells, guesses in zip(names, found["measured"], found["predicted"], strict=True):
        both = zip(cells, guesses, strict=True)
        print(f"{name:4}" + "".join(f"{cell:7.1f}({guess:5.1f})" for cell, guess in both))
    print(
        f"mean error {found['mean_error']:.2f} %, worst {found['worst_error']:.1f} % ({found['worst']}), "
        f"rank correlation {found['rank_correlation']:.3f}"
    )
    regrets = ", ".join(f"{name} {value:.2f} %" for name, value in found["regret"].items())
    print(f"best pairs {', '.join(found['best_pairs'])}: {found['best']:.1f} %; by the forecast "
          f"{', '.join(found['pairs'])}; regret: {regrets}")  # fmt: skip


def draw(names: tuple[str, ...], found: dict[str, Any], file: Path) -> None:
    """The measured matrix beside the predicted one, each with the pairs that are best in it."""
    figures = []
    for what, pairs in (("measured", "best_pairs"), ("predicted", "pairs")):
        matrix = Matrix(names=names, percent=tuple(map(tuple, found[what])))
        chosen = tuple((pair.split("-")[0], pair.split("-")[1]) for pair in found[pairs])
        figure = matrix_figure(matrix, chosen)
        figures.append(msgspec.structs.replace(figure, name=what, title=f"Runtime, % of exclusive: {what}"))
    save_panels(figures, file, columns=2, title="Two jobs on the same nodes", shared=False)


def answers(options: argparse.Namespace) -> dict[str, Any]:
    """Profiles, measures, compares."""
    folder = Path(options.folder)
    kernels = options.kernels.split(",")
    file = applications(folder, kernels, options.bandwidth, options.nodes, options.compute)
    apps = read_applications(file)
    jobs = {"half": profiles(apps, folder, "exclusive"), "ranks": profiles(apps, folder, "half")}
    out = folder / "measured"
    matrix = measure_pairs(
        file,
        out,
        repetitions=options.repeat,
        resume=(out / JOURNAL).exists(),
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if options.measure:
        return {}
    found: dict[str, Any] = {
        "applications": matrix.applications,
        "half": [round(one.value, 2) for one in matrix.half],
        "exclusive_s": matrix.exclusive_s,
        "noise": matrix.noise,
        "settings": {},
    }
    for name, profiled in jobs.items():
        guess, spread = predicted(profiled, half=name == "half")
        found["settings"][name] = compared(matrix.applications, guess, truth(matrix, half=name == "half"))
        if name == "half":
            found["half_predicted"] = spread.round(2).tolist()
    return found


def main() -> int:
    parser = Command(
        __doc__.splitlines()[0],
        smoke="{folder} --repeat 1 --kernels cg --bandwidth 1GB/s --nodes 2 --measure",
    )
    parser.add_argument("folder")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--bandwidth", default=BANDWIDTH)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--compute", choices=("sleep", "work"), default="sleep")
    parser.add_argument("--measure", action="store_true", help="compare nothing: that needs no quiet machine")
    parser.add_argument("-o", "--out", help="draw both matrices of the slides' setting (.svg, .png)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = answers(options)
    except ElbowroomError as error:
        print(f"pairs: {error.sentence()}", file=sys.stderr)
        return error.exit_code
    if not found:
        return 0
    names = found["applications"]
    wrong = [*found["noise"]]
    for name, result in found["settings"].items():
        wrong += misses(TOGETHER[name], result)
    if options.out:
        draw(names, found["settings"]["half"], Path(options.out))
    if options.json:
        print(json.dumps({**found, "missed": wrong}, indent=1))
    else:
        for name, result in found["settings"].items():
            show(names, TOGETHER[name], result)
        print("\nhalf of the cores, alone: measured", dict(zip(names, found["half"], strict=True)))
        print("predicted", dict(zip(names, found["half_predicted"], strict=True)))
        for sentence in wrong:
            print(f"missed: {sentence}")
    return status(options, wrong)


if __name__ == "__main__":
    sys.exit(main())
