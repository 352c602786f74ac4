"""`elbowroom trace`: records what happened on every rank, and reads it."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import format_names
from elbowroom.api.shell import is_stdout
from elbowroom.cli import trace_tables
from elbowroom.cli.console import print_json
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import FIGURE, NOISY, Group, Output, json_option
from elbowroom.cli.trace_flushes import trace_flushes
from elbowroom.cli.trace_overlap import trace_overlap
from elbowroom.cli.trace_progress import name_list, progress_bar, run_steps
from elbowroom.quantities import parse_cores

if TYPE_CHECKING:
    from elbowroom.api.traces import Merged


_COMMAND: Any = {"nargs": -1, "metavar": "-- CMD...", "type": click.UNPROCESSED}


@click.group(cls=Group)
def trace() -> None:
    """Record, merge, check and analyse traces of programs (`elbowroom help trace`)."""


@trace.command()
@click.option(
    "-o", "--out", metavar="DIR", default="trace", show_default=True, help="Directory of the trace."
)
@click.option(
    "--categories", metavar="C,C", help="Categories to record: mpi,message,task; default: all but poll."
)
@click.option("--without", metavar="T,T", help="Types of events to leave out, as `trace stat` names them.")
@click.option(
    "--buffer",
    metavar="SIZE",
    help="Size of each thread's buffer (32 B per event); default: 1 to 32 MiB, as memory allows.",
)
@click.option(
    "--policy",
    metavar="NAME",
    default="stop",
    show_default=True,
    help="What to do when a buffer is full: stop, overwrite, drain, grow or flush.",
)
@click.option("--core", type=int, metavar="N", help="Core of the thread that drains the buffers.")
@click.option(
    "--sync",
    "sync_seconds",
    type=float,
    metavar="SECONDS",
    help="Compare the clocks again at a barrier after this time; 0: only at start and end; default: 10.",
)
@click.option(
    "--clock",
    metavar="NAME",
    default="best",
    show_default=True,
    help="best, or monotonic: CLOCK_MONOTONIC, compared once, as a reference.",
)
@click.option(
    "--adapters",
    metavar="A,A",
    help="Adapters to load: mpi,starpu,omp; default: those that the program needs.",
)
@click.option("--mpi", metavar="PREFIX", help="MPI of the program; default: that of its launcher.")
@dry_run_option
@json_option
@click.argument("command", **_COMMAND)
def record(command: tuple[str, ...], dry_run: bool, **options: Any) -> int:
    """Run CMD and record a trace: `elbowroom trace record -- mpirun -n 4 ./app`.

    The exit code is that of CMD. MPI, StarPU and OpenMP are traced without recompiling the program.
    """
    settings = {
        "categories": name_list(options["categories"]),
        "without": name_list(options["without"]) or (),
        "adapters": name_list(options["adapters"]),
        **{name: options[name] for name in ("buffer", "policy", "core", "sync_seconds", "clock", "mpi")},
    }
    if dry_run:
        return show_planned(
            api.trace_recorder.plan_trace(command, options["out"], **settings), options["as_json"]
        )
    # With --json what the program says is chatter: stdout is for the object.
    stdout = sys.stderr.fileno() if options["as_json"] else None
    done = api.record_trace(command, options["out"], stdout=stdout, **settings)
    if options["as_json"]:
        print_json(done.document())
    else:
        # stdout is the program's.
        with contextlib.redirect_stdout(sys.stderr):
            trace_tables.print_recorded(done)
    return done.exit_code


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "-o",
    "--out",
    type=Output(),
    metavar="FILE",
    required=True,
    help="out.pftrace, .json, .otf2, .paje, .parquet, .html.",
)
@click.option("--to", metavar="FORMAT", help=f"{', '.join(format_names())}; default: by the extension.")
@click.option(
    "--from",
    "begin",
    type=float,
    metavar="S",
    help="With .html: start of the timeline, in seconds since the start of the trace.",
)
@click.option("--until", "end", type=float, metavar="S", help="With .html: end of the timeline.")
@click.option("--categories", metavar="C,C", help="With .html: categories to show.")
@json_option
def merge(directory: str, out: str, to: str | None, as_json: bool, **part: Any) -> int:
    """Merge the traces of all ranks into one file, on one clock."""
    shown = {
        "begin_s": part["begin"],
        "end_s": part["end"],
        "categories": name_list(part["categories"]) or (),
    }
    with progress_bar("merging") as tell:
        done = api.merge_trace(directory, out, to=to, tell=tell, **shown)
    return _show_merged(done, as_json)


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--bins",
    type=int,
    default=100,
    show_default=True,
    metavar="N",
    help="Number of intervals that the time is divided into.",
)
@click.option(
    "-o",
    "--out",
    "--figure",
    "figure",
    type=FIGURE,
    metavar="FIGURE",
    help="Draw a figure: .png or .svg.",
)
@json_option
def stat(directory: str, bins: int, figure: str | None, as_json: bool) -> int:
    """Count events by type and over time; exit code 3 if the trace cannot be trusted."""
    counted = api.trace_stat(directory, bins)
    if figure is not None:
        api.save_trace_figure(counted, figure, title=directory)
    if as_json:
        print_json(counted)
    else:
        trace_tables.print_stat(counted)
        if figure is not None:
            click.echo(f"figure: {figure}")
    return NOISY if counted.doubts else 0


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--bins",
    type=int,
    default=100,
    show_default=True,
    metavar="N",
    help="Number of intervals that the time is divided into.",
)
@click.option(
    "-o", "--out", "--figure", "figure", type=FIGURE, metavar="FIGURE", help="Draw figures: .png or .svg."
)
@click.option("--tables", metavar="FOLDER", help="Write tasks.parquet and communications.parquet there.")
@json_option
def activity(directory: str, bins: int, figure: str | None, tables: str | None, as_json: bool) -> int:
    """Show tasks, states of workers and durations of messages over time."""
    with progress_bar("reading") as tell:
        shown = api.trace_activity(directory, bins, tell, tables)
    if figure is not None:
        shown.save_figure(figure, title=directory)
    written = shown.save_tables(tables) if tables is not None else ()
    if as_json:
        print_json(shown.over_time)
    else:
        trace_tables.print_activity(shown.over_time, trusted=shown.trusted)
        for name in (*((figure,) if figure is not None else ()), *map(str, written)):
            click.echo(f"written: {name}")
    return 0 if shown.trusted else NOISY


@trace.command()
@click.argument("directory", metavar="DIR")
@json_option
def check(directory: str, as_json: bool) -> int:
    """Check whether a trace is complete and its times can be trusted; exit code 3 if not."""
    checked = api.check_trace(directory)
    if as_json:
        print_json(checked.check)
    else:
        trace_tables.print_check(checked.check, trusted=checked.trusted)
    return 0 if checked.trusted else NOISY


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option("-o", "--out", type=Output(".dot", ".gv", bare=True), metavar="FILE.dot", required=True)
@json_option
def dag(directory: str, out: str, as_json: bool) -> int:
    """Write the graph of tasks and their dependencies as DOT."""
    with progress_bar("merging") as tell:
        done = api.merge_trace(directory, out, to="dot", tell=tell)
    return _show_merged(done, as_json)


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "-o",
    "--out",
    "--report",
    "report",
    type=Output(".html", ".htm", bare=True),
    metavar="FILE.html",
    help="Write a page with offsets, drifts and error bounds over time.",
)
@json_option
def sync(directory: str, report: str | None, as_json: bool) -> int:
    """Report the clock offsets of all ranks with error bounds; exit code 3 if they cannot be determined."""
    clocks = api.trace_sync(directory)
    if report is not None:
        api.save_sync_report(directory, report)
    if as_json:
        print_json(clocks)
    else:
        trace_tables.print_sync(clocks)
        if report is not None:
            click.echo(f"report: {report}")
    return NOISY if clocks.doubts else 0


@trace.command()
@click.option(
    "--repeat",
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="Number of runs of each set of categories.",
)
@click.option(
    "--categories",
    metavar="SET;SET",
    help="Sets of categories: mpi;mpi,task; default: each category by itself.",
)
@click.option("--threads", metavar="N,N", help="Numbers of threads; replace {threads} in CMD.")
@click.option(
    "--metric",
    default="wall",
    show_default=True,
    metavar="wall|REGEX",
    help="Wall time, or a pattern of a number that CMD prints.",
)
@click.option("--rate", is_flag=True, help="The metric is a rate: higher is better.")
@click.option(
    "--limit",
    type=float,
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="Largest overhead that is acceptable.",
)
@click.option("--buffer", metavar="SIZE", default="4MiB", show_default=True, help="As in `record`.")
@click.option("--adapters", metavar="A,A", help="As in `record`.")
@click.option("--mpi", metavar="PREFIX", help="As in `record`.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of the order of runs.")
@click.option(
    "-o",
    "--out",
    type=Output(".svg", ".png", ".html"),
    metavar="FILE",
    help="Draw a figure (.svg, .png), or write a page (.html).",
)
@dry_run_option
@json_option
@click.argument("command", **_COMMAND)
def overhead(command: tuple[str, ...], dry_run: bool, **options: Any) -> int:
    """Measure the overhead of recording CMD, and whether its trace can be trusted.

    Runs CMD alternately with and without a recorder. Exit code 3 means that the machine is too noisy.
    """
    threads = options["threads"]
    settings = {
        "threads": None if threads is None else parse_cores(threads, "threads"),
        "limit": options["limit"] / 100,
        "adapters": name_list(options["adapters"]),
        **{name: options[name] for name in ("repeat", "categories", "metric", "buffer", "mpi")},
    }
    if dry_run:
        return show_planned(api.recording_cost.plan_overhead(command, **settings), options["as_json"])
    with run_steps() as step:
        costs = api.trace_overhead(command, rate=options["rate"], seed=options["seed"], step=step, **settings)
    if options["out"] is not None:
        api.save_overhead_figure(costs, options["out"])
    if options["as_json"]:
        print_json(costs)
    else:
        trace_tables.print_overhead(costs)
        if options["out"] is not None:
            click.echo(f"figure: {options['out']}")
    return 0 if costs.decided else NOISY


def _show_merged(done: Merged, as_json: bool) -> int:
    beside = contextlib.redirect_stdout(sys.stderr) if is_stdout(done.file) else contextlib.nullcontext()
    with beside:
        if as_json:
            file = str(done.file)
            print_json(api.traces.MergeDocument(file=file, trusted=done.trusted, check=done.check))
        else:
            trace_tables.print_merged(done)
    return 0 if done.trusted else NOISY


trace.add_command(trace_overlap)
trace.add_command(trace_flushes)
