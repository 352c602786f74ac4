"""From a program to its diagnosis: the account of a step, the causes of lost time, and what would gain."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from elbowroom.advise.advice import Advice
from elbowroom.advise.job import Setup
from elbowroom.advise.setups import differing, setups
from elbowroom.advise.verification import Compared
from elbowroom.cli.console import chatter
from elbowroom.diagnose.account import Account, account_of
from elbowroom.diagnose.causes import Cause, StepEvidence, disturbance, find_causes, why_not_judged
from elbowroom.diagnose.summary import part_rows, pop_of, shares_of
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.launch.launch_line import debugger_of
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.models.demand import demand_of_profile
from elbowroom.profile.analysis import NodeAnalysis, analyse_nodes
from elbowroom.profile.cores import sharing
from elbowroom.profile.figures import waiting_sentence
from elbowroom.profile.job import (
    ProfiledJob,
    ProfiledSteps,
    counted_bytes,
    overlaps,
    profiled_steps,
    steps_of_job,
)
from elbowroom.profile.steps import StepSearch, find_steps
from elbowroom.quantities import percent, short_time
from elbowroom.signals import Stopped, stopped_by_signals
from elbowroom.verbs.calibrate import (
    EarlierModels,
    MachineModel,
    NoModel,
    check_machine,
    earlier_models,
    model_of_machine,
)
from elbowroom.verbs.diagnose_trials import TrialRequest, run_trials, trial_notes
from elbowroom.verbs.diagnosis_document import CoreBound, Diagnosis, StepFacts
from elbowroom.verbs.model_file import Model, advise, load_job, load_model
from elbowroom.verbs.profiled_job import choices_of_command, job_of_profile
from elbowroom.verbs.run_options import ProfiledProgram

FAR = 0.25
"""A predicted step that differs more from the measured one is mentioned."""
BUDGET = 300.0
"""Seconds for all that follows the program's first run, unless a user says otherwise."""
QUICK_MODEL = 30.0
"""Seconds in which a model is measured, where one is needed and none exists."""
DOCUMENT, PAGE = "diagnosis.json", "diagnosis.html"
"""In a diagnosis's folder: the document, the same as `diagnose --json` prints, and the page."""


def new_folder() -> Path:
    """Where the profile of a command goes by default."""
    from elbowroom.measure.campaign import default_out

    return default_out("diagnose")


class Explained(NamedTuple):
    """A profile explained: its account and causes, or why none was judged; the steps as a job has them, or
    why not.
    """

    read: NodeAnalysis
    search: StepSearch
    account: Account
    causes: tuple[Cause, ...]
    not_judged: str
    profiled: ProfiledSteps | None = None
    no_job: str = ""


def explain_profile(
    directory: Path | str, curve: Path | str | None = None, *, communication_threads: bool = False
) -> Explained:
    """The account of the steps of a profile, of the whole run where none are recognised, and its causes.

    UsageError where it holds no profile, or one that is damaged.
    """
    read = analyse_nodes(directory, curve, communication_threads=communication_threads)
    search = find_steps(read.analysis, of_all_ranks=read.inside)
    account = account_of(read.recorded, search.steps)
    evidence = StepEvidence(profile=read.recorded, account=account)
    causes = find_causes(evidence)
    not_judged = "" if causes else why_not_judged(evidence)
    explained = Explained(read, search, account, causes, not_judged)
    try:
        return explained._replace(profiled=steps_of_job(read, search, directory))
    except UsageError as error:
        return explained._replace(no_job=error.message)


def diagnose(
    directory: Path | str,
    *,
    model: Model | Path | str | None = None,
    options: ProfiledProgram | Mapping[str, Any] = ProfiledProgram(),  # noqa: B008
    curve: Path | str | None = None,
    job_file: Path | str | None = None,
    out: Path | str | None = None,
    exit_code: int | None = None,
    command: Sequence[str] = (),
    budget: float = BUDGET,
    again: str = "",
    trials: TrialRequest | None = None,
    try_every: bool = False,
    tell: Callable[[str], object] = chatter,
) -> Diagnosis:
    """Where the time of a profiled program (`record_profile`) goes, why, and what would gain; with
    `options.verify` the gain of the advice is measured. `job_file`: where the job is written, for `advise`;
    `out`: a folder for the document; `model`: of the machine, else the newest in runs/, else it is measured
    where a cause needs one; all of it in `budget` seconds; `exit_code`: of the program; `again`: the command
    that continues the diagnosis, for who stops it; `trials`: the program whose launch line is changed and
    measured (`try_every`: also without a cause).

    UsageError where there is no profile, the model is of another machine, or the gain of a program without
    steps or messages shall be measured.
    """
    known = options if isinstance(options, ProfiledProgram) else msgspec.convert(options, ProfiledProgram)
    if known.verify is not None:
        choices_of_command(known.verify)
    start = time.monotonic()
    with _stopped(directory, again or f"elbowroom diagnose --profile {shlex.quote(str(directory))}"):
        explained = explain_profile(directory, curve, communication_threads=known.communication_threads)
        diagnosis = _without_model(explained, exit_code)
        diagnosis = _finish(diagnosis, explained, out)
        profiled = explained.profiled
        if trials is not None:
            left = budget - (time.monotonic() - start)
            diagnosis = _with_trials(
                diagnosis, trials, left, known, every=try_every, folder=out or directory, tell=tell
            )
            diagnosis = _finish(diagnosis, explained, out)
        if profiled is None:
            if known.verify is not None:
                steps_of_job(explained.read, explained.search, directory)
            diagnosis = msgspec.structs.replace(diagnosis, missing=f"The program {explained.no_job}.")
        else:
            left = budget - (time.monotonic() - start)
            diagnosis = _advised(
                diagnosis, profiled, known, model, left, job_file=job_file, command=command, tell=tell
            )
    return _finish(diagnosis, explained, out)


def _finish(diagnosis: Diagnosis, explained: Explained, out: Path | str | None) -> Diagnosis:
    """The diagnosis, written with its page."""
    if out is not None:
        from elbowroom.verbs.diagnosis_page import write_page

        diagnosis = msgspec.structs.replace(diagnosis, page=str(Path(out, PAGE)))
        write_page(Path(out, PAGE), diagnosis, explained.read.recorded, explained.account)
        _save(diagnosis, out)
    return diagnosis


def _with_trials(
    diagnosis: Diagnosis,
    request: TrialRequest,
    budget: float,
    known: ProfiledProgram,
    *,
    every: bool,
    folder: Path | str,
    tell: Callable[[str], object],
) -> Diagnosis:
    """The diagnosis with what changed launch lines gain; a model that a cause needs is left its time."""
    steps, causes = diagnosis.steps, [cause.cause for cause in diagnosis.causes]
    needs = QUICK_MODEL if diagnosis.first_cause in NEEDS_MODEL else 0.0
    trials = run_trials(
        request,
        causes,
        every=every,
        steps=0 if steps.recognised_by == "run" else steps.count,
        ranks=steps.ranks if steps.inside else None,
        message_bytes=steps.message_bytes,
        number=known.metric,
        budget_s=budget - needs,
        folder=Path(folder),
        tell=tell,
    )
    return msgspec.structs.replace(
        diagnosis, tried=trials.tried, notes=(*diagnosis.notes, *trial_notes(trials))
    )


def _advised(
    diagnosis: Diagnosis,
    profiled: ProfiledSteps,
    known: ProfiledProgram,
    given: Model | Path | str | None,
    budget: float,
    *,
    job_file: Path | str | None,
    command: Sequence[str],
    tell: Callable[[str], object],
) -> Diagnosis:
    """The diagnosis with a job, and with advice where there is a model, or one is needed and can be
    measured.
    """
    size, name = profiled.message_bytes or 0, Path(diagnosis.profile).name
    machine, missing = None, ""
    earlier = EarlierModels(None) if given is not None else earlier_models(profiled.hosts, size)
    try:
        needed = known.verify is not None or diagnosis.first_cause in NEEDS_MODEL
        if given is None and not needed and earlier.newest is None:
            missing = "There is no model of this machine, and no cause needs one."
        else:
            quick = budget if known.verify is not None else min(budget, QUICK_MODEL)
            machine = model_of_machine(profiled.hosts, size, given, budget=quick, name=name, tell=tell)
    except NoModel as error:
        missing = f"{error.sentence()}."
    except UsageError as error:
        if given is not None or error.field not in ("model", "budget"):
            raise
        missing = f"{error.sentence()}."
    finally:
        # The job is there even if no model is.
        job = job_of_profile(profiled, known, None if machine is None else machine.model)
        _write(job, job_file)
    diagnosis = msgspec.structs.replace(
        diagnosis,
        steps=_step_facts(profiled, job, diagnosis.steps.iterations_per_step),
        job=job.data,
        job_file=None if job_file is None else str(job_file),
        unknown=job.unknown,
        hidden_most=_hidden_most(profiled, job),
        missing=missing,
        notes=(*diagnosis.notes, *filter(None, [earlier.sentence()])),
    )
    if machine is None:
        return diagnosis
    advice = advise(machine.model, load_job(job.data))
    verified = None
    if known.verify is not None:
        from elbowroom.verbs.verify_advice import REPETITIONS, verify_advice

        verified = verify_advice(
            advice,
            machine.model,
            repetitions=known.repetitions or REPETITIONS,
            patience=known.patience,
            command=command,
            tell=tell,
        )
    return _with_advice(diagnosis, profiled, machine, advice, verified)


NEEDS_MODEL = ("memory-contention",)
"""Causes whose remedies, fewer cores, other nodes and less overlap, a model of the machine compares."""


def planned_model(
    profile: Path | str | None, model: Model | Path | str | None, budget: float
) -> Iterator[PlannedStart]:
    """What measures the machine's model, where none is given and none in runs/ suits the profile."""
    profiled = None if profile is None else profiled_steps(profile)
    if model is not None:
        check_machine(load_model(model), () if profiled is None else profiled.hosts, model)
        return
    if (
        profiled is not None
        and earlier_models(profiled.hosts, profiled.message_bytes or 0).newest is not None
    ):
        return
    from elbowroom.verbs.run import dry_run

    what = "the machine's model"
    if profiled is None:
        what += ", unless one in runs/ suits the program's messages"
    yield PlannedStart(what=what, commands=dry_run("quick").commands, seconds=budget)


@contextlib.contextmanager
def _stopped(directory: Path | str, again: str) -> Iterator[None]:
    """What stops the block says how to go on with the diagnosis, not with the run that was stopped."""
    try:
        with stopped_by_signals(Path(directory)):
            yield
    except Stopped as stopped:
        raise Stopped(
            stopped.message, field="profile", value=str(directory), hint=f"continue with: {again}"
        ) from stopped


def _save(diagnosis: Diagnosis, out: Path | str | None) -> None:
    if out is not None:
        data = msgspec.json.format(msgspec.json.encode(diagnosis), indent=1)
        write_atomically(Path(out, DOCUMENT), data + b"\n")


def _write(job: ProfiledJob, path: Path | str | None) -> None:
    if path is not None:
        write_atomically(Path(path), job.text.encode())


def _without_model(explained: Explained, exit_code: int | None) -> Diagnosis:
    """What the profile says by itself."""
    read, account = explained.read, explained.account
    steps = explained.search.steps
    notes = []
    if steps is None:
        notes.append(f"No steps were recognised: {explained.search.reason}. The account is of the whole run.")
    shares = shares_of(account)
    return Diagnosis(
        profile=read.recorded.folder,
        exit_code=exit_code,
        steps=StepFacts(
            recognised_by="run" if steps is None else steps.recognised_by,
            count=account.count,
            iterations_per_step=account.iterations_per_step,
            node=read.recorded.names[0 if steps is None or read.inside else steps.node],
            ranks=len(account.ranks) if steps is None else steps.ranks,
            inside=read.inside,
            duration_s=account.step_s,
            computation_s=shares.compute * account.step_s,
            network_s=0.0 if steps is None else steps.network.trimmed,
            waiting_s=0.0,
            bytes_sent=0.0 if steps is None else steps.sent.usual,
            bytes_received=0.0 if steps is None else steps.received.usual,
            message_bytes=steps.sizes[0].bytes if steps is not None and steps.sizes else None,
        ),
        step_s=account.step_s,
        account=shares,
        parts=part_rows(account),
        pop=pop_of(account),
        causes=explained.causes,
        not_judged=explained.not_judged,
        job=None,
        demand=demand_of_profile(read.recorded.folder),
        notes=(
            *notes,
            *_notes(explained, exit_code),
            *(f"{note[:1].upper()}{note[1:]}." for note in account.notes),
        ),
    )


def _with_advice(
    diagnosis: Diagnosis,
    profiled: ProfiledSteps,
    machine: MachineModel,
    advice: Advice,
    verified: Compared | None,
) -> Diagnosis:
    """What the model adds to what the profile says by itself."""
    error = advice.now.total.value / profiled.steps.duration.trimmed - 1
    model = machine.model
    return msgspec.structs.replace(
        diagnosis,
        model=advice.model if model.path is None else str(model.path),
        model_origin=machine.origin,
        advice=advice,
        core_bound=core_bound(advice),
        step_error=error,
        verified=verified,
        trusted=machine.trusted is not False and (verified is None or verified.trusted),
        notes=(*diagnosis.notes, *_doubts(profiled, machine, advice, error)),
    )


def _hidden_most(profiled: ProfiledSteps, job: ProfiledJob) -> float | None:
    """The share of a step that a perfect overlap saves; None where both sides overlap already."""
    if overlaps(profiled.overlap):
        return None
    facts = _step_facts(profiled, job, None)
    return min(facts.computation_s, facts.network_s) / facts.duration_s


def _step_facts(profiled: ProfiledSteps, job: ProfiledJob, iterations: int | None) -> StepFacts:
    steps = profiled.steps
    return StepFacts(
        recognised_by=steps.recognised_by,
        count=steps.count,
        iterations_per_step=iterations,
        node=profiled.analysis.profile.names[steps.node],
        ranks=steps.ranks,
        inside=profiled.inside,
        duration_s=steps.duration.trimmed,
        computation_s=job.data["step"]["t_comp"]["seconds"],
        network_s=steps.network.trimmed,
        waiting_s=max(0.0, steps.duration.trimmed - steps.computation.trimmed - steps.network.trimmed),
        bytes_sent=steps.sent.usual,
        bytes_received=counted_bytes(steps, "receive"),
        message_bytes=profiled.message_bytes,
    )


def core_bound(advice: Advice) -> CoreBound:
    """The other bound of what a job gains: the profile does not tell which of the two its computation has."""
    step, now = advice.job.step, advice.now.setup
    assert step.t_comp is not None
    work = step.t_comp.seconds * (step.t_comp.cores + step.t_comp.cores_other)

    def total(setup: Setup) -> float:
        computing = work / (setup.cores + setup.cores_other)
        return max(computing, advice.now.t_comm) if setup.overlap else computing + advice.now.t_comm

    fitting = setups(advice.job, advice.machine)
    best = min(fitting, key=lambda setup: (total(setup), len(differing(setup, now))))
    return CoreBound(
        changes={axis: getattr(best, axis) for axis in differing(best, now)},
        total_s=total(best),
        gain=1 - total(best) / total(now),
    )


def _notes(explained: Explained, exit_code: int | None) -> list[str]:
    notes, profile, profiled = [], explained.read.recorded, explained.profiled
    if exit_code:
        notes.append(
            f"The program ended with exit code {exit_code}: the diagnosis is of what was recorded until then."
        )
    debugger = None if profile.manifest is None else debugger_of(profile.manifest.command)
    if debugger is not None:
        notes.append(f"The program ran under {debugger}: its times are not those that it has without.")
    if profiled is not None and profiled.overlap.reason:
        notes.append(waiting_sentence(profiled.overlap))
    notes += [f"{sentence}: they slow each other down." for sentence in sharing(profile.ranks)]
    partial = [note for note in profile.notes if note.startswith("partial")]
    busy = disturbance(profile)
    return [*notes, *([busy] if busy else []), *(f"The profile is {note}." for note in partial)]


def _doubts(profiled: ProfiledSteps, machine: MachineModel, advice: Advice, error: float) -> list[str]:
    """Why the advice may not be right for this program."""
    doubts = []
    if machine.trusted is False:
        doubts.append("The model was measured on a machine that was not quiet: measure again.")
    if abs(error) > FAR:
        doubts.append(
            f"A step took {short_time(profiled.steps.duration.trimmed)}, and the model predicts "
            f"{short_time(advice.now.total.value)} ({percent(error, sign=True)}): the program does something "
            "else than the job says. Verify before you change it."
        )
    calibrated, size = machine.model.document.calibration.size, profiled.message_bytes
    if machine.model.document.message_size is None and size and not size / 2 <= calibrated <= 2 * size:
        doubts.append(
            f"The model knows messages of {calibrated} B only, and most bytes are in messages of {size} B."
        )
    return doubts
