"""`elbowroom run`, `show`, `report`, `export`, `list` and `plans`: runs and what is measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import launcher_names
from elbowroom.api.shell import is_stdout
from elbowroom.cli import run_tables
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.options import (
    DURATION,
    NOISY,
    REPEAT,
    Output,
    command,
    json_option,
    launch_options,
    mpi_option,
    plan_overrides,
    virtual_options,
)
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from elbowroom.api.runs import ListedRun, Run


def _complete_plan(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in api.names() if name.startswith(incomplete)]


@command()
@click.argument("plan", required=False, shell_complete=_complete_plan)
@click.option(
    "-o", "--out", metavar="RUN", help="Folder of the run; default runs/PLAN-DATE-TIME. Never overwritten."
)
@click.option("--resume", metavar="RUN", help="Continue an interrupted run.")
@click.option("--retry-failed", is_flag=True, help="With --resume: measure failed repetitions again.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be done: command lines, estimated time, and what is n/a.",
)
@click.option(
    "--launcher",
    metavar="NAME",
    help=f"{', '.join(launcher_names())} or replay:RUN; default: that of the allocation, else local.",
)
@mpi_option
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="File of hosts for mpiexec, one per line.")
@click.option(
    "--machine",
    metavar="MACHINE",
    help="Use a virtual machine: henri (see `elbowroom machine list`), FILE.toml or FILE.xml.",
)
@click.option(
    "--noise",
    type=float,
    metavar="SHARE",
    help="With --machine: relative noise of its values; default 0.01 (1 %).",
)
@click.option("--kernels", metavar="K,K", help="Computing kernels: triad,prime; none: communication only.")
@click.option("--comp-cores", metavar="LIST", help="Computing cores: 1-7.")
@click.option("--comm-core", type=int, metavar="CORE", help="Core of the communication thread.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computation's data.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the message buffers.")
@click.option("--sizes", metavar="S,S", help="Message sizes: 4,64KiB,64MB (MB = 1e6 B, MiB = 2^20 B).")
@click.option("--nodes", metavar="N,N", help="Numbers of nodes of a simulated cluster: 4,8,16.")
@click.option("--repeat", type=REPEAT, metavar="N", help="Repetitions of each point.")
@click.option(
    "--budget",
    type=DURATION,
    metavar="TIME",
    help="Time from the command to the report: 60s, 2min. The most informative points come first.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set any key of the plan; may be repeated."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order of points and of the noise.")
@click.option("--reverse", is_flag=True, help="Reverse the order within each repetition.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of one repetition.",
)
@click.option("--trace", is_flag=True, help="Trace the probe's threads into RUN.trace.")
@click.option("--no-report", is_flag=True, help="Write no report.html.")
@click.option("--no-open", is_flag=True, help="Do not open the report in a browser.")
@json_option
def run(plan: str | None, **options: Any) -> int:
    """Measure PLAN (a named plan, see `elbowroom plans`, or a TOML file)."""
    where = launch_options(options)
    if options["resume"]:
        _refuse_with_resume(plan, options)
        done = api.resume(
            options["resume"],
            patience=options["timeout"],
            retry_failed=options["retry_failed"],
            budget=options["budget"],
            report=not options["no_report"],
            **where,
        )
        return _show_done(done, options)
    if plan is None:
        raise UsageError(
            "no plan is given", field="plan", hint="name one of `elbowroom plans`, or --resume RUN"
        )
    if options["retry_failed"]:
        raise UsageError("is only valid with --resume", field="retry_failed", hint="add --resume RUN")
    shared = {
        "overrides": plan_overrides(options),
        "seed": options["seed"],
        "reverse": options["reverse"],
        **where,
        **virtual_options(options),
    }
    if options["dry_run"]:
        prepared = api.dry_run(plan, **shared)
        if options["as_json"]:
            print_json(api.measurement.dry_run_document(prepared))
        else:
            run_tables.print_dry_run(prepared)
        return 0
    done = api.run(
        plan,
        out=options["out"],
        patience=options["timeout"],
        command=("elbowroom", *sys.argv[1:]),
        trace=options["trace"],
        report=not options["no_report"],
        **shared,
    )
    return _show_done(done, options)


_FIXED_AT_START = (
    "out", "dry_run", "kernels", "comp_cores", "comm_core", "comp_node", "comm_node", "sizes", "nodes",
    "repeat", "settings", "seed", "reverse", "machine", "noise", "trace",
)  # fmt: skip


def _refuse_with_resume(plan: str | None, options: dict[str, Any]) -> None:
    """A resumed run measures what it was begun for; options that would change it are refused."""
    given = [name for name in _FIXED_AT_START if options[name] not in (None, False, ())]
    if plan is not None:
        given.insert(0, "plan")
    if given:
        raise UsageError(
            "cannot be given with --resume: a resumed run keeps its settings",
            field=given[0],
            hint="leave it out, or start a new run",
        )


def _show_done(done: Run, options: dict[str, Any]) -> int:
    if options["as_json"]:
        print_json(done.show())
    else:
        run_tables.print_run(done)
        if not options["no_report"]:
            click.echo(f"report: {done.path / 'report.html'}")
            _open_browser(done.path / "report.html", options)
    return 0 if done.verdict.trusted else NOISY


def _open_browser(report: Path, options: dict[str, Any]) -> None:
    wanted = not options["no_open"] and sys.stdout.isatty()
    if wanted and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        click.launch(str(report))


@command()
@click.argument("path", metavar="RUN")
@json_option
def show(path: str, as_json: bool) -> int:
    """Print a run: verdict, table of points, findings and notes."""
    opened = api.open(path)
    if as_json:
        print_json(opened.show())
    else:
        run_tables.print_run(opened)
    return 0


@command()
@click.argument("path", metavar="RUN")
@click.option("-o", "--out", type=Output(), metavar="FILE", help="Default: report.html in the run folder.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="M.json",
    help="Show this model; may be repeated; default: the models in the run folder.",
)
@click.option("--job", metavar="JOB.toml", help="Show this job on the contention map of the first model.")
@json_option
def report(path: str, out: str | None, models: tuple[str, ...], job: str | None, as_json: bool) -> int:
    """Write the report: one HTML file that works offline."""
    _print_files([api.open(path).report(out, models=models, job=job)], as_json)
    return 0


@command()
@click.argument("path", metavar="RUN")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["parquet", "csv", "json", "png", "svg", "curves"]),
    default="parquet",
    show_default=True,
)
@click.option(
    "-o", "--out", metavar="PATH", required=True, help="A file; a folder for the figures (png, svg)."
)
@json_option
def export(path: str, kind: Any, out: str, as_json: bool) -> int:
    """Write raw samples (parquet, csv), results (json), figures (png, svg), or curves to `import`."""
    _print_files(api.open(path).export(kind, out), as_json)
    return 0


def _print_files(files: list[Path], as_json: bool) -> None:
    if as_json:
        print_json(api.runs.FileList(files=tuple(map(str, files))))
    else:
        for file in files:
            # What is written to stdout is not followed by its name.
            click.echo(str(file), err=is_stdout(file))


@command()
@json_option
def plans(as_json: bool) -> int:
    """List the named plans and the question each answers."""
    loaded = api.plans()
    if as_json:
        print_json(api.measurement.plan_list(loaded))
    else:
        table = new_table(("plan", ""), ("question", "wrap"))
        for plan in loaded:
            table.add_row(plan.name, plan.question)
        console().print(table)
    return 0


@command("list")
@click.argument("folder", metavar="[FOLDER]", default="runs")
@json_option
def list_(folder: str, as_json: bool) -> int:
    """List the runs in FOLDER (default: runs): plan, date, state, verdict."""
    runs = api.list_runs(folder)
    if as_json:
        print_json(api.runs.RunList(folder=folder, runs=tuple(runs)))
    else:
        _print(folder, runs)
    return 0


def _print(folder: str, runs: Sequence[ListedRun]) -> None:
    if not runs:
        print_wrapped(f"There are no runs in {folder}.")
        return
    table = new_table(("run", "wrap"), ("plan", ""), ("date (UTC)", ""), ("state", ""), ("verdict", "wrap"))
    for run in runs:
        name = os.path.basename(os.path.abspath(run.path))
        date = run.created[:16].replace("T", " ")
        table.add_row(name, run.plan, date, run.state, _verdict(run))
    console().print(table)
    for run in runs:
        if run.state == "unreadable":
            print_wrapped(f"- {run.verdict}")


def _verdict(run: ListedRun) -> str:
    """The verdict in a word or two; `show` prints its sentence."""
    if run.trusted is None:
        return "-"
    if not run.trusted:
        return "not trusted"
    return "interference" if run.interference else "no interference"
