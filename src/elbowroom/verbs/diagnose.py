"""`elbowroom diagnose`: where a program's time goes, why, and what would gain."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, print_answer
from elbowroom.cli.console import chatter, print_json
from elbowroom.cli.options import NOISY, Output
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.files import make_folder
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.processes import one_thread
from elbowroom.verbs.declaration import Verb, command_argument, dry_run_option, included, option
from elbowroom.verbs.diagnose_demand import DemandOption
from elbowroom.verbs.diagnose_from import FromOptions, check_source
from elbowroom.verbs.diagnose_trials import (
    FLAWED,
    TrialOptions,
    TrialRequest,
    continued_request,
    lint_line,
    print_lint,
    request_trials,
)
from elbowroom.verbs.profile import RecordProfile
from elbowroom.verbs.run_options import ProfiledProgram

if TYPE_CHECKING:
    from elbowroom.verbs.diagnosis_document import Diagnosis

METRIC = {
    "only_with": None,
    "help": "What counts of a run in --try and --verify: its steps (--try; default), wall, or seconds that a "
    "pattern finds in the output.",
}


class Diagnose(Verb):
    """Say where the time of CMD goes, why, and what would gain.

    The program's output and exit code stay its own; with a CMD the diagnosis goes to stderr. Exit code: that
    of CMD if it failed; else 3 if a measurement of a model or of a gain was too noisy to trust, otherwise 0;
    with --lint 4 if something is wrong.
    """

    name = "diagnose"

    out: str | None = option(
        "New folder for the profile and the diagnosis. Default: runs/diagnose-DATE.",
        "DIR",
        spelled="-o --out",
        formerly="--profile-out",
    )
    profile: str | None = option("Use this profile instead of running a program.", "P")
    foreign: FromOptions = included(FromOptions)
    job_out: str | None = option(
        "The job, for `elbowroom advise`; default: job.toml in the folder.",
        "JOB.toml",
        type=Output(".toml", bare=True),
    )
    model: str | None = option(
        "Model of this machine. Default: the newest in runs/ that suits; else it is measured, in 30 s, if a "
        "cause needs it.",
        "M.json",
    )
    budget: float = option(
        "Time for all of it; building does not count.",
        "TIME",
        default="5min",
    )
    curve: str | None = option("NIC: a file that `nic measure -o` wrote; default: from the profile.", "FILE")
    program: ProfiledProgram = included(ProfiledProgram, own={"metric": METRIC})
    trials: TrialOptions = included(TrialOptions)
    load: DemandOption = included(DemandOption)
    mpi: str | None = option("MPI of the program; default: that of its launcher.", "PREFIX")
    dry_run: bool = dry_run_option()
    words: tuple[str, ...] = command_argument("[-- CMD...]")

    def execute(self, as_json: bool) -> int:
        """Profiles the program, if one is given, and diagnoses it; its exit code or the diagnosis's."""
        from elbowroom.verbs.diagnosis import new_folder

        self._check()
        if self.foreign.source is not None and not self.dry_run:
            return self._diagnose_file(self.foreign.source, as_json)
        if self.trials.lint:
            report = lint_line(self.words, self.trials.machine)
            if as_json:
                print_json(report)
            else:
                print_lint(report)
            return FLAWED if report.findings else 0
        if self.dry_run:
            return super().execute(as_json)
        one_thread()
        if self.profile is not None:
            if self.out is not None and not Path(self.out).is_dir():
                make_folder(Path(self.out), field="out", hint="name another")
            continued = None if self.trials.try_lines is False else continued_request(self.profile)
            return self._diagnose(self.profile, None, self.budget, as_json, continued)
        from elbowroom.diagnose.program_folder import before_first_run

        start = time.monotonic()
        before = before_first_run()
        folder = self.out or str(new_folder())
        stdout = sys.stderr.fileno() if as_json else None
        recording = RecordProfile(command=self.words, out=folder, mpi=self.mpi, stdout=stdout)
        recorded = recording.do().document
        code = recorded.exit_code
        trials = request_trials(
            self.trials,
            self.words,
            before,
            exit_code=code,
            run_s=recorded.seconds,
            own=Path(folder),
            mpi=self.mpi,
        )
        try:
            if self.load.demand and code == 0:
                self._measure_demand(folder, (self.budget - (time.monotonic() - start)) / 2)
            left = max(self.budget - (time.monotonic() - start), 1.0)
            # stdout is the program's.
            with contextlib.nullcontext() if as_json else contextlib.redirect_stdout(sys.stderr):
                own = self._diagnose(folder, code, left, as_json, trials)
        except ElbowroomError as error:
            if code == 0:
                raise
            print(f"elbowroom: {error.sentence()}", file=sys.stderr)
            if as_json:
                click.echo(error.document())
            return code
        return code or own

    def _check(self) -> None:
        from elbowroom.verbs.profiled_job import choices_of_command

        if self.program.verify is not None:
            choices_of_command(self.program.verify)
        if self.out is not None and self.out.endswith(".toml"):
            raise UsageError(
                "is a folder, and not the job", field="out", value=self.out, hint="write --job-out FILE.toml"
            )
        for field, value in (("mpi", self.mpi), ("demand", self.load.demand or None)):
            if value is not None and not self.words:
                raise UsageError(
                    "is only valid with a command",
                    field=field,
                    value=None if value is True else value,
                    hint="leave it out",
                )
        if self.foreign.source is not None:
            return
        if bool(self.words) == (self.profile is not None):
            raise UsageError(
                "a command and a profile are given" if self.words else "no command is given",
                field="command",
                hint="write it behind --: -- mpirun -n 4 ./app; or give --profile P or --from FILE",
            )
        if self.program.metric is not None and self.program.verify is None and not self.words:
            raise UsageError(
                "is only valid with --verify, or with a command",
                field="metric",
                value=self.program.metric,
                hint="leave it out",
            )
        for name in ("lint", "copy_dir"):
            if getattr(self.trials, name) and not self.words:
                hint = "write it behind --: -- mpirun -n 4 ./app"
                raise UsageError("is only valid with a command", field=name, hint=hint)

    def _diagnose(
        self, folder: str, code: int | None, budget: float, as_json: bool, trials: TrialRequest | None
    ) -> int:
        from elbowroom.verbs.diagnosis import diagnose

        result = diagnose(
            folder,
            model=self.model,
            options=self.program,
            curve=self.curve,
            job_file=self.job_out or (None if code is None else str(Path(folder, "job.toml"))),
            out=self.out if code is None else folder,
            exit_code=code,
            budget=budget,
            again=self._again(folder),
            command=("elbowroom", *sys.argv[1:]),
            trials=trials,
            try_every=self.trials.try_lines is True,
        )
        if as_json:
            print_json(result)
        else:
            from elbowroom.verbs.diagnosis_text import print_diagnosis

            print_diagnosis(result)
            print_answer(self.answer(result))
        return 0 if result.trusted else NOISY

    def _measure_demand(self, folder: str, budget: float) -> None:
        """Runs the program beside known loads, and writes its demand into the profile."""
        from elbowroom.measure.demand import write_demand
        from elbowroom.profile.profile import read_profile
        from elbowroom.verbs.colocate_demand import DemandSettings, measured_demand

        profile = read_profile(Path(folder))
        settings = DemandSettings(load_cores=self.load.load_cores, budget=budget)
        try:
            write_demand(measured_demand(self.words, settings, profile), Path(folder))
        except MachineError as error:
            chatter(f"The demand is not known: {error.sentence()}")

    def _diagnose_file(self, source: str, as_json: bool) -> int:
        """The diagnosis of a file of another tool."""
        from elbowroom.verbs.foreign_diagnosis import foreign_answer, run_from

        check_source(
            {
                "command": self.words,
                "profile": self.profile,
                "job_out": self.job_out,
                "model": self.model,
                "curve": self.curve,
                "verify": self.program.verify,
                "try": self.trials.try_lines,
                "lint": self.trials.lint,
            },
        )
        if self.out is not None and not Path(self.out).is_dir():
            make_folder(Path(self.out), field="out", hint="name another")
        result = run_from(source, self.out, as_json, print_json)
        if not as_json:
            print_answer(foreign_answer(result))
        return 0

    def answer(self, result: Diagnosis) -> Answer:
        """The cause with the largest share, and its evidence, or what was measured of the advice."""
        from elbowroom.verbs.diagnosis_text import diagnosis_answer

        return diagnosis_answer(result)

    def _again(self, folder: str) -> str:
        """The command that continues the diagnosis of a profile, with the options of this one."""
        words = ["elbowroom", "diagnose", "--profile", folder]
        for member in self.members:
            other = member.name in ("profile", "mpi", "dry_run", "words", "demand", "load_cores")
            if member.declared is None or other or not member.given(self):
                continue
            name, value = member.declared.spelled(member.name), member.value(self)
            on, _, off = name.partition("/")
            words.append(off if off and value is False else on)
            if not isinstance(value, bool):
                words.append(f"{value:g}s" if member.name == "budget" else str(value))
        if self.out is None and self.words:
            words += ["--out", folder]
        return shlex.join(words)

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program, what measures the model, and the program in both setups."""
        from elbowroom.verbs.diagnosis import QUICK_MODEL, new_folder, planned_model
        from elbowroom.verbs.verify_advice import REPETITIONS

        if self.foreign.source is not None:
            return
        if self.profile is None:
            recording = RecordProfile(command=self.words, out=new_folder(), mpi=self.mpi)
            yield from recording.planned_starts()
        verify = self.program.verify
        budget = self.budget if verify is not None else min(self.budget, QUICK_MODEL)
        yield from planned_model(self.profile, self.model, budget)
        if self.load.demand:
            from elbowroom.verbs.colocate_demand import DemandSettings, planned_demand

            yield planned_demand(self.words, DemandSettings(budget=self.budget / 2))
        if verify is not None:
            yield PlannedStart(
                what="the program in the present and in the advised setup",
                commands=(verify,),
                times=2 * (self.program.repetitions or REPETITIONS),
            )
