"""The figures of slides 17, 20, 23, 25 and 26 of Koop, Luo and Panda, on emulated NICs of two speeds.

    python benchmarks/koop_slides.py FOLDER [--nic 25MB/s,50MB/s] [--kernels ft,cg,ep] [--compute sleep|work]
                                     [--repeat N] [--json]

For each speed: every kernel alone on all cores of four nodes and on half of the cores of eight, all pairs on
these eight nodes, and profiles of each alone and of FT beside FT. FOLDER/SPEED keeps what was measured (the
same command continues) and gets slide17.svg to slide26.svg. The second speed answers slide 27: what a faster
network changes. Kernels sleep where the NAS benchmarks compute, so only the network is shared; with
`--compute work` they compute, and two jobs need as many cores as ranks.

Exit code 1 where CG beside CG takes a smaller share of its exclusive time than FT beside FT: on the slides it
is the other way round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from command import Command, status
from pairs import applications, profiles

from elbowroom.draw.figure import Figure
from elbowroom.draw.files import save_panels
from elbowroom.errors import ElbowroomError
from elbowroom.measure.timed_commands import JOURNAL
from elbowroom.profile.analysis import Analysis, analyse, summarise
from elbowroom.profile.figures import profile_figures, together_figures
from elbowroom.profile.profile import read_profile
from elbowroom.profile.summary import MANIFEST_FILE
from elbowroom.quantities import parse_bandwidth
from elbowroom.schedule.applications import Applications
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.measured import MeasuredMatrix
from elbowroom.schedule.pairing import companions_figure, matrix_figure
from elbowroom.verbs.colocate_measure import measure_pairs, read_applications

FIRST, SECOND = "ft", "cg"
"""The kernels of slides 17 and 23, and of slide 26 beside ep."""
NODES = 4


def profile_together(apps: Applications, name: str, folder: Path) -> tuple[Analysis, Analysis]:
    """The profiles of a kernel and of another job of it on the same nodes, recorded unless they are there."""
    places = [folder / f"{name}-shared-{number}" for number in (1, 2)]
    if not all((place / MANIFEST_FILE).exists() for place in places):
        name_of_nic = f"koop-{os.getpid()}"
        rate, ranks = f"{apps.nic.rate:g}B/s" if apps.nic else "", str(apps.place("shared")[0])
        own = ["--nic", rate, "--ranks-per-node", ranks, "--nic-name", name_of_nic]
        jobs = [
            subprocess.Popen(
                [sys.executable, "-m", "elbowroom", "profile", "record", *own, "-o", str(place), "--",
                 *apps.words(name, "shared", number)],
                stdout=subprocess.DEVNULL,
                env={**os.environ, **apps.env},
            )
            for number, place in enumerate(places)
        ]  # fmt: skip
        codes = [job.wait() for job in jobs]
        if any(codes):
            sys.exit(f"koop_slides: {name} beside {name} failed")
    first, second = (analyse(read_profile(place)) for place in places)
    return first, second


def network_figures(analysis: Analysis, title: str) -> list[Figure]:
    """The network of the first node over time."""
    figures = profile_figures(analysis, summarise(analysis))
    drawn = next(figure for figure in figures if figure.name == "network-0")
    return [msgspec.structs.replace(drawn, title=title)]


def as_matrix(matrix: MeasuredMatrix, names: tuple[str, ...]) -> Matrix:
    """The cells of some applications."""
    return Matrix(
        names=names,
        percent=tuple(tuple(matrix.percent(name, beside) for name in names) for beside in names),
    )


def draw(
    folder: Path,
    speed: str,
    matrix: MeasuredMatrix,
    alone: dict[str, Analysis],
    shared: tuple[Analysis, Analysis],
) -> None:
    """The slides of one speed as files."""
    names = matrix.applications
    half = {name: percent.value for name, percent in zip(names, matrix.half, strict=True)}
    together = together_figures({f"{FIRST} 1": shared[0], f"{FIRST} 2": shared[1]})[:1]
    slides = {
        17: network_figures(alone[FIRST], f"{FIRST} alone, {speed}"),
        23: [*network_figures(alone[FIRST], f"{FIRST} alone on all cores, {speed}"), *together],
        25: [companions_figure(as_matrix(matrix, names), half)],
    }
    if {SECOND, "ep"} <= set(names):
        cells = as_matrix(matrix, (SECOND, "ep"))
        over_time = [network_figures(alone[name], f"{name} alone, {speed}") for name in (SECOND, "ep")]
        slides[26] = [*over_time[0], *over_time[1], matrix_figure(cells, [])]
    for number, figures in slides.items():
        save_panels(figures, folder / f"slide{number}.svg", columns=1, title=f"Slide {number}", shared=False)


def overlap_s(first: Analysis, second: Analysis) -> float:
    """Seconds in which ranks of both jobs were on the network of their first node."""
    figure = together_figures({"1": first, "2": second})[0]
    x = np.array(figure.series[0].x)
    busy = [np.array(series.y) > 0 for series in figure.series if series.axis == "below"]
    return float((busy[0] & busy[1]).sum() * (x[1] - x[0]))


def answers(speed: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures and draws one speed."""
    folder = Path(options.folder) / speed.replace("/", "p")
    kernels = options.kernels.split(",")
    file = applications(folder, kernels, speed, options.nodes, options.compute)
    apps = read_applications(file)
    out = folder / "measured"
    matrix = measure_pairs(
        file,
        out,
        repetitions=options.repeat,
        resume=(out / JOURNAL).exists(),
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    alone = profiles(apps, folder, "exclusive")
    shared = profile_together(apps, FIRST, folder / "profiles")
    draw(folder, speed, matrix, alone, shared)
    idle = {name: summarise(analysis).nodes[0].idle_share for name, analysis in alone.items()}
    return {
        "applications": matrix.applications,
        "exclusive_s": matrix.exclusive_s,
        "half": [percent.value for percent in matrix.half],
        "percent": as_matrix(matrix, matrix.applications).percent,
        "idle": idle,
        "both_on_network_s": overlap_s(*shared),
        "noise": matrix.noise,
    }


def other_way_round(found: dict[str, Any]) -> bool:
    """Whether the second kernel gains more beside itself than the first one."""
    itself = {name: found["percent"][place][place] for place, name in enumerate(found["applications"])}
    return SECOND in itself and itself[SECOND] < itself[FIRST]


def show(speed: str, found: dict[str, Any]) -> None:
    """Slides 20 and 24 as a table."""
    names = found["applications"]
    print(f"\n{speed}: % of exclusive; columns are measured applications, rows companions")
    rows = [*zip(names, found["percent"], strict=True), ("half", found["half"])]
    print(f"{'':>10}" + "".join(f"{name:>9}" for name in names))
    for name, values in rows:
        print(f"{name:>10}" + "".join(f"{value:9.1f}" for value in values))
    print(f"{'seconds':>10}" + "".join(f"{value:9.2f}" for value in found["exclusive_s"]))
    print(f"{'idle':>10}" + "".join(f"{100 * found['idle'][name]:8.1f}%" for name in names))
    print(f"{FIRST} beside {FIRST}: both on the network for {found['both_on_network_s']:.2f} s")
    for sentence in found["noise"]:
        print(f"noise: {sentence}")


def main() -> int:
    parser = Command(__doc__, smoke="{folder} --nic 200MB/s --repeat 1 --kernels ft --nodes 2")
    parser.add_argument("folder")
    parser.add_argument("--nic", default="25MB/s,50MB/s", help="speeds of the emulated NIC")
    parser.add_argument("--kernels", default="ft,cg,ep", help="ft is one of them")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--compute", choices=("sleep", "work"), default="sleep")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if FIRST not in options.kernels.split(","):
        parser.error(f"--kernels has no {FIRST}, which slides 17 and 23 are of")
    speeds = options.nic.split(",")
    try:
        for speed in speeds:
            parse_bandwidth(speed, "nic")
        found = {speed: answers(speed, options) for speed in speeds}
    except ElbowroomError as error:
        print(f"koop_slides: {error.sentence()}", file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for speed, values in found.items():
            show(speed, values)
    missed = [speed for speed, values in found.items() if other_way_round(values)]
    for speed in missed:
        print(f"missed: {speed}: {SECOND} gains more beside itself than {FIRST}", file=sys.stderr)
    return status(options, missed)


if __name__ == "__main__":
    sys.exit(main())
