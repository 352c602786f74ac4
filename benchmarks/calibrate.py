"""What `elbowroom calibrate` measures of nine virtual machines, and how far its model is from their truths.

    python benchmarks/calibrate.py [--machines henri,billy] [--truth credits] [--noise 0.01] [--seed 1]
                                   [--half-width 3]

Each line: runs measured of those of a full sweep, minutes that both take on a real machine, about, mean of
|true - predicted| / true of both streams together over every n and placement (against the truth without
noise), and the share of true values inside the 90 % intervals. A minute or two; no result depends on the
machine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from command import Command

from elbowroom.models import published
from elbowroom.models.predict import situations
from elbowroom.verbs.calibrate import calibrate
from elbowroom.virtual.credits import credits
from elbowroom.virtual.machines import PublishedCurves


def line(name: str, options: argparse.Namespace) -> tuple[float, ...]:
    """runs, runs of a full sweep, minutes, minutes of it, mean error in percent, share covered."""
    with tempfile.TemporaryDirectory() as folder:
        done = calibrate(
            machine=f"{name}:{options.truth}",
            noise=options.noise,
            seed=options.seed,
            half_width=options.half_width / 100,
            run=str(Path(folder) / "run"),
            report=False,
            tell=lambda _: None,
        )
    assert done.model is not None
    model = published.load(name).model
    truth = credits(model) if options.truth == "credits" else PublishedCurves(model)
    asked = situations(model.shape)
    exact = np.array([truth.streams(at)[2:] for at in asked])
    said = done.model.answers(asked, model="flow")
    value, low, high = (
        np.array([[getattr(side, field) for side in (one.comp_together, one.comm_together)] for one in said])
        for field in ("value", "low", "high")
    )
    told = done.calibration
    return (
        told.runs,
        told.full_runs,
        told.seconds / 60,
        told.full_seconds / 60,
        100 * float(np.abs(value / exact - 1).mean()),
        float(((low <= exact) & (exact <= high)).mean()),
    )


def main() -> None:
    """Prints a line for each machine, and sums and means below."""
    parser = Command((__doc__ or "").splitlines()[0], smoke="--machines henri")
    parser.add_argument("--machines", type=lambda text: text.split(","), default=published.names())
    parser.add_argument("--truth", choices=("credits", "published"), default="credits")
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half-width", type=float, default=3.0, help="percent")
    options = parser.parse_args()
    print(f"{'machine':14}{'runs':>10}{'minutes':>16}{'error':>9}{'covered':>9}")
    lines = []
    for name in options.machines:
        lines.append(found := line(name, options))
        print(_row(name, found), flush=True)
    table = np.array(lines)
    whole = (*table[:, :4].sum(axis=0), *table[:, 4:].mean(axis=0))
    print(_row("all", whole))


def _row(name: str, found: tuple[float, ...]) -> str:
    runs, full, minutes, full_minutes, error, covered = found
    measured = f"{runs:.0f} of {full:.0f}"
    return f"{name:14}{measured:>10}{minutes:7.1f} of {full_minutes:5.1f}{error:7.2f} %{covered:9.2f}"


if __name__ == "__main__":
    main()
