"""`elbowroom diagnose`: from a program to advice."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line, print_answer
from elbowroom.cli.console import print_all, print_json, print_list, print_wrapped
from elbowroom.cli.options import NOISY, Output
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.processes import one_thread
from elbowroom.quantities import format_size, percent, plural, short_time
from elbowroom.verbs.advise_tables import advice_answer, compared_answer, print_advice, print_compared
from elbowroom.verbs.declaration import Verb, command_argument, dry_run_option, included, option
from elbowroom.verbs.profile import RecordProfile
from elbowroom.verbs.run_options import ProfiledProgram, out_option

if TYPE_CHECKING:
    from elbowroom.verbs.diagnosis import CoreBound, Diagnosis, StepFacts

LITTLE = 0.05
"""A smaller share of a step is not mentioned."""
ORIGINS = {
    "given": "given",
    "earlier": "the newest in runs/ that suits",
    "measured": "measured now",
}


class Diagnose(Verb):
    """Profile CMD, describe it as a job, and advise what to change.

    The program's output and exit code stay its own; with a CMD the diagnosis goes to stderr. Exit code: that
    of CMD if it failed; else 2 if the profile has no steps or no communication, 3 if a measurement was too
    noisy to trust.
    """

    name = "diagnose"

    out: str | None = out_option(
        Output(".toml", bare=True),
        "The job, for `elbowroom advise`; default: job.toml in the profile's folder.",
        "JOB.toml",
    )
    profile: str | None = option("Use this profile instead of running a program.", "P")
    profile_out: str | None = option("New folder for the profile. Default: runs/diagnose-DATE.", "P")
    model: str | None = option(
        "Model of this machine. Default: the newest in runs/ that suits; else it is measured.", "M.json"
    )
    budget: float = option(
        "Time for a model of the machine, if none exists; building does not count.",
        "TIME",
        default="2min",
    )
    curve: str | None = option("NIC: a file that `nic measure -o` wrote; default: from the profile.", "FILE")
    program: ProfiledProgram = included(ProfiledProgram)
    mpi: str | None = option("MPI of the program; default: that of its launcher.", "PREFIX")
    dry_run: bool = dry_run_option()
    words: tuple[str, ...] = command_argument("[-- CMD...]")

    def execute(self, as_json: bool) -> int:
        """Profiles the program, if one is given, and diagnoses it; its exit code or the diagnosis's."""
        from elbowroom.verbs.diagnosis import new_folder

        self._check()
        if self.dry_run:
            return super().execute(as_json)
        one_thread()
        if self.profile is not None:
            return self._diagnose(self.profile, None, as_json)
        folder = self.profile_out or str(new_folder())
        stdout = sys.stderr.fileno() if as_json else None
        recording = RecordProfile(command=self.words, out=folder, mpi=self.mpi, stdout=stdout)
        code = recording.do().document.exit_code
        try:
            # stdout is the program's.
            with contextlib.nullcontext() if as_json else contextlib.redirect_stdout(sys.stderr):
                own = self._diagnose(folder, code, as_json)
        except ElbowroomError as error:
            if code == 0:
                raise
            print(f"elbowroom: {error.sentence()}", file=sys.stderr)
            if as_json:
                click.echo(error.document())
            return code
        return code or own

    def _check(self) -> None:
        from elbowroom.verbs.diagnosis import choices_of_command

        if self.program.verify is not None:
            choices_of_command(self.program.verify)
        for name in ("profile_out", "mpi"):
            value = getattr(self, name)
            if value is not None and not self.words:
                raise UsageError("is only valid with a command", field=name, value=value, hint="leave it out")
        if bool(self.words) == (self.profile is not None):
            raise UsageError(
                "a command and a profile are given" if self.words else "no command is given",
                field="command",
                hint="write it behind --: -- mpirun -n 4 ./app; or name a profile: --profile P",
            )

    def _diagnose(self, folder: str, code: int | None, as_json: bool) -> int:
        from elbowroom.verbs.diagnosis import diagnose

        result = diagnose(
            folder,
            model=self.model,
            options=self.program,
            curve=self.curve,
            job_file=self.out or (None if code is None else str(Path(folder, "job.toml"))),
            exit_code=code,
            budget=self.budget,
            again=self._again(folder),
            command=("elbowroom", *sys.argv[1:]),
        )
        if as_json:
            print_json(result)
        else:
            _print(result)
            print_answer(self.answer(result))
        return 0 if result.trusted else NOISY

    def answer(self, result: Diagnosis) -> Answer:
        """The advice with its first reason, or what was measured of it."""
        if result.verified is not None:
            return compared_answer(result.verified)
        if result.advice is None or result.core_bound is None or result.model is None:
            again = command_line("diagnose", "--profile", result.profile, "--budget", "5min")
            return Answer(*missing_sentences(result), again, "yellow")
        if result.job_file is not None:
            return advice_answer(result.advice, result.model, result.job_file)
        page = f"{result.profile.rstrip('/')}.html"
        following = command_line("profile", "show", result.profile, "-o", page)
        return advice_answer(result.advice, result.model, "")._replace(next=following)

    def _again(self, folder: str) -> str:
        """The command that continues the diagnosis of a profile, with the options of this one."""
        words = ["elbowroom", "diagnose", "--profile", folder]
        for member in self.members:
            other = member.name in ("profile", "profile_out", "mpi", "dry_run", "words")
            if member.declared is None or other or not member.given(self):
                continue
            name, value = member.declared.typed(member.name), member.value(self)
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                words.append(f"{value:g}s" if name == "budget" else str(value))
        return shlex.join(words)

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program, what measures the model, and the program in both setups."""
        from elbowroom.verbs.diagnosis import new_folder, planned_model
        from elbowroom.verbs.verify_advice import REPETITIONS

        if self.profile is None:
            recording = RecordProfile(command=self.words, out=new_folder(), mpi=self.mpi)
            yield from recording.planned_starts()
        yield from planned_model(self.profile, self.model, self.budget)
        if self.program.verify is not None:
            yield PlannedStart(
                what="the program in the present and in the advised setup",
                commands=(self.program.verify,),
                times=2 * (self.program.repetitions or REPETITIONS),
            )


def _print(diagnosis: Diagnosis) -> None:
    print_wrapped(steps_sentence(diagnosis), style="bold")
    print_all(diagnosis.notes, style="yellow")
    if diagnosis.job_file is not None:
        print_wrapped(f"job: {diagnosis.job_file}")
    print_wrapped(f"profile: {diagnosis.profile}")
    if diagnosis.model_origin is not None:
        print_wrapped(f"model: {diagnosis.model} ({ORIGINS[diagnosis.model_origin]})")
    print_wrapped("Not known from the profile:")
    print_list(diagnosis.unknown, indent="  ")
    if diagnosis.advice is None or diagnosis.core_bound is None:
        return
    print()
    print_advice(diagnosis.advice)
    print()
    print_wrapped(_other_bound(diagnosis, diagnosis.core_bound), style="bold")
    if diagnosis.verified is not None:
        print_compared(diagnosis.verified)


def missing_sentences(diagnosis: Diagnosis) -> tuple[str, str]:
    """What is known without a model, and why there is none."""
    verdict = "Cannot say what to change: there is no model of this machine."
    if diagnosis.hidden_most is not None:
        most = percent(diagnosis.hidden_most, digits=0)
        verdict += f" Messages hidden behind the computation save at most {most} of a step."
    return verdict, f"{diagnosis.missing or 'No model of it can be trusted'}."


def _other_bound(diagnosis: Diagnosis, bound: CoreBound) -> str:
    """What gains if the cores bound the computation; the advice takes it to be bound by memory."""
    if not bound.changes:
        return "If the cores bound the computation, and not memory: nothing gains."
    changes = ", ".join(
        f"{axis} {str(value).lower() if isinstance(value, bool) else value}"
        for axis, value in bound.changes.items()
    )
    more = (
        "" if diagnosis.verified else " A profile does not tell which bound holds: measure it with --verify."
    )
    return (
        f"If the cores bound the computation, and not memory: {changes} takes "
        f"{short_time(bound.total_s)} per step, {percent(bound.gain)} less.{more}"
    )


def steps_sentence(diagnosis: Diagnosis) -> str:
    """How many steps were found, and what one of them does."""
    steps = diagnosis.steps
    ranks = plural(steps.ranks, "rank")
    how = "marks" if steps.recognised_by == "marks" else "a pattern of calls"
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
