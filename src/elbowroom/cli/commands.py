"""The commands and their options. Bodies import what they need, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elbowroom import __version__
from elbowroom.cli.output import print_json
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.runs import Run
    from elbowroom.plan.reading import Overrides

NOISY = 3


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class _Command(click.Command):
    """Settings of its own: click keeps the help option of whichever context asked for it first."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"context_settings": _SETTINGS, **options})


class _Ordered(click.Group):
    """Lists commands in the order of a first visit, not of the alphabet."""

    command_class = _Command

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"context_settings": _SETTINGS, **options})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Ordered)
@click.version_option(__version__, prog_name="elbowroom")
def group() -> None:
    """How much do computation and communication slow each other down here?

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the machine failed, 2 the request
    cannot be met, 3 measured, but too noisy to trust.
    """


_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, errors included.")
_mpi = click.option(
    "--mpi", metavar="MPI", help="embedded (default), openmpi, mpich, or a prefix: /opt/openmpi."
)


@group.command()
@_mpi
@_json
def doctor(mpi: str | None, as_json: bool) -> int:
    """Look at this machine: each line ok, warn or n/a, with its mend."""
    from elbowroom import api
    from elbowroom.cli import tables

    checks = api.doctor(mpi=mpi)
    if as_json:
        print_json({"schema": "elbowroom/doctor", "version": 1, "checks": checks})
    else:
        tables.print_doctor(checks)
    return 0


@group.command()
@click.argument("plan", required=False)
@click.option(
    "--out", metavar="RUN", help="Folder of the run; default runs/PLAN-DATE-TIME. Never overwritten."
)
@click.option("--resume", metavar="RUN", help="Go on with an interrupted run.")
@click.option("--retry-failed", is_flag=True, help="With --resume: measure failed repetitions again.")
@click.option("--dry-run", is_flag=True, help="Print what would be done: command lines, time, n/a notes.")
@click.option(
    "--launcher",
    metavar="NAME",
    help="local, mpiexec, srun, flux, pbs or replay:RUN; default: that of the allocation, else local.",
)
@_mpi
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="Hosts for mpiexec, one a line.")
@click.option(
    "--machine",
    metavar="MACHINE",
    help="A virtual machine answers: henri (see `elbowroom machine list`), FILE.toml, FILE.xml.",
)
@click.option(
    "--noise", type=float, metavar="SHARE", help="With --machine: noise of its values; default 0.01 (1 %)."
)
@click.option(
    "--kernels", metavar="K,K", help="Computing kernels: triad,prime. `none` is communication only."
)
@click.option("--comp-cores", metavar="LIST", help="Computing cores: 1-7.")
@click.option("--comm-core", type=int, metavar="CORE", help="Core of the communication thread.")
@click.option("--comp-node", type=int, metavar="NODE", help="NUMA node of the computations' data.")
@click.option("--comm-node", type=int, metavar="NODE", help="NUMA node of the communications' data.")
@click.option("--sizes", metavar="S,S", help="Message sizes: 4,64KiB,64MB (MB = 1e6 B, MiB = 2^20 B).")
@click.option("--nodes", metavar="N,N", help="Of an application on a simulated cluster: 4,8,16.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Repetitions of each point.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of the plan; may be repeated."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the random order of points; of the noise.")
@click.option("--reverse", is_flag=True, help="Reverse the order inside each repetition.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Patience for one repetition.",
)
@click.option("--trace", is_flag=True, help="Record what the probe's threads do, into RUN.trace.")
@click.option("--no-report", is_flag=True, help="Write no report.html.")
@click.option("--no-open", is_flag=True, help="Do not open the report in a browser.")
@_json
def run(plan: str | None, **options: Any) -> int:
    """Measure PLAN (a named plan, see `elbowroom plans`, or a TOML file)."""
    from elbowroom import api
    from elbowroom.cli import tables

    where = _where(options)
    if options["resume"]:
        _refuse_with_resume(plan, options)
        done = api.resume(
            options["resume"],
            patience=options["timeout"],
            retry_failed=options["retry_failed"],
            report=not options["no_report"],
            **where,
        )
        return _show_done(done, options)
    if plan is None:
        raise UsageError(
            "no plan is given", field="plan", mend="name one of `elbowroom plans`, or --resume RUN"
        )
    if options["retry_failed"]:
        raise UsageError("goes with --resume only", field="retry_failed", mend="add --resume RUN")
    shared = {
        "overrides": _overrides(options),
        "seed": options["seed"],
        "reverse": options["reverse"],
        **where,
        **_simulated(options),
    }
    if options["dry_run"]:
        prepared = api.dry_run(plan, **shared)
        if options["as_json"]:
            print_json(tables.dry_run_object(prepared))
        else:
            tables.print_dry_run(prepared)
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


def _where(options: dict[str, Any]) -> dict[str, Any]:
    hosts = tuple(host.strip() for host in (options["hosts"] or "").split(",") if host.strip())
    return {
        "launcher": options["launcher"],
        "mpi": options["mpi"],
        "hosts": hosts,
        "hostfile": options["hostfile"],
    }


def _simulated(options: dict[str, Any]) -> dict[str, Any]:
    return {"machine": options["machine"], "noise": options["noise"]}


def _overrides(options: dict[str, Any]) -> Overrides:
    from elbowroom.plan.reading import Overrides
    from elbowroom.plan.sizes import parse_cores, parse_size

    settings = {}
    for setting in options["settings"]:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                "is no KEY=VALUE", field="set", value=setting, mend="for instance --set window=0.2"
            )
        settings[key.strip()] = value.strip()
    if options.get("nodes") is not None:
        settings["nodes"] = options["nodes"]
    kernels, cores, sizes = options["kernels"], options["comp_cores"], options["sizes"]
    return Overrides(
        kernels=None if kernels is None else tuple(_words(kernels)),
        comp_cores=None if cores is None else parse_cores(cores),
        comm_core=options["comm_core"],
        comp_node=options["comp_node"],
        comm_node=options["comm_node"],
        sizes=None if sizes is None else tuple(parse_size(size) for size in _words(sizes)),
        repeat=options["repeat"],
        settings=settings,
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


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
            "cannot be given with --resume: the run goes on as it was begun",
            field=given[0],
            mend="leave it out, or start a new run",
        )


def _show_done(done: Run, options: dict[str, Any]) -> int:
    from elbowroom.cli import tables

    if options["as_json"]:
        print_json(done.show())
    else:
        tables.print_run(done)
        if not options["no_report"]:
            click.echo(f"report: {done.path / 'report.html'}")
            _open_browser(done.path / "report.html", options)
    return 0 if done.verdict.trusted else NOISY


def _open_browser(report: Path, options: dict[str, Any]) -> None:
    wanted = not options["no_open"] and sys.stdout.isatty()
    if wanted and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        click.launch(str(report))


@group.command()
@click.argument("path", metavar="RUN")
@_json
def show(path: str, as_json: bool) -> int:
    """Print a run: verdict, table of points, findings, notes."""
    from elbowroom import api
    from elbowroom.cli import tables

    found = api.open(path)
    if as_json:
        print_json(found.show())
    else:
        tables.print_run(found)
    return 0


@group.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@_json
def compare(first: str, second: str, as_json: bool) -> int:
    """Compare run B with run A: relative change with interval, significant or not."""
    from elbowroom import api
    from elbowroom.cli import tables

    a, b = api.open(first), api.open(second)
    changes = api.compare(a, b)
    for found in (a, b):
        if not found.verdict.trusted:
            click.echo(f"warning: {found.path} is not trusted: {found.verdict.reasons[0]}", err=True)
    if as_json:
        print_json(tables.compare_object(a, b, changes))
    else:
        tables.print_compare(a, b, changes)
    return 0


@group.command()
@click.argument("path", metavar="RUN")
@click.option("-o", "--out", metavar="FILE", help="Default: report.html in the run folder.")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="M.json",
    help="Show this model (several times: several); default: those in the run folder.",
)
@click.option(
    "--job", metavar="JOB.toml", help="Show this job on the contention map of the first of its models."
)
@_json
def report(path: str, out: str | None, models: tuple[str, ...], job: str | None, as_json: bool) -> int:
    """Write the report: one HTML file that needs no network."""
    from elbowroom import api

    _print_files([api.open(path).report(out, models=models, job=job)], as_json)
    return 0


@group.command()
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
@_json
def export(path: str, kind: Any, out: str, as_json: bool) -> int:
    """Write raw samples (parquet, csv), results (json), figures (png, svg), or curves to `import`."""
    from elbowroom import api

    _print_files(api.open(path).export(kind, out), as_json)
    return 0


def _print_files(files: list[Path], as_json: bool) -> None:
    if as_json:
        print_json({"schema": "elbowroom/files", "version": 1, "files": [str(file) for file in files]})
    else:
        for file in files:
            click.echo(str(file))


@group.command()
@_json
def plans(as_json: bool) -> int:
    """List the named plans and the question each answers."""
    from elbowroom.cli import tables
    from elbowroom.plan.reading import load, names

    found = [load(name) for name in names()]
    if as_json:
        listed = [
            {"name": plan.name, "experiment": plan.experiment, "question": plan.question} for plan in found
        ]
        print_json({"schema": "elbowroom/plans", "version": 1, "plans": listed})
    else:
        tables.print_plans(found)
    return 0
