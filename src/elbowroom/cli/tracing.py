"""`elbowroom trace`: records what happened on every rank, and reads it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.commands import NOISY, _json, _Ordered, group
from elbowroom.cli.output import print_json
from elbowroom.cli.simulating_clocks import simulate_clocks

if TYPE_CHECKING:
    from elbowroom.api.trace_costs import Step
    from elbowroom.api.tracing import Merged, Recorded
    from elbowroom.launch.tracing import Tell

VERSION = 1
_COMMAND: Any = {"nargs": -1, "metavar": "-- CMD...", "type": click.UNPROCESSED}


@group.group(cls=_Ordered)
def trace() -> None:
    """What happened on every rank and thread, on one clock (docs/trace.md)."""


@trace.command()
@click.option(
    "-o", "--out", metavar="DIR", default="trace", show_default=True, help="Directory of the trace."
)
@click.option(
    "--categories", metavar="C,C", help="Record these only: mpi,message,task; default: all but poll."
)
@click.option(
    "--buffer",
    metavar="SIZE",
    default="4MiB",
    show_default=True,
    help="For each thread's events (32 B each).",
)
@click.option(
    "--policy",
    metavar="NAME",
    default="stop",
    show_default=True,
    help="Where a buffer is full: stop, overwrite, drain or grow.",
)
@click.option("--core", type=int, metavar="N", help="Of the thread that drains.")
@click.option(
    "--sync",
    "sync_seconds",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Compare clocks again at a barrier after so long; 0: at begin and end only.",
)
@click.option("--adapters", metavar="A,A", help="Some of mpi,starpu,omp; default: what fits the program.")
@click.option("--mpi", metavar="PREFIX", help="The program's MPI; default: its launcher's.")
@_json
@click.argument("command", **_COMMAND)
def record(command: tuple[str, ...], **options: Any) -> int:
    """Run CMD and record it: `elbowroom trace record -- mpirun -n 4 ./app`.

    The exit code is CMD's. MPI, StarPU and OpenMP are heard without compiling anything again.
    """
    from elbowroom import api
    from elbowroom.cli import trace_tables

    done = api.record_trace(
        command,
        options["out"],
        categories=_list(options["categories"]),
        buffer=options["buffer"],
        policy=options["policy"],
        core=options["core"],
        sync_seconds=options["sync_seconds"],
        adapters=_list(options["adapters"]),
        mpi=options["mpi"],
        # With --json what the program says is chatter: stdout is for the object.
        stdout=sys.stderr.fileno() if options["as_json"] else None,
    )
    if options["as_json"]:
        print_json(_recorded(done))
    else:
        trace_tables.print_recorded(done)
    return done.exit_code


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "-o", "--out", metavar="FILE", required=True, help="out.pftrace, .json, .otf2, .paje, .parquet, .html."
)
@click.option(
    "--to", metavar="FORMAT", help="pftrace, json, otf2, paje, parquet, html or dot; default: by ending."
)
@click.option(
    "--from", "begin", type=float, metavar="S", help="A timeline (.html) from here on, s since the start."
)
@click.option("--until", "end", type=float, metavar="S", help="A timeline up to here.")
@click.option("--categories", metavar="C,C", help="A timeline of these only.")
@_json
def merge(directory: str, out: str, to: str | None, as_json: bool, **part: Any) -> int:
    """Merge the trace of all ranks into one file, on one clock."""
    from elbowroom import api

    shown = {"begin_s": part["begin"], "end_s": part["end"], "categories": _list(part["categories"]) or ()}
    with _bar("merging") as tell:
        done = api.merge_trace(directory, out, to=to, tell=tell, **shown)
    return _show_merged(done, as_json)


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--bins", type=int, default=100, show_default=True, metavar="N", help="Parts of the run's time."
)
@click.option("--figure", metavar="FIGURE", help="Draw .png or .svg: by type, over time, both.")
@_json
def stat(directory: str, bins: int, figure: str | None, as_json: bool) -> int:
    """Count events by type and over time."""
    from elbowroom import api
    from elbowroom.cli import trace_tables

    found = api.trace_stat(directory, bins)
    if figure is not None:
        api.save_trace_figure(found, figure, title=directory)
    if as_json:
        print_json({"schema": "elbowroom-trace-stat", "version": VERSION, **_plain(found)})
    else:
        trace_tables.print_stat(found)
        if figure is not None:
            click.echo(f"figure: {figure}")
    return 0


@trace.command()
@click.argument("directory", metavar="DIR")
@_json
def check(directory: str, as_json: bool) -> int:
    """Say whether a trace is whole and its times can be trusted; exit code 3 where not."""
    from elbowroom import api
    from elbowroom.cli import trace_tables

    found = api.check_trace(directory)
    if as_json:
        print_json(_plain(found.check))
    else:
        trace_tables.print_check(found.check, trusted=found.trusted)
    return 0 if found.trusted else NOISY


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option("-o", "--out", metavar="FILE.dot", required=True)
@_json
def dag(directory: str, out: str, as_json: bool) -> int:
    """Write the graph of tasks and their dependencies as DOT."""
    from elbowroom import api

    with _bar("merging") as tell:
        done = api.merge_trace(directory, out, to="dot", tell=tell)
    return _show_merged(done, as_json)


@trace.command()
@click.argument("directory", metavar="DIR")
@click.option("--report", metavar="FILE.html", help="Offsets, drifts and error bars over time, as a page.")
@_json
def sync(directory: str, report: str | None, as_json: bool) -> int:
    """Tell how the clocks of all ranks differ, and how sure that is."""
    from elbowroom import api
    from elbowroom.cli import trace_tables

    found = api.trace_sync(directory)
    if report is not None:
        api.save_sync_report(directory, report)
    if as_json:
        print_json({"schema": "elbowroom-trace-sync", "version": VERSION, **_plain(found)})
    else:
        trace_tables.print_sync(found)
        if report is not None:
            click.echo(f"report: {report}")
    return 0


@trace.command()
@click.option("--repeat", type=int, default=10, show_default=True, metavar="N", help="Runs of each case.")
@click.option("--categories", metavar="SET;SET", help="Sets: mpi;mpi,task; default: each by itself.")
@click.option("--threads", metavar="N,N", help="Numbers of threads; for {threads} in CMD, if there.")
@click.option(
    "--metric", default="wall", show_default=True, metavar="wall|REGEX", help="Or a number that CMD prints."
)
@click.option("--rate", is_flag=True, help="More of the metric is better.")
@click.option(
    "--limit", type=float, default=5.0, show_default=True, metavar="PERCENT", help="What it may cost."
)
@click.option("--buffer", metavar="SIZE", default="4MiB", show_default=True, help="As of `record`.")
@click.option("--adapters", metavar="A,A", help="As of `record`.")
@click.option("--mpi", metavar="PREFIX", help="As of `record`.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the order of runs.")
@click.option("-o", "--out", metavar="FILE", help="Figures: .svg, .png, or a page: .html.")
@_json
@click.argument("command", **_COMMAND)
def overhead(command: tuple[str, ...], **options: Any) -> int:
    """Say what recording costs CMD, and whether its trace can be trusted.

    Runs CMD without and with a recorder in turns; exit code 3 where the machine is too noisy to tell.
    """
    from elbowroom import api
    from elbowroom.cli import trace_tables
    from elbowroom.plan.sizes import parse_cores

    threads = options["threads"]
    with _steps() as step:
        found = api.trace_overhead(
            command,
            repeat=options["repeat"],
            categories=options["categories"],
            threads=None if threads is None else parse_cores(threads, "threads"),
            metric=options["metric"],
            rate=options["rate"],
            limit=options["limit"] / 100,
            buffer=options["buffer"],
            adapters=_list(options["adapters"]),
            mpi=options["mpi"],
            seed=options["seed"],
            step=step,
        )
    if options["out"] is not None:
        api.save_overhead_figure(found, options["out"])
    if options["as_json"]:
        print_json(_plain(found))
    else:
        trace_tables.print_overhead(found)
        if options["out"] is not None:
            click.echo(f"figure: {options['out']}")
    return 0 if found.decided else NOISY


def _show_merged(done: Merged, as_json: bool) -> int:
    from elbowroom.cli import trace_tables

    if as_json:
        print_json(
            {
                "schema": "elbowroom/trace-merge",
                "version": VERSION,
                "file": str(done.file),
                "trusted": done.trusted,
                "check": _plain(done.check),
            }
        )
    else:
        trace_tables.print_merged(done)
    return 0 if done.trusted else NOISY


def _recorded(done: Recorded) -> dict[str, Any]:
    return {
        "schema": "elbowroom/trace-record",
        "version": VERSION,
        "directory": str(done.directory),
        "exit_code": done.exit_code,
        "seconds": done.seconds,
        "adapters": list(done.adapters),
        "mpi": done.mpi,
        "buffer": done.buffer,
        "notes": list(done.notes),
        "check": None if done.check is None else _plain(done.check),
        "stat": None if done.stat is None else _plain(done.stat),
    }


def _plain(value: Any) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(value)
    return found


def _list(text: str | None) -> Any:
    return None if text is None else [word.strip() for word in text.split(",")]


trace.add_command(simulate_clocks)


@contextlib.contextmanager
def _bar(what: str) -> Iterator[Tell | None]:
    """A bar with an ETA on a terminal; None, and nothing to be seen, elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(bar_width=30), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def _steps() -> Iterator[Step]:
    """The same bar for runs, drawn between them only: it must not disturb what is measured."""
    from elbowroom.campaign.progress import Progress

    with contextlib.ExitStack() as stack:
        shown: list[Progress] = []

        def step(done: int, total: int, seconds: float) -> None:
            if not done:
                shown.append(stack.enter_context(Progress(total, seconds, _tell)))
            else:
                shown[0].step("")

        yield step


def _tell(text: str) -> None:
    print(f"elbowroom: {text}", file=sys.stderr, flush=True)
