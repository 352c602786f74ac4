"""`elbowroom import`, `fit`, `evaluate` and `calibrate`: models from runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.cli import blas, model_tables
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.gpu_tables import print_gpu_evaluation, print_gpu_fit
from elbowroom.cli.model_tables import calibration_line, shape_line
from elbowroom.cli.options import FIGURE, NOISY, REPEAT, Output, command, json_option, mpi_option
from elbowroom.cli.run_options import MODEL, launch_options, plan_overrides, virtual_options
from elbowroom.errors import UsageError
from elbowroom.quantities import parse_size
from elbowroom.verbs import run_tables
from elbowroom.verbs.run_tables import machine_line

if TYPE_CHECKING:
    from elbowroom.api.calibration import Calibrated


_kernel = click.option("--kernel", metavar="KERNEL", help="Computing kernel, if the run has several.")
_size = click.option("--size", metavar="SIZE", help="Message size, if the run has several: 64MB.")


@command("import")
@click.argument("path", metavar="CURVES.csv")
@click.option("-o", "--out", metavar="RUN", required=True, help="Folder of the run. Never overwritten.")
@click.option("--kernel", metavar="KERNEL", help="Kernel of the curves; default: memset_nt.")
@click.option("--size", metavar="SIZE", help="Message size of the curves; default: 64MB.")
@json_option
def import_(path: str, out: str, kernel: str | None, size: str | None, as_json: bool) -> int:
    """Make a run folder from curves that another program measured (`elbowroom help predict`)."""
    done = api.import_curves(
        path, out, kernel=kernel, size=_bytes(size), command=("elbowroom", *sys.argv[1:])
    )
    if as_json:
        print_json(done.show())
    else:
        run_tables.print_run(done)
        click.echo(f"run: {done.path}")
    return 0


@command()
@click.argument("paths", metavar="RUN [RUN]...", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=Output(".json", bare=True),
    metavar="M.json",
    help="Default: models/NAME.json in the first run's folder.",
)
@_kernel
@_size
@click.option("--sms", type=int, metavar="N", help="SMs of the accelerator, if its runs do not say it.")
@json_option
def fit(
    paths: tuple[str, ...],
    out: str | None,
    kernel: str | None,
    size: str | None,
    sms: int | None,
    as_json: bool,
) -> int:
    """Fit all models to runs: parameters with intervals, and their limits.

    Several runs of one machine are fitted together. With runs of the plans `sizes`, `intensity` and `ring` in
    addition to one of `model`, FLOW also predicts other messages and computations. Runs of `gpu` and
    `gpu-overlap` give a model of the accelerator, and `gpu` its copies as a stream of FLOW.
    """
    for index, path in enumerate(paths):
        if os.path.realpath(path) in map(os.path.realpath, paths[:index]):
            raise UsageError("is named twice", field="run", value=path, hint="name each run once")
    blas.one_thread()
    model = api.fit(paths, out, kernel=kernel, size=_bytes(size), sms=sms)
    if as_json:
        print_json(api.calibration.FitDocument(file=str(model.path), model=model.document))
    else:
        model_tables.print_fit(model)
        if model.document.gpu is not None:
            print_gpu_fit(model)
    return 0


@command()
@click.argument("path", metavar="RUN")
@click.argument("source", metavar="M.json|NAME")
@click.option(
    "-o", "--out", type=FIGURE, metavar="FIGURE", help="Draw measured points and the model: .png or .svg."
)
@click.option(
    "--stacked", is_flag=True, help="With -o: stack the measured bandwidths, with the model's named points."
)
@click.option(
    "--comp-node", type=int, default=0, metavar="NODE", help="With --stacked: NUMA node of all data."
)
@click.option("--model", "name", type=MODEL, help="With -o: model to draw; default: the best.")
@json_option
def evaluate(path: str, source: str, as_json: bool, **options: Any) -> int:
    """Compute the mean errors of models on a run, beside those of naive models.

    The table has the form of Table 6.1 of Swartvagher's thesis: communication and computation, on the
    placements that the threshold model is calibrated on (samples) and on the others. Of a run of an
    accelerator it has a line for each kind of case.
    """
    if options["stacked"] and options["out"] is None:
        raise UsageError("needs a file", field="stacked", hint="add -o FIGURE.png")
    if options["stacked"] and options.get("size") is not None:
        raise UsageError(
            "is drawn for the calibrated message size only", field="stacked", hint="leave out --size"
        )
    gpu = api.gpu_models.evaluate_gpu(api.open(path), api.load_model(source))
    if gpu is not None:
        return print_gpu_evaluation(gpu, as_json, options)
    evaluation = api.evaluate(path, source)
    files = []
    if options["out"] is not None and options["stacked"]:
        files = [
            api.save_figure(evaluation.model.stacked(options["comp_node"], evaluation.run), options["out"])
        ]
    elif options["out"] is not None:
        predictions = evaluation.model.curves(model=options["name"])
        files = [
            api.save_panels(
                evaluation.model, evaluation.model.panels(predictions, evaluation.run), options["out"]
            )
        ]
    if as_json:
        print_json(api.calibration.evaluation_document(evaluation, path, source, files))
    else:
        model_tables.print_evaluation(evaluation)
        for file in files:
            click.echo(str(file))
    return 0


def _bytes(text: str | None) -> int | None:
    return None if text is None else parse_size(text, "size")


REASONS = {
    "narrow": "the intervals are narrow enough",
    "budget": "the budget is used up",
    "complete": "every point of the full sweep was measured",
    "nothing": "no point gave bandwidths that a model can be fitted to",
}

_NOT_ASKED = {"comp_cores": None, "comm_core": None, "comp_node": None, "comm_node": None, "budget": None}
"""Options of `run`; the budget of a calibration is a number of runs, that of a plan a time."""

_FIXED_AT_START = (
    "dry_run",
    "kernels",
    "machine",
    "noise",
    "plan",
    "repeat",
    "run",
    "seed",
    "settings",
    "sizes",
)


@command()
@click.option(
    "--budget",
    type=int,
    default=24,
    show_default=True,
    metavar="RUNS",
    help="Measure at most this many points.",
)
@click.option(
    "--half-width",
    type=float,
    default=3.0,
    show_default=True,
    metavar="PERCENT",
    help="Stop when nine of ten 90 % intervals are at most ±PERCENT.",
)
@click.option(
    "-o",
    "--out",
    type=Output(".json", bare=True),
    metavar="M.json",
    help="Default: models/NAME.json in the run folder.",
)
@click.option(
    "--run", metavar="RUN", help="Folder of the run; default runs/calibrate-DATE. Never overwritten."
)
@click.option(
    "--resume", metavar="RUN", help="Continue a calibration, for instance with a smaller --half-width."
)
@click.option("--plan", metavar="PLAN", help="Plan whose points to choose from; default: model.")
@click.option("--machine", metavar="MACHINE", help="Use a virtual machine: henri, FILE.toml or FILE.xml.")
@click.option("--noise", type=float, metavar="SHARE", help="With --machine: relative noise of its values.")
@click.option("--kernels", metavar="KERNEL", help="Computing kernel; default: the plan's.")
@click.option("--sizes", metavar="SIZE", help="Message size: 64MB; default: the plan's.")
@click.option("--repeat", type=REPEAT, metavar="N", help="Repetitions of each point.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any key of the plan; may be repeated."
)
@click.option("--launcher", metavar="NAME", help="As in `elbowroom run`.")
@mpi_option
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="File of hosts for mpiexec, one per line.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order, of the draws and of the noise.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of one repetition.",
)
@click.option("--no-report", is_flag=True, help="Write no report.html.")
@dry_run_option
@json_option
def calibrate(**options: Any) -> int:
    """Measure a few points, each chosen for the most information, and fit the models to them.

    Starts with a few placements and numbers of computing cores, fits a model, and then measures the point
    that narrows the predictions most. Reports the time saved compared to measuring every point.
    """
    blas.one_thread()
    shared = {
        "budget": options["budget"],
        "half_width": options["half_width"] / 100,
        "out": options["out"],
        "patience": options["timeout"],
        "report": not options["no_report"],
        **launch_options(options),
    }
    if options["resume"] is not None:
        given = [name for name in _FIXED_AT_START if options[name] not in (None, False, ())]
        if given:
            raise UsageError(
                "cannot be given with --resume: a resumed run keeps its settings",
                field=given[0],
                hint="leave it out, or start a new calibration",
            )
        done = api.resume_calibration(options["resume"], **shared)
    else:
        measured = {
            "plan": options["plan"] or "model",
            "overrides": plan_overrides(options | _NOT_ASKED),
            "seed": options["seed"],
            **virtual_options(options),
        }
        if options["dry_run"]:
            planned = api.calibration.plan_calibration(
                budget=options["budget"], **measured, **launch_options(options)
            )
            return show_planned(planned, options["as_json"])
        done = api.calibrate(run=options["run"], command=("elbowroom", *sys.argv[1:]), **measured, **shared)
    if options["as_json"]:
        print_json(api.calibration.calibration_document(done))
    else:
        _print(done)
    return 0 if done.run.verdict.trusted else NOISY


def _print(done: Calibrated) -> None:
    calibration = done.calibration
    if done.model is None:
        print_wrapped(machine_line(done.run.machine), style="bold")
    else:
        print_wrapped(shape_line(done.model.machine), style="bold")
        print_wrapped(calibration_line(done.model.document.calibration))
    print()
    table = new_table(
        ("run", "right"), ("comp node", "right"), ("comm node", "right"), ("n", "right"), ("chosen", "")
    )
    for number, step in enumerate(calibration.steps, start=1):
        at = step.situation
        cores = f"{at.n}+{at.n_other}" if at.n_other else str(at.n)
        why = "initial point" if step.width is None else f"90 % intervals were ±{step.width:.1%}"
        table.add_row(str(number), str(at.comp_node), str(at.comm_node), cores, why)
    console().print(table)
    print()
    if calibration.width is not None and done.model is not None:
        goal = f"(goal: {calibration.goal.half_width:.1%})"
        print_wrapped(
            f"Nine of ten 90 % intervals are at most ±{calibration.width:.1%} {goal}: "
            f"{REASONS[calibration.reason]}."
        )
    else:
        print_wrapped(f"{REASONS[calibration.reason][:1].upper()}{REASONS[calibration.reason][1:]}.")
    print_wrapped(api.calibration.saved(calibration), style="bold")
    if not done.run.verdict.trusted:
        print_wrapped(f"Cannot be trusted: {done.run.verdict.reasons[0]}", style="bold yellow")
    if done.unknown:
        print()
        print_wrapped("What the model does not know, and its limits:")
    for sentence in done.unknown:
        print_wrapped(f"- {sentence}", indent="  ")
    print()
    print_wrapped(f"run: {done.run.path}")
    if done.model is not None:
        print_wrapped(f"model: {done.model.path}")
