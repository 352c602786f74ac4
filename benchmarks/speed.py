"""How long fitting, predicting and a whole virtual run take: wall clock, medians of `--repeat`.

    python benchmarks/speed.py [--machines henri,diablo] [--repeat 3] [--json]

For each published machine, as a network of credits with 1 % noise: FLOW fitted to 24 runs and to the full
sweep (limit 2 s), all models fitted to the full sweep, all four bandwidths of every n and placement with
their intervals (limit 50 ms), and `run model --machine NAME` with its report, in a process of its own (limit
30 s). On a machine where nothing else runs; benchmarks/predict.py times the C library.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

from command import Command

from elbowroom.launch.processes import one_thread

COLUMNS = {
    "fit_24": ("FLOW, 24 runs", "s", 1.0),
    "fit_full": ("FLOW, sweep", "s", 1.0),
    "fit_all": ("all, sweep", "s", 1.0),
    "surface": ("machine", "ms", 1e3),
    "run": ("run, report", "s", 1.0),
}


def taken(action: Callable[[], object], repeat: int) -> float:
    """Median of the seconds that the action takes."""
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def whole_run(machine: str) -> None:
    """`elbowroom run model` with its report, as a user starts it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "elbowroom", "run", "model", "--machine", machine, "--no-open"]
        subprocess.run([*command, "--out", str(Path(folder) / "run")], check=True, capture_output=True)


def line(name: str, repeat: int) -> dict[str, float]:
    """The median times of one machine, s."""
    from flow_design import design

    from elbowroom.models import fit as fitting
    from elbowroom.models import published
    from elbowroom.models.base import Provenance
    from elbowroom.models.curves import Curves, Row, Situation
    from elbowroom.models.flow import fit as flow_fit
    from elbowroom.models.flow.model import bands
    from elbowroom.virtual.credits import credits
    from elbowroom.virtual.truth import generator

    truth = credits(published.load(name).model)
    shape = truth.shape

    def curves(asked: tuple[Situation, ...]) -> Curves:
        rows = []
        for at in asked:
            values = truth.sample(at, 0.01, generator(1, shape, at))
            named = zip(("comp_alone", "comm_alone", "comp_together", "comm_together"), values, strict=True)
            rows.append(Row(situation=at, **dict(named)))
        return Curves(shape=shape, rows=tuple(rows))

    nodes, counts = range(shape.nodes), range(1, shape.cores_first_socket + 1)
    few = curves(design(shape, 24))
    every = product(nodes, nodes, counts)
    surface = tuple(Situation(comp_node=i, comm_node=j, n=n) for i, j, n in every)
    full = curves(surface)
    source = Provenance(run=name, plan="model", origin="virtual")
    fitted = flow_fit.fit(few)
    return {
        "fit_24": taken(lambda: flow_fit.fit(few), repeat),
        "fit_full": taken(lambda: flow_fit.fit(full), repeat),
        "fit_all": taken(lambda: fitting.fit(full, source, created=""), repeat),
        "surface": taken(lambda: bands(fitted, shape, surface), repeat),
        "run": taken(lambda: whole_run(name), repeat),
    }


def main() -> None:
    """Prints a line for each machine, and the worst of all below."""
    one_thread()
    from elbowroom.models import published

    parser = Command((__doc__ or "").splitlines()[0], smoke="--machines occigen --repeat 1")
    parser.add_argument("--machines", type=lambda text: text.split(","), default=published.names())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: line(name, options.repeat) for name in options.machines}
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'machine':13}" + "".join(f"{title:>15}" for title, _, _ in COLUMNS.values()))
    worst = {name: max(times[name] for times in found.values()) for name in COLUMNS}
    for machine, times in {**found, "worst": worst}.items():
        cells = (f"{times[name] * scale:.2f} {unit}" for name, (_, unit, scale) in COLUMNS.items())
        print(f"{machine:13}" + "".join(f"{cell:>15}" for cell in cells))


if __name__ == "__main__":
    main()
