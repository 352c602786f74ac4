"""`elbowroom calibrate`: a model from few runs, each chosen by what it teaches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import NOISY, _json, _mpi, _overrides, _simulated, _where, group
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.calibrating import Calibrated

SCHEMA, VERSION = "elbowroom/calibrate", 1

REASONS = {
    "narrow": "the intervals are narrow enough",
    "budget": "the budget is used",
    "complete": "every run of the full sweep was measured",
    "nothing": "no run gave bandwidths that a model could learn from",
}

_NOT_ASKED = {"comp_cores": None, "comm_core": None, "comp_node": None, "comm_node": None}
_FIXED_AT_START = ("kernels", "machine", "noise", "plan", "repeat", "run", "seed", "settings", "sizes")


@group.command()
@click.option(
    "--budget", type=int, default=24, show_default=True, metavar="RUNS", help="Measure at most this."
)
@click.option(
    "--half-width",
    type=float,
    default=3.0,
    show_default=True,
    metavar="PERCENT",
    help="Stop once nine of ten 90 % intervals are at most that wide to each side.",
)
@click.option("-o", "--out", metavar="M.json", help="Default: models/NAME.json in the run folder.")
@click.option(
    "--run", metavar="RUN", help="Folder of the run; default runs/calibrate-DATE. Never overwritten."
)
@click.option("--resume", metavar="RUN", help="Go on with a calibration, or make it narrower.")
@click.option("--plan", metavar="PLAN", help="What to choose from; default: model.")
@click.option("--machine", metavar="MACHINE", help="A virtual machine answers: henri, FILE.toml, FILE.xml.")
@click.option("--noise", type=float, metavar="SHARE", help="With --machine: noise of its values.")
@click.option("--kernels", metavar="KERNEL", help="Computing kernel; default: the plan's.")
@click.option("--sizes", metavar="SIZE", help="Message size: 64MB; default: the plan's.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Repetitions of each run.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of the plan.")
@click.option("--launcher", metavar="NAME", help="As of `elbowroom run`.")
@_mpi
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="Hosts for mpiexec, one a line.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of orders, of draws and of the noise.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Patience for one repetition.",
)
@click.option("--no-report", is_flag=True, help="Write no report.html.")
@_json
def calibrate(**options: Any) -> int:
    """Fit the models to few runs, each chosen by what it teaches most.

    Begins with some placements and numbers of computing cores, fits, and measures next where the predictions
    of all placements gain most; says what that saved against measuring all of them.
    """
    from elbowroom import api
    from elbowroom.cli import blas

    blas.one_thread()
    shared = {
        "budget": options["budget"],
        "half_width": options["half_width"] / 100,
        "out": options["out"],
        "patience": options["timeout"],
        "report": not options["no_report"],
        **_where(options),
    }
    if options["resume"] is not None:
        given = [name for name in _FIXED_AT_START if options[name] not in (None, ())]
        if given:
            raise UsageError(
                "cannot be given with --resume: the run goes on as it was begun",
                field=given[0],
                mend="leave it out, or start a new calibration",
            )
        done = api.resume_calibration(options["resume"], **shared)
    else:
        done = api.calibrate(
            plan=options["plan"] or "model",
            run=options["run"],
            overrides=_overrides(options | _NOT_ASKED),
            seed=options["seed"],
            command=("elbowroom", *sys.argv[1:]),
            **_simulated(options),
            **shared,
        )
    if options["as_json"]:
        print_json(_object(done))
    else:
        _print(done)
    return 0 if done.run.verdict.trusted else NOISY


def _object(done: Calibrated) -> dict[str, Any]:
    import msgspec

    found = msgspec.to_builtins(done.calibration)
    file = None if done.model is None else str(done.model.path)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "run": str(done.run.path),
        "file": file,
        **found,
        "saved": saved(done),
        "unknown": list(done.unknown),
        "trusted": done.run.verdict.trusted,
        "virtual": done.run.machine.virtual,
        "model": None if done.model is None else msgspec.to_builtins(done.model.document),
    }


def saved(done: Calibrated) -> str:
    """What was measured against the full sweep, in a sentence."""
    from elbowroom.campaign.progress import duration

    told = done.calibration
    if told.runs == told.full_runs:
        return f"{told.runs} run{'s' if told.runs != 1 else ''} measured, all there are: nothing was saved."
    return (
        f"{told.runs} runs instead of {told.full_runs}: about {duration(told.seconds)} of measuring instead "
        f"of {duration(told.full_seconds)}."
    )


def _print(done: Calibrated) -> None:
    from elbowroom.cli.model_tables import calibration_line, shape_line
    from elbowroom.cli.tables import _say, _table, console, machine_line

    told = done.calibration
    if done.model is None:
        _say(machine_line(done.run.machine), style="bold")
    else:
        _say(shape_line(done.model.machine), style="bold")
        _say(calibration_line(done.model.document.calibration))
    print()
    table = _table(
        ("run", "right"), ("comp node", "right"), ("comm node", "right"), ("n", "right"), ("chosen", "")
    )
    for number, step in enumerate(told.steps, start=1):
        at = step.situation
        cores = f"{at.n}+{at.n_other}" if at.n_other else str(at.n)
        why = "to begin with" if step.width is None else f"intervals within {step.width:.1%} before"
        table.add_row(str(number), str(at.comp_node), str(at.comm_node), cores, why)
    console().print(table)
    print()
    if told.width is not None and done.model is not None:
        goal = f"(goal: {told.goal.half_width:.1%})"
        _say(f"Nine of ten predictions are certain within {told.width:.1%} {goal}: {REASONS[told.reason]}.")
    else:
        _say(f"{REASONS[told.reason][:1].upper()}{REASONS[told.reason][1:]}.")
    _say(saved(done), style="bold")
    if not done.run.verdict.trusted:
        _say(f"Not to be trusted: {done.run.verdict.reasons[0]}", style="bold yellow")
    if done.unknown:
        print()
        _say("What was not learned, and where not to trust it:")
    for sentence in done.unknown:
        _say(f"- {sentence}", indent="  ")
    print()
    _say(f"run: {done.run.path}")
    if done.model is not None:
        _say(f"model: {done.model.path}")
