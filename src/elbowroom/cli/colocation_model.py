"""`elbowroom colocate calibrate`."""

from __future__ import annotations

from typing import Any

import click

from elbowroom import api
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import REPEAT, Output, command, json_option, mpi_option


@command()
@click.argument("run", metavar="RUN")
@click.option("--repeat", type=REPEAT, default=5, show_default=True, metavar="N", help="Repetitions.")
@mpi_option
@click.option("-o", "--out", type=Output(".json"), metavar="M.json", help="Default: in the run folder.")
@dry_run_option
@json_option
def calibrate(run: str, as_json: bool, dry_run: bool, out: str | None, **options: Any) -> int:
    """Fit the machine's model for `predict --model`.

    RUN is a run of the plan `model` on this machine. Also measures what 1 to all cores get from memory at
    several arithmetic intensities: jobs that share a node compute on more cores than RUN did.
    """
    if dry_run:
        return show_planned(api.job_calibration.plan_job_calibration(run, **options), as_json)
    model = api.calibrate_for_jobs(run, out, **options)
    if as_json:
        print_json(api.calibration.FitDocument(file=str(model.path), model=model.document))
        return 0
    for sentence in model.document.validity:
        print_wrapped(f"- {sentence}")
    click.echo(str(model.path))
    return 0
