"""The part of `diagnose` that measures changed launch lines (`--try`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.verbs.declaration import Options, option

if TYPE_CHECKING:
    from elbowroom.diagnose.lint import LintReport
    from elbowroom.diagnose.program_folder import Before
    from elbowroom.diagnose.trial_runs import TrialProgram
    from elbowroom.diagnose.trials import TrialRun, Trials

SHORT = 10.0
"""Trials are the default for programs that take less, in s."""
RUNS, LEAST_TIME = 38, 30.0
"""Trials of short programs take the time of so many runs, and at least so many seconds."""
FLAWED = 4
"""Exit code of `--lint` if something is wrong."""
REQUEST_FILE = "trials.json"


class TrialOptions(Options):
    """What `diagnose` tries by itself. `try_lines`: None for programs shorter than 10 s."""

    try_lines: bool | None = option(
        "Measure changed launch lines and library settings; default: if a run takes less than 10 s.",
        spelled="--try/--no-try",
        type=bool,
        is_flag=True,
    )
    copy_dir: bool = option("Run each trial in a copy of the working directory.")
    lint: bool = option(
        "Run nothing: say what is wrong with the launch line on this machine. Exit code 4 if something is."
    )
    machine: str | None = option(
        "With --lint: another machine than this one: henri, FILE.toml or FILE.xml.",
        "MACHINE",
        only_with="lint",
    )


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried, as the folder of a diagnosis keeps it for its continuation.

    `run_s`: wall time of the first run; `off`: why nothing is tried, empty where it is; `input`: the file
    that is standard input, with the offset at which the program began to read.
    """

    schema: str = "elbowroom/trial-request"
    version: int = 1
    words: tuple[str, ...]
    folder: str
    run_s: float
    mpi: str | None = None
    copy_dir: bool = False
    off: str = ""
    input: str | None = None
    offset: int = 0


REQUEST = DocumentFormat(
    kind=TrialRequest,
    schema="elbowroom/trial-request",
    version=1,
    name="trials",
    hint="diagnose the program again",
    own=True,
)


def request_trials(
    options: TrialOptions,
    words: Sequence[str],
    before: Before,
    *,
    exit_code: int,
    run_s: float,
    own: Path,
    mpi: str | None = None,
) -> TrialRequest:
    """What is to be tried after the first run of a program; `own`: the folder of the diagnosis."""
    from elbowroom.diagnose.program_folder import input_file

    return TrialRequest(
        words=tuple(words),
        folder=str(before.folder),
        run_s=run_s,
        mpi=mpi,
        copy_dir=options.copy_dir,
        off=_off(options, words, before, exit_code, run_s, own),
        input=input_file(before),
        offset=before.offset or 0,
    )


def _off(
    options: TrialOptions, words: Sequence[str], before: Before, exit_code: int, run_s: float, own: Path
) -> str:
    """Why nothing is tried; empty where it is."""
    from elbowroom.diagnose.program_folder import refused_input, written_files
    from elbowroom.launch.launch_line import debugger_of
    from elbowroom.quantities import short_time

    if options.try_lines is False:
        return "--no-try was given"
    if exit_code != 0:
        return f"the program ended with exit code {exit_code}"
    debugger = debugger_of(words)
    if debugger is not None:
        return f"the program runs under {debugger}"
    if options.try_lines is None and run_s >= SHORT:
        return f"a run takes {short_time(run_s)}; try it all the same with --try"
    refused = refused_input(before)
    if refused:
        return refused
    written = () if options.copy_dir else written_files(before, [own])
    if written is None:
        return "the working directory has too many files to see which are written; --copy-dir runs in copies"
    if written:
        names = ", ".join(written[:2]) + (" ..." if len(written) > 2 else "")
        return f"the program writes files ({names}); --copy-dir runs each trial in a copy of the directory"
    return ""


def run_trials(
    request: TrialRequest,
    causes: Sequence[str],
    *,
    every: bool = False,
    steps: int = 0,
    ranks: int | None = None,
    message_bytes: int | None = None,
    number: str | None = None,
    budget_s: float,
    folder: Path | None = None,
    tell: Callable[[str], object] | None = None,
) -> Trials:
    """What changed launch lines gain for these causes (`every`: also without a cause), in `budget_s` s.

    `steps`: of the profile, whose time counts (0: the wall time); `number`: a pattern that finds the seconds
    in what the program prints, or `wall`; `ranks`: on this host; `folder`: keeps what is measured, and what
    it has already is not measured again.
    """
    from elbowroom.diagnose.candidates import NOTHING_TO_TRY, candidates, situation_of
    from elbowroom.diagnose.program_folder import check_copied
    from elbowroom.diagnose.trials import JOURNAL, Trials, try_candidates
    from elbowroom.launch.launch_options import UnreadLine, read_line
    from elbowroom.launch.library_settings import library_of, library_settings
    from elbowroom.launch.topologies import own_machine

    if request.off:
        return Trials(off=request.off)
    wanted = [cause for cause in causes if cause not in NOTHING_TO_TRY]
    if not wanted and not every:
        return Trials(off=NOTHING_TO_TRY[causes[0]] if causes else "no cause was judged")
    if folder is not None:
        REQUEST.write(folder / REQUEST_FILE, request, own=True)
    try:
        line = read_line(request.words)
    except UnreadLine as reason:
        return Trials(off=str(reason))
    settings = library_settings(library_of(line.program, line.launcher[0]))
    situation = situation_of(line, own_machine(), settings=settings, ranks=ranks, message_bytes=message_bytes)
    if request.copy_dir:
        check_copied(Path(request.folder))
    trials = try_candidates(
        candidates(situation, wanted),
        _program(request, steps, number, folder),
        budget_s=min(budget_s, max(LEAST_TIME, RUNS * request.run_s)) if request.run_s < SHORT else budget_s,
        run_s=request.run_s,
        journal=None if folder is None else folder / JOURNAL,
        ended=_say_dropped(tell),
        measured="step" if number is None else "number",
    )
    if folder is not None:
        (folder / REQUEST_FILE).unlink(missing_ok=True)
    return trials


def _program(request: TrialRequest, steps: int, number: str | None, own: Path | None) -> TrialProgram:
    from elbowroom.diagnose.trial_runs import TrialProgram
    from elbowroom.measure.timed_commands import last_number

    given = b""
    if request.input is not None:
        with open(request.input, "rb") as file:
            file.seek(request.offset)
            given = file.read()
    pattern = None if number in (None, "wall") else number
    return TrialProgram(
        words=request.words,
        mpi=request.mpi,
        given=given,
        steps=0 if number is not None else steps,
        number=None if pattern is None else lambda output: last_number(pattern, output),
        folder=Path(request.folder),
        copy=request.copy_dir,
        without=() if own is None else (own,),
    )


def _say_dropped(tell: Callable[[str], object] | None) -> Callable[[TrialRun], object]:
    """Says now and then what was run."""
    from elbowroom.heartbeat import say

    def ended(line: TrialRun) -> None:
        if line.failed:
            (tell or say)(f"dropped: {line.arm} ({line.failed})")

    return ended


def trial_notes(trials: Trials) -> list[str]:
    """What is to be said of trials beside what each line gains."""
    notes = [f"Nothing was tried: {trials.off}."] if trials.off else []
    notes += [f"Dropped: {one.command}: {one.reason}." for one in trials.dropped]
    if trials.undecided:
        notes.append(f"Not decided in this time: {'; '.join(trials.undecided)}.")
    placebo = trials.placebo
    if placebo is not None and placebo.excludes_zero:
        low, high = placebo.ends(placebo.value)
        notes.append(
            f"The unchanged line differs from itself by {abs(placebo.value):.0%} ({low:.0%} to {high:.0%}): "
            "the machine was not quiet."
        )
    return [*notes, *trials.notes]


def continued_request(folder: str | os.PathLike[str]) -> TrialRequest | None:
    """What a diagnosis was trying when it was stopped; None if it was not."""
    path = Path(folder, REQUEST_FILE)
    return REQUEST.read(path) if path.is_file() else None


def lint_line(words: Sequence[str], machine: str | None = None) -> LintReport:
    """What is wrong with a launch line on this machine, or on the one that --machine names."""
    import shlex

    from elbowroom.diagnose.lint import LaunchPlace, LintReport, lint
    from elbowroom.launch.cgroup import cpu_quota
    from elbowroom.launch.launch_options import UnreadLine, read_line
    from elbowroom.launch.topologies import own_machine
    from elbowroom.measure.source import Where, choose

    try:
        line = read_line(words)
    except UnreadLine as reason:
        return LintReport(command=shlex.join(words), not_read=str(reason))
    return lint(
        line,
        LaunchPlace(
            machine=own_machine() if machine is None else choose(Where(machine=machine)).machine(),
            env=os.environ,
            quota=cpu_quota() if machine is None else None,
            openmp=_has_openmp(line.program),
        ),
    )


def _has_openmp(program: Sequence[str]) -> bool:
    """Whether one of these words is a program that is linked with OpenMP's library."""
    import shutil

    from elbowroom.launch.mpi import stdout_of
    from elbowroom.launch.recorder import is_elf

    files = [path for path in map(shutil.which, program) if path is not None and is_elf(path)]
    names = ("libgomp.so", "libomp.so", "libiomp5.so")
    return any(name in stdout_of("ldd", file) for file in files for name in names)


def print_lint(report: LintReport) -> None:
    """For people: what is wrong, and the line to type."""
    from elbowroom.cli.console import print_wrapped

    if report.not_read:
        print_wrapped(f"Nothing is said of this line: {report.not_read}.")
        return
    if report.ranks is None:
        print_wrapped("Nothing is said of this line: it does not say how many ranks it starts.")
        return
    if not report.findings:
        print_wrapped("Nothing is wrong with this line here.", style="green")
    for finding in report.findings:
        print_wrapped(finding.sentence, style="yellow")
        if finding.line:
            print(f"    {finding.line}")
