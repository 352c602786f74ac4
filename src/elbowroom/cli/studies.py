"""`elbowroom study`: a paper's figures and statements on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from elbowroom import api
from elbowroom.api.choices import launcher_names
from elbowroom.cli.console import console, new_table, print_json, print_wrapped
from elbowroom.cli.dry_runs import print_builds
from elbowroom.cli.options import DURATION, NOISY, REPEAT, command, json_option, mpi_option
from elbowroom.cli.run_options import launch_options, virtual_options
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.api.studies import StudyDocument, StudyPlan

COLOURS = {"confirmed": "green", "refuted": "red", "undecided": "yellow", "not testable here": ""}
_FIXED = (
    "out",
    "dry_run",
    "only",
    "quick",
    "repeat",
    "starts",
    "turbo",
    "governor",
    "budget",
    "seed",
    "machine",
    "noise",
    "launcher",
    "mpi",
    "hosts",
    "hostfile",
)


def _complete_paper(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in api.study_names() if name.startswith(incomplete)]


@command()
@click.argument("paper", required=False, shell_complete=_complete_paper)
@click.option(
    "-o",
    "--out",
    metavar="FOLDER",
    help="Folder of the study; default runs/study-PAPER. The same command continues it.",
)
@click.option("--resume", metavar="FOLDER", help="Continue the study in FOLDER with its settings.")
@click.option("--dry-run", is_flag=True, help="Print what this machine can show and judge, and the time.")
@click.option(
    "--only", multiple=True, metavar="LABEL", help="Only this figure or table: 'Fig. 4a'; may be repeated."
)
@click.option("--quick", is_flag=True, help="Few repetitions, short windows, fewer points.")
@click.option("--repeat", type=REPEAT, metavar="N", help="Repetitions of each point.")
@click.option(
    "--starts", type=REPEAT, metavar="K", help="Start each program anew K times, each with its share of N."
)
@click.option("--turbo", type=click.Choice(["on", "off"]), help="Set turbo so during runs about frequencies.")
@click.option("--governor", metavar="NAME", help="Set this governor during runs about frequencies.")
@click.option("--budget", type=DURATION, metavar="TIME", help="Time for all runs together: 30min, 4h.")
@click.option(
    "--launcher",
    metavar="NAME",
    help=f"{', '.join(launcher_names())}; default: that of the allocation, else local.",
)
@mpi_option
@click.option("--hosts", metavar="A,B", help="Hosts for mpiexec, srun, flux.")
@click.option("--hostfile", metavar="FILE", help="File of hosts for mpiexec, one per line.")
@click.option("--machine", metavar="MACHINE", help="Use a virtual machine: henri, FILE.toml or FILE.xml.")
@click.option("--noise", type=float, metavar="SHARE", help="With --machine: relative noise of its values.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order of points and of the noise.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of one repetition.",
)
@json_option
def study(paper: str | None, **options: Any) -> int:
    """Measure the runs behind the figures of PAPER, and judge its statements.

    PAPER: denis2021, langguth2018, swartvagher2022, tan2012.
    """
    if options["resume"] is not None:
        _refuse_with_resume(paper, options)
        return _show(api.study(resume=options["resume"], patience=options["timeout"]), options)
    if paper is None:
        known = ", ".join(api.study_names())
        raise UsageError("no paper is given", field="paper", hint=f"name one of {known}, or --resume FOLDER")
    shared = {
        "only": options["only"],
        "quick": options["quick"],
        "repeat": options["repeat"],
        "starts": options["starts"],
        "turbo": options["turbo"] or "",
        "governor": options["governor"] or "",
        "seed": options["seed"],
        **launch_options(options),
        **virtual_options(options),
    }
    if options["dry_run"]:
        planned = api.study_plan(paper, budget=options["budget"], **shared)
        if options["as_json"]:
            print_json(planned)
        else:
            _print_plan(planned)
        return 0
    done = api.study(
        paper, out=options["out"], budget=options["budget"], patience=options["timeout"], **shared
    )
    return _show(done, options)


def _refuse_with_resume(paper: str | None, options: dict[str, Any]) -> None:
    given = [name for name in _FIXED if options[name] not in (None, False, ())]
    if paper is not None:
        given.insert(0, "paper")
    if given:
        raise UsageError(
            "cannot be given with --resume: a resumed study keeps its settings",
            field=given[0],
            hint="leave it out, or start a new study",
        )


def _show(done: StudyDocument, options: dict[str, Any]) -> int:
    if options["as_json"]:
        print_json(done)
    else:
        _print_study(done)
    if any(run.state == "failed" for run in done.runs):
        return 1
    return 0 if done.trusted else NOISY


def _print_study(done: StudyDocument) -> None:
    print_wrapped(done.paper, style="bold")
    print_wrapped(api.studies.headline(done))
    for sentence in api.studies.warnings(done):
        print_wrapped(sentence)
    for exhibit in done.exhibits:
        print()
        print_wrapped(f"{exhibit.label}: {exhibit.title}", style="bold")
        if exhibit.instead:
            print_wrapped(f"{exhibit.instead}.", indent="  ")
        for statement in exhibit.statements:
            colour = COLOURS[statement.verdict]
            print_wrapped(f"{statement.verdict}: {statement.text}", indent="  ", style=colour)
            print_wrapped(f"paper: {statement.paper}", indent="    ")
            if statement.ours:
                print_wrapped(f"here: {statement.ours}", indent="    ")
            if statement.why:
                print_wrapped(f"because: {statement.why}", indent="    ")
    print()
    print_wrapped(f"report: {done.report}")


def _print_plan(planned: StudyPlan) -> None:
    print_wrapped(planned.paper, style="bold")
    where = " (virtual)" if planned.virtual else ""
    time = api.studies.duration(planned.seconds)
    print_wrapped(f"on {planned.machine}{where}, {planned.hosts} hosts: about {time}")
    print_builds(planned.builds)
    print()
    table = new_table(("run", ""), ("plan", ""), ("points", "right"), ("time", "right"), ("", "wrap"))
    for run in planned.runs:
        took = api.studies.duration(run.seconds) if run.points else "-"
        table.add_row(
            run.name, run.plan, str(run.points), took, f"cannot: {run.reason}" if run.reason else ""
        )
    console().print(table)
    print()
    for exhibit in planned.exhibits:
        shows = "can be shown" if exhibit.shown else "cannot be shown"
        count = f"{exhibit.judged} of {exhibit.statements} statements"
        judged = f", {count} can be judged" if exhibit.statements else ""
        print_wrapped(f"{exhibit.label}: {shows}{judged}", style="bold")
        for reason in exhibit.reasons:
            print_wrapped(reason, indent="  ")
