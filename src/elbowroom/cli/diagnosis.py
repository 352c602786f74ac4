"""`elbowroom diagnose`: from a program to advice."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from elbowroom import api
from elbowroom.cli import blas
from elbowroom.cli.console import print_json, print_wrapped
from elbowroom.cli.dry_runs import dry_run_option, show_planned
from elbowroom.cli.options import DURATION, NOISY, REPEAT, Output, command, json_option
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.quantities import format_size, percent, plural, short_time
from elbowroom.verbs.advise_tables import print_advice, print_compared

if TYPE_CHECKING:
    from elbowroom.api.diagnosis import Diagnosis, StepFacts
    from elbowroom.api.profiled_job import DiagnosisOptions

LITTLE = 0.05
"""A smaller share of a step is not mentioned."""
ORIGINS = {
    "given": "given",
    "earlier": "the newest in runs/ that suits",
    "measured": "measured now",
}


@command()
@click.option(
    "-o",
    "--out",
    type=Output(".toml", bare=True),
    metavar="JOB.toml",
    help="The job, for `elbowroom advise`; default: job.toml in the profile's folder.",
)
@click.option("--profile", "directory", metavar="P", help="Take this profile; run no program.")
@click.option("--profile-out", metavar="P", help="Folder of the profile; new. Default: runs/diagnose-DATE.")
@click.option(
    "--model",
    metavar="M.json",
    help="Model of this machine. Default: the newest in runs/ that suits; else it is measured.",
)
@click.option(
    "--budget",
    type=DURATION,
    default="2min",
    show_default=True,
    metavar="TIME",
    help="Time for measuring a model, where there is none.",
)
@click.option("--curve", metavar="FILE", help="NIC by `profile calibrate -o`; default: from the profile.")
@click.option("--cores", type=click.IntRange(min=1), metavar="N", help="Cores that compute on a node.")
@click.option(
    "--comp-node", type=click.IntRange(min=0), default=0, metavar="NODE", help="Of computations' data."
)
@click.option("--comm-node", type=click.IntRange(min=0), default=0, metavar="NODE", help="Of messages' data.")
@click.option(
    "--communication-threads",
    is_flag=True,
    help="Other threads of a rank compute while its messages are pending.",
)
@click.option("--verify", metavar="CMD", help='Measure the gain: "./app --threads {cores}".')
@click.option("--number", metavar="REGEX", help="With --verify: finds seconds in the output; else wall time.")
@click.option("--repeat", type=REPEAT, metavar="N", help="With --verify: pairs of runs; default 9.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="With --verify: time limit of one run.",
)
@click.option("--mpi", metavar="PREFIX", help="MPI of the program; default: that of its launcher.")
@dry_run_option
@json_option
@click.argument("words", nargs=-1, metavar="[-- CMD...]", type=click.UNPROCESSED)
def diagnose(words: tuple[str, ...], as_json: bool, dry_run: bool, **options: Any) -> int:
    """Profile CMD, describe it as a job, and advise what to change.

    The program's output and exit code stay its own; with a CMD the diagnosis goes to stderr. Exit code: that
    of CMD if it failed; else 2 if the profile has no steps or no communication, 3 if a measurement was too
    noisy to trust.
    """
    _check(words, options)
    if dry_run:
        planned = api.diagnosis.plan_diagnosis(
            options["directory"],
            words=words,
            options=_known(options),
            **{name: options[name] for name in ("mpi", "model", "budget")},
        )
        return show_planned(planned, as_json)
    blas.one_thread()
    if not words:
        return _diagnosed(options["directory"], None, as_json, options)
    where: str = options["profile_out"] or str(api.diagnosis.new_folder())
    done = api.record_profile(
        words, where, mpi=options["mpi"], stdout=sys.stderr.fileno() if as_json else None
    )
    code = done.document.exit_code
    try:
        # stdout is the program's.
        with contextlib.nullcontext() if as_json else contextlib.redirect_stdout(sys.stderr):
            own = _diagnosed(where, code, as_json, options)
    except ElbowroomError as error:
        if code == 0:
            raise
        print(f"elbowroom: {error.sentence()}", file=sys.stderr)
        if as_json:
            click.echo(api.failure.text_of(error))
        return code
    return code or own


_OF_VERIFY = ("number", "repeat", "timeout")


def _check(words: tuple[str, ...], options: dict[str, Any]) -> None:
    for name in _OF_VERIFY:
        if options[name] is not None and options["verify"] is None:
            raise UsageError(
                "is only valid with --verify", field=name, value=options[name], hint="add --verify"
            )
    if options["verify"] is not None:
        api.profiled_job.choices_of_command(options["verify"])
    for name in ("profile_out", "mpi"):
        if options[name] is not None and not words:
            raise UsageError(
                "is only valid with a command", field=name, value=options[name], hint="leave it out"
            )
    if bool(words) == (options["directory"] is not None):
        raise UsageError(
            "a command and a profile are given" if words else "no command is given",
            field="command",
            hint="write it behind --: -- mpirun -n 4 ./app; or name a profile: --profile P",
        )


def _diagnosed(directory: str, code: int | None, as_json: bool, options: dict[str, Any]) -> int:
    found = api.diagnose(
        directory,
        model=options["model"],
        options=_known(options),
        curve=options["curve"],
        job_file=options["out"] or (None if code is None else str(Path(directory, "job.toml"))),
        exit_code=code,
        budget=options["budget"],
        again=_again(directory, options),
        command=("elbowroom", *sys.argv[1:]),
    )
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0 if found.trusted else NOISY


def _known(options: dict[str, Any]) -> DiagnosisOptions:
    """What the options say of the program."""
    names = ("cores", "comp_node", "comm_node", "communication_threads", "verify", "number")
    return api.profiled_job.DiagnosisOptions(
        repetitions=options["repeat"] or 9,
        patience=options["timeout"],
        **{name: options[name] for name in names},
    )


_KEPT_OPTIONS = (
    "out", "model", "budget", "curve", "cores", "comp_node", "comm_node", "communication_threads", "verify",
    "number", "repeat", "timeout",
)  # fmt: skip


def _again(directory: str, options: dict[str, Any]) -> str:
    """The command that continues the diagnosis of a profile, with the options of this one."""
    words = ["elbowroom", "diagnose", "--profile", directory]
    context = click.get_current_context()
    for name in _KEPT_OPTIONS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            value = f"{options[name]:g}s" if name == "budget" else str(options[name])
            words += [option] if options[name] is True else [option, value]
    return shlex.join(words)


def _print(found: Diagnosis) -> None:
    print_wrapped(_steps(found), style="bold")
    for note in found.notes:
        print_wrapped(note, style="yellow")
    if found.job_file is not None:
        print_wrapped(f"job: {found.job_file}")
    print_wrapped(f"profile: {found.profile}")
    print_wrapped(f"model: {found.model} ({ORIGINS[found.model_origin]})")
    print_wrapped("Not known from the profile:")
    for sentence in found.unknown:
        print_wrapped(f"- {sentence}", indent="  ")
    print()
    print_advice(found.advice)
    print()
    print_wrapped(_other_bound(found), style="bold")
    if found.verified is not None:
        print_compared(found.verified)


def _other_bound(found: Diagnosis) -> str:
    """What gains if the cores bound the computation; the advice takes it to be bound by memory."""
    bound = found.core_bound
    if not bound.changes:
        return "If the cores bound the computation, and not memory: nothing gains."
    changes = ", ".join(
        f"{axis} {str(value).lower() if isinstance(value, bool) else value}"
        for axis, value in bound.changes.items()
    )
    more = "" if found.verified else " A profile does not tell which bound holds: measure it with --verify."
    return (
        f"If the cores bound the computation, and not memory: {changes} takes "
        f"{short_time(bound.total_s)} per step, {percent(bound.gain)} less.{more}"
    )


def _steps(found: Diagnosis) -> str:
    steps = found.steps
    ranks = plural(steps.ranks, "rank")
    how = "marks" if steps.found_by == "marks" else "a pattern of calls"
    received = format_size(round(steps.bytes_received or steps.bytes_sent))
    verb = "exchange" if steps.inside else "receive" if steps.bytes_received else "send"
    return (
        f"{steps.count} steps by {how} of {ranks} on {steps.node}: one takes {short_time(steps.duration_s)}; "
        f"they compute {short_time(steps.computation_s)}, and {verb} {received} in "
        f"{short_time(steps.network_s)}.{_rest(steps)}"
    )


def _rest(steps: StepFacts) -> str:
    """What is left of a step, which computing and messages do not explain."""
    share = steps.waiting_s / steps.duration_s
    if share < LITTLE:
        return ""
    return (
        f" The other {short_time(steps.waiting_s)} ({share:.0%}) they are inside MPI while no data "
        "moves: they wait for each other, or for the library. The advice does not change that."
    )
