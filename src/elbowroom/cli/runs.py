"""`elbowroom run`, `show`, `report`, `export`, `list`, `plans` and `compare`: runs, what is measured, and
what changed.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import ENDINGS, FORMATS, PENALTIES, launcher_names
from elbowroom.api.shell import is_stdout
from elbowroom.cli import run_tables
from elbowroom.cli.console import console, new_table, print_json, print_wrapped, styled
from elbowroom.cli.options import (
    DURATION,
    NOISY,
    REPEAT,
    Output,
    check_ending,
    command,
    json_option,
    mpi_option,
)
from elbowroom.cli.run_options import launch_options, plan_overrides, virtual_options
from elbowroom.errors import UsageError
from elbowroom.quantities import number

if TYPE_CHECKING:
    from rich.table import Table

    from elbowroom.api.measurement import Change
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
    "--starts", type=REPEAT, metavar="K", help="Start the program anew K times, each with its share of N."
)
@click.option(
    "--budget",
    type=DURATION,
    metavar="TIME",
    help="Time from the command to the report: 60s, 2min. The most informative points come first.",
)
@click.option("--quick", is_flag=True, help="Fewer points; plans gpu and gpu-overlap.")
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
    "repeat", "starts", "quick", "settings", "seed", "reverse", "machine", "noise", "trace",
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
@click.option(
    "--tails", is_flag=True, help="Print percentiles of latencies and stalls in place of the points."
)
@json_option
def show(path: str, tails: bool, as_json: bool) -> int:
    """Print a run: verdict, table of points, findings and notes."""
    opened = api.open(path)
    if as_json:
        print_json(opened.show())
    elif tails:
        run_tables.print_tails(opened)
    else:
        run_tables.print_run(opened)
    return 0


@command()
@click.argument("paths", metavar="RUN [RUN]...", nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=Output(".html", ".htm", bare=True),
    metavar="FILE",
    help="Default: report.html in the run folder.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="M.json",
    help="Show this model; may be repeated; default: the models in the run folder.",
)
@click.option("--job", metavar="JOB.toml", help="Show this job on the contention map of the first model.")
@json_option
def report(
    paths: tuple[str, ...], out: str | None, models: tuple[str, ...], job: str | None, as_json: bool
) -> int:
    """Write the report: one HTML file that works offline.

    Several runs of a plan, on different numbers of nodes of one machine, are joined into one report.
    """
    if len(paths) == 1:
        _print_files([api.open(paths[0]).report(out, models=models, job=job)], as_json)
        return 0
    for field, value in (("model", models), ("job", job)):
        if value:
            raise UsageError(
                "is only valid with a single run", field=field, hint="leave it out, or name one run"
            )
    if out is None:
        raise UsageError(
            "is missing: a joined report is in no run folder", field="out", hint="add -o joined.html"
        )
    joined = api.join_runs(*paths)
    files = [joined.report(out)]
    if not as_json:
        run_tables.print_joined(joined)
    _print_files(files, as_json)
    return 0


@command()
@click.argument("path", metavar="RUN|M.json")
@click.option(
    "--format",
    "kind",
    type=click.Choice((*FORMATS, PENALTIES)),
    metavar="FORMAT",
    help="One of those above.",
    default="parquet",
    show_default=True,
)
@click.option(
    "-o", "--out", metavar="PATH", required=True, help="A file; a folder for the figures (png, svg)."
)
@json_option
def export(path: str, kind: Any, out: str, as_json: bool) -> int:
    """Write samples, results or figures in a format that other programs read.

    Raw samples: parquet, csv. Results: json, osu (tables of the OSU micro-benchmarks), bmf (Bencher),
    openmetrics (Prometheus), junit (CI servers). Figures: png, svg. The topology with measured memory
    attributes: hwloc. Curves to `import`: curves. Of the model M.json of an accelerator: gpu-penalties, how
    much longer kernels and copies take beside each other.
    """
    if kind in ENDINGS:
        check_ending(out, ENDINGS[kind], bare=True, wrong=f"is no name of a file of the format {kind}")
    if kind == PENALTIES:
        _print_files([api.gpu_models.export_penalties(api.load_model(path), out)], as_json)
        return 0
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


@command()
@click.argument("first", metavar="A")
@click.argument("others", metavar="B...", nargs=-1, required=True)
@click.option(
    "--at-least", default="1%", show_default=True, metavar="PERCENT", help="Smallest change that is reported."
)
@click.option(
    "--fail-above", metavar="PERCENT", help="Exit with code 1 if a value got worse by more than this."
)
@click.option("--all", "every", is_flag=True, help="Also print values that did not change.")
@json_option
def compare(
    first: str, others: tuple[str, ...], at_least: str, fail_above: str | None, every: bool, as_json: bool
) -> int:
    """Compare runs with run A: what changed, by how much, and whether it improved."""
    least = _percent(at_least, "at_least")
    limit = None if fail_above is None else _percent(fail_above, "fail_above")
    runs = [api.open(path) for path in (first, *others)]
    changes = api.compare(*runs, at_least=least)
    _warn_of_untrusted(runs)
    if as_json:
        print_json(api.measurement.comparison(runs, changes, least, sentence(changes, least)))
    else:
        print_compare(runs, changes, least, every)
    return int(limit is not None and bool(api.measurement.worse(changes, limit)))


def _warn_of_untrusted(runs: Sequence[Run]) -> None:
    """One line for each reason, with all runs that it holds for."""
    reasons: dict[str, dict[str, None]] = {}
    for run in runs:
        if not run.verdict.trusted:
            reasons.setdefault(run.verdict.reasons[0], {})[str(run.path)] = None
    for reason, paths in reasons.items():
        verb = "are" if len(paths) > 1 else "is"
        click.echo(f"warning: {', '.join(paths)} {verb} not trusted: {reason}", err=True)


def _percent(text: str, field: str) -> float:
    """The share that `5%` or `5` says. UsageError where it says none."""
    number = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?%?", text)
    value = float(number[1]) / 100 if number else -1.0
    if not 0 <= value < 1:
        raise UsageError("is not a percentage", field=field, value=text, hint="0 to less than 100, as in 5%")
    return value


def sentence(changes: Sequence[Change], at_least: float) -> str:
    """What changed, in one sentence."""
    significant = [change for change in changes if change.significant]
    if not changes:
        return "No verdict: no value has five repetitions in both runs, so no change can be detected."
    if not significant:
        return f"No change of {100 * at_least:.3g} % or more is shown in {len(changes)} values."
    worsened = sum(change.better == "a" for change in significant)
    largest = max(significant, key=lambda change: abs(change.change))
    return (
        f"{len(significant)} of {len(changes)} values changed, {worsened} for the worse; the largest change: "
        f"{largest.side} {largest.phase} of {largest.point}, {largest.change:+.1%} "
        f"({largest.low:+.1%} to {largest.high:+.1%})."
    )


def print_compare(runs: Sequence[Run], changes: Sequence[Change], at_least: float, every: bool) -> None:
    """The sentence of each run against the first, then what changed by point; all values with `every`."""
    print_wrapped(f"a = {runs[0].path}{' (virtual)' * runs[0].machine.virtual}")
    for place, run in enumerate(runs[1:], 1):
        own = [change for change in changes if change.run == place]
        shown = [change for change in own if every or change.significant]
        print_wrapped(f"b = {run.path}{' (virtual)' * run.machine.virtual}")
        print_wrapped(sentence(own, at_least), style="bold")
        for point, members in itertools.groupby(shown, key=lambda change: change.point):
            print()
            print_wrapped(point, style="bold")
            console().print(_changes_table(list(members)))
        if shown:
            print()
    print_wrapped(
        "Reported: changes whose 95 % interval excludes 0, at a false discovery rate of 5 %, of at least "
        f"{100 * at_least:.3g} %. Less is better for durations (us), more for everything else."
    )


def _changes_table(changes: Sequence[Change]) -> Table:
    """Columns as wide for every point, so that they line up down the page."""
    table = new_table()
    table.show_header = False
    widths = (
        ("left", 6),
        ("left", 8),
        ("left", 7),
        ("right", 8),
        ("right", 8),
        ("right", 8),
        ("left", 18),
        ("left", 8),
    )
    for justify, width in widths:
        table.add_column(justify="right" if justify == "right" else "left", width=width, no_wrap=True)
    for change in changes:
        unit = change.metric.partition("(")[2].rstrip(")")
        table.add_row(
            f"  {change.side}",
            change.phase,
            unit,
            number(change.a, 3),
            number(change.b, 3),
            styled(f"{change.change:+.1%}", "bold" if change.significant else ""),
            f"{change.low:+.1%}..{change.high:+.1%}",
            {"a": "a better", "b": "b better"}.get(change.better, "same"),
        )
    return table
