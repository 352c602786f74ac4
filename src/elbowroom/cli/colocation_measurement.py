"""`elbowroom colocate measure`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import NOISY, REPEAT, command, json_option
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.colocation_measurement import MeasuredMatrix, PlannedRuns

MOST_COLUMNS = 8
"""Of more applications only the files have the matrix: it would not fit 80 columns."""


@command()
@click.argument("apps", metavar="APPS.toml")
@click.option("-o", "--out", metavar="FOLDER", help="Where times and the matrix are written; new.")
@click.option("--repeat", type=REPEAT, default=3, show_default=True, metavar="N", help="Repetitions.")
@click.option("--resume", is_flag=True, help="Continue a measurement that was stopped, in FOLDER.")
@click.option("--dry-run", is_flag=True, help="Print the commands and how many runs; start nothing.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Longest time of a run, or of two beside each other; default: none.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of order and starts.")
@click.option("--curve", metavar="FILE", help="NIC of the forecast, by `profile calibrate -o`.")
@json_option
def measure(apps: str, as_json: bool, out: str | None, dry_run: bool, **options: Any) -> int:
    """Measure what applications cost each other on shared nodes.

    Runs each one alone on all cores, alone on half of the cores of twice the nodes, and beside each one,
    itself included. Exit code 3 means that the runs differ too much to be trusted.
    """
    if dry_run:
        planned = api.plan_colocation(apps, repetitions=options["repeat"])
        print_json(planned) if as_json else _print_planned(planned)
        return 0
    if out is None:
        raise UsageError("is missing", field="out", hint="name a folder: -o FOLDER")
    found = api.measure_pairs(
        apps,
        out,
        repetitions=options["repeat"],
        seed=options["seed"],
        timeout=options["timeout"],
        resume=options["resume"],
        curve=options["curve"],
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print_json(found) if as_json else print_measured(found)
    return NOISY if found.noise else 0


def _print_planned(planned: PlannedRuns) -> None:
    print_wrapped(
        f"{planned.measurements} measurements, about {planned.seconds / 60:.0f} min if each takes 10 s",
        style="bold",
    )
    for name, words in planned.commands.items():
        print_wrapped(f"{name}:")
        for what, words_of_mode in zip(("all cores", "half", "beside another"), words, strict=True):
            print_wrapped(f"  {what}: {words_of_mode}")


def print_measured(found: MeasuredMatrix) -> None:
    """The matrix, how it agrees with the forecast, and whether it can be trusted."""
    for reason in found.noise:
        print_wrapped(f"Too noisy to trust: {reason}.", style="red")
    names = found.applications
    print_wrapped(
        f"Runtime beside a companion, % of exclusive ({found.repetitions} repetitions)", style="bold"
    )
    if len(names) > MOST_COLUMNS:
        print_wrapped(f"{len(names)} applications: see matrix.csv")
    else:
        table = new_table(("companion", ""), *((name, "right") for name in names))
        for companion in names:
            table.add_row(companion, *(f"{found.percent(name, companion):.1f}" for name in names))
        table.add_row("half, alone", *(f"{percent.value:.1f}" for percent in found.half))
        table.add_row("exclusive, s", *(f"{seconds:.4g}" for seconds in found.exclusive_s))
        console().print(table)
    if found.prediction is not None:
        _print_prediction(found)
    for note in (*found.notes, *(found.prediction.notes if found.prediction else ())):
        print_wrapped(note, style="yellow")


def _print_prediction(found: MeasuredMatrix) -> None:
    assert found.prediction is not None
    compared = found.prediction.agreement
    ranks = compared.rank_correlation
    print_wrapped(
        f"Forecast of {compared.cells} cells from profiles of each alone: mean error "
        f"{compared.mean_error:.1f} %, worst {compared.worst_error:.1f} %, rank correlation "
        f"{'n/a, all are alike' if ranks is None else f'{ranks:.2f}'}."
    )
