"""From a program to advice: its profile, the job that it is, the machine's model, and what to change."""

from __future__ import annotations

import contextlib
import os
import shlex
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from elbowroom import display
from elbowroom.advise.advice import Advice
from elbowroom.advise.collectives import WAY
from elbowroom.advise.job import AXES, Setup
from elbowroom.advise.setups import differing, setups
from elbowroom.advise.verification import Compared
from elbowroom.cli.console import chatter
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.launch.launch_line import LAUNCHERS, WRAPPERS
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.models.curves import Shape
from elbowroom.profile.figures import waiting_sentence
from elbowroom.profile.job import (
    JobFacts,
    ProfiledJob,
    ProfiledSteps,
    counted_bytes,
    job_of_steps,
    overlaps,
    profiled_steps,
)
from elbowroom.profile.profile import sharing
from elbowroom.quantities import percent, short_time
from elbowroom.signals import Stopped, stopped_by_signals
from elbowroom.verbs.calibrate import (
    MEASURING,
    MachineModel,
    NoModel,
    Origin,
    check_machine,
    earlier_model,
    model_of_machine,
)
from elbowroom.verbs.model_file import Model, advise, load_job, load_model
from elbowroom.verbs.run_options import ProfiledProgram

FAR = 0.25
"""A predicted step that differs more from the measured one is mentioned."""


CHOICES = tuple(axis for axis in AXES if axis not in WAY)
"""What a profiled job may choose: a profile does not measure other forms of its collectives."""


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of the profiled program does on one node, `node`; trimmed means in s, usual bytes.
    `waiting_s`: the rest of the step, inside MPI while none of these ranks has data on the network; at least
    that, where computation and messages overlap. `inside`: the job has one node, and the messages are those
    inside it.
    """

    recognised_by: Literal["marks", "pattern"]
    count: int
    node: str
    ranks: int
    inside: bool
    duration_s: float
    computation_s: float
    network_s: float
    waiting_s: float
    bytes_sent: float
    bytes_received: float
    message_bytes: int | None


class CoreBound(msgspec.Struct, frozen=True, kw_only=True):
    """The best setup if the cores bound the computation, and not memory: it is as many times as fast as there
    are cores, and shares nothing with messages. `changes` of the present setup (none: it is the best);
    `gain`: the share of the present step that this saves.
    """

    changes: dict[str, Any]
    total_s: float
    gain: float


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose --json` prints. `exit_code`: of the program, None where only its profile was read;
    `job`: as in `job_file`; `unknown`: what the profile could not tell of it; `model_origin`: of `model`;
    `advice` takes the computation to be bound by memory, as the model's kernel is, `core_bound` by the cores;
    `step_error`: predicted / measured present step - 1; `notes`: what to know, and what is partial. Where no
    model could be measured in the time, these are None, and `missing` says why. `hidden_most`: the share of a
    step that messages hidden behind the computation save at most; None where they overlap already. `trusted`
    is false where a measurement of the model or of the gain was too noisy, or is missing.
    """

    schema: str = "elbowroom/diagnosis"
    version: int = 1
    profile: str
    exit_code: int | None = None
    steps: StepFacts
    job: dict[str, Any]
    job_file: str | None = None
    unknown: tuple[str, ...]
    model: str | None
    model_origin: Origin | None
    advice: Advice | None
    core_bound: CoreBound | None
    step_error: float | None
    hidden_most: float | None = None
    missing: str = ""
    verified: Compared | None = None
    trusted: bool
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Diagnosis(profile={self.profile!r}, model={self.model!r}, trusted={self.trusted})"

    __str__, _repr_html_ = display.text, display.html


def new_folder() -> Path:
    """Where the profile of a command goes by default."""
    from elbowroom.measure.campaign import default_out

    return default_out("diagnose")


def diagnose(
    directory: Path | str,
    *,
    model: Model | Path | str | None = None,
    options: ProfiledProgram | Mapping[str, Any] = ProfiledProgram(),  # noqa: B008
    curve: Path | str | None = None,
    job_file: Path | str | None = None,
    exit_code: int | None = None,
    command: Sequence[str] = (),
    budget: float = MEASURING,
    again: str = "",
    tell: Callable[[str], object] = chatter,
) -> Diagnosis:
    """What to change in the program of a profile (`record_profile`), and why; with `options.verify` the gain
    is measured. `job_file`: where the job is written, for `advise`; `model`: of the machine, else the newest
    in runs/, else it is measured now, in at most `budget` seconds; `exit_code`: of the program; `again`: the
    command that continues the diagnosis, for who stops it.

    UsageError where the profile has no steps or no communication, the model is of another machine, or the job
    leaves nothing to choose; MachineError where no model could be measured.
    """
    known = options if isinstance(options, ProfiledProgram) else msgspec.convert(options, ProfiledProgram)
    if known.verify is not None:
        choices_of_command(known.verify)
    with _stopped(directory, again or f"elbowroom diagnose --profile {shlex.quote(str(directory))}"):
        profiled = profiled_steps(directory, curve=curve, communication_threads=known.communication_threads)
        size, name = profiled.message_bytes or 0, Path(directory).name
        try:
            machine = model_of_machine(profiled.hosts, size, model, budget=budget, name=name, tell=tell)
        except NoModel as error:
            job = job_of_profile(profiled, known)
            _write(job, job_file)
            return msgspec.structs.replace(
                _partial(profiled, job, job_file, exit_code),
                hidden_most=_hidden_most(profiled, job),
                missing=error.sentence(),
            )
        except BaseException:
            # The job is there even if no model is.
            _write(job_of_profile(profiled, known), job_file)
            raise
        job = job_of_profile(profiled, known, machine.model)
        _write(job, job_file)
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
    partial = _partial(profiled, job, job_file, exit_code)
    return _diagnosis(partial, profiled, machine, advice, verified)


def planned_model(
    profile: Path | str | None, model: Model | Path | str | None, budget: float
) -> Iterator[PlannedStart]:
    """What measures the machine's model, where none is given and none in runs/ suits the profile."""
    profiled = None if profile is None else profiled_steps(profile)
    if model is not None:
        check_machine(load_model(model), () if profiled is None else profiled.hosts, model)
        return
    if profiled is not None and earlier_model(profiled.hosts, profiled.message_bytes or 0) is not None:
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


def _write(job: ProfiledJob, path: Path | str | None) -> None:
    if path is not None:
        write_atomically(Path(path), job.text.encode())


def _diagnosis(
    partial: Diagnosis,
    profiled: ProfiledSteps,
    machine: MachineModel,
    advice: Advice,
    verified: Compared | None,
) -> Diagnosis:
    """What the profile says by itself (`partial`), and what the model adds."""
    error = advice.now.total.value / profiled.steps.duration.trimmed - 1
    model = machine.model
    return msgspec.structs.replace(
        partial,
        model=advice.model if model.path is None else str(model.path),
        model_origin=machine.origin,
        advice=advice,
        core_bound=core_bound(advice),
        step_error=error,
        verified=verified,
        trusted=machine.trusted is not False and (verified is None or verified.trusted),
        notes=(*partial.notes, *_doubts(profiled, machine, advice, error)),
    )


def _partial(
    profiled: ProfiledSteps, job: ProfiledJob, job_file: Path | str | None, exit_code: int | None
) -> Diagnosis:
    """What the profile says by itself: not what a change would gain."""
    return Diagnosis(
        profile=profiled.analysis.profile.folder,
        exit_code=exit_code,
        steps=_step_facts(profiled, job),
        job=job.data,
        job_file=None if job_file is None else str(job_file),
        unknown=job.unknown,
        model=None,
        model_origin=None,
        advice=None,
        core_bound=None,
        step_error=None,
        trusted=False,
        notes=tuple(_notes(profiled, exit_code)),
    )


def _hidden_most(profiled: ProfiledSteps, job: ProfiledJob) -> float | None:
    """The share of a step that a perfect overlap saves; None where both sides overlap already."""
    if overlaps(profiled.overlap):
        return None
    facts = _step_facts(profiled, job)
    return min(facts.computation_s, facts.network_s) / facts.duration_s


def _step_facts(profiled: ProfiledSteps, job: ProfiledJob) -> StepFacts:
    steps = profiled.steps
    return StepFacts(
        recognised_by=steps.recognised_by,
        count=steps.count,
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


def _notes(profiled: ProfiledSteps, exit_code: int | None) -> list[str]:
    notes = []
    if exit_code:
        notes.append(
            f"The program ended with exit code {exit_code}: the job is what was recorded until then."
        )
    if profiled.overlap.reason:
        notes.append(waiting_sentence(profiled.overlap))
    notes += [
        f"{sentence}: they slow each other down." for sentence in sharing(profiled.analysis.profile.ranks)
    ]
    partial = [note for note in profiled.analysis.profile.notes if note.startswith("partial")]
    return [*notes, *(f"The profile is {note}." for note in partial)]


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


def job_of_profile(
    profiled: ProfiledSteps, options: ProfiledProgram, model: Model | None = None
) -> ProfiledJob:
    """The job description of a profiled program; on the cores that the machine of `model` has."""
    steps = profiled.steps
    wanted, notes = _wanted_cores(steps.ranks, options)
    overlapped = options.communication_threads or overlaps(profiled.overlap)
    cores, other = (wanted, 0) if wanted is not None else (steps.ranks, 0)
    if model is not None:
        cores, other, overlapped, more = _fitted(model.machine, cores, overlapped, options)
        notes += more
    knows_sizes = model is not None and model.document.message_size is not None
    may = None if options.verify is None else may_change(options.verify, other > 0)
    given = wanted is not None or (cores, other) != (steps.ranks, 0)
    facts = JobFacts(
        name=options.name or _name(profiled),
        cores=cores if given else None,
        cores_other=other,
        comp_node=options.comp_node,
        comm_node=options.comm_node,
        direction="receive" if steps.received.mean > 0 else "send",
        overlap=overlapped,
        size=profiled.message_bytes if knows_sizes or "size" in (may or {}) else None,
        may=may,
        verify=_verify_table(options),
        notes=(*notes, *_message_notes(profiled)),
    )
    return job_of_steps(profiled.analysis, steps, profiled.overlap, facts)


def _wanted_cores(ranks: int, options: ProfiledProgram) -> tuple[int | None, list[str]]:
    """The computing cores that are said to be: by option, or by OpenMP's variable."""
    if options.cores is not None:
        return options.cores, []
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads) > 1:
        note = f"OMP_NUM_THREADS is {threads}: that many threads of each of the {ranks} ranks are assumed."
        return int(threads) * ranks, [note]
    return None, []


def _fitted(
    shape: Shape, cores: int, overlapped: bool, options: ProfiledProgram
) -> tuple[int, int, bool, list[str]]:
    """Computing cores on both sockets of a machine, whether both sides overlap there, and notes."""
    notes = []
    most = shape.cores
    if options.communication_threads and options.cores is None:
        cores = min(cores, most - 1)
    if cores > most:
        notes.append(f"{shape.name} has {most} cores: {cores} that compute share them.")
        cores = most
    if overlapped and cores == most:
        notes.append(
            "Messages overlap with computation, but no core is left for them: the job has them one after the "
            "other."
        )
        overlapped = False
    first = min(cores, shape.cores_first_socket)
    return first, cores - first, overlapped, notes


def _message_notes(profiled: ProfiledSteps) -> list[str]:
    if not profiled.inside:
        return []
    return [
        "All ranks are on one node: the messages are those of all ranks inside it, which are copies in its "
        "memory."
    ]


def _name(profiled: ProfiledSteps) -> str:
    """The program's name: the first word of its command that is a file and starts no other, else the
    folder's.
    """
    manifest = profiled.analysis.profile.manifest
    words = () if manifest is None else manifest.command
    starters = (*LAUNCHERS, *WRAPPERS, Path(sys.executable).name, "python", "python3")
    programs = [Path(word).name for word in words if os.path.isfile(word)]
    own = [name for name in programs if name not in starters]
    return own[0] if own else Path(profiled.analysis.profile.folder).name


def choices_of_command(command: str) -> tuple[str, ...]:
    """The choices that a command names in braces, in the order of a job. UsageError for others, and for
    none.
    """
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(command) if name is not None}
    except ValueError as error:
        raise UsageError(
            f"has braces that do not close ({error})", field="verify", value=command, hint="write {{ for {"
        ) from error
    unknown = sorted(named - set(CHOICES))
    if unknown or not named:
        problem = f"names {{{unknown[0]}}}, which is not a choice of a job" if unknown else "names no choice"
        raise UsageError(
            problem,
            field="verify",
            value=command,
            hint=f'write one in braces: "./app --threads {{cores}}"; known: {", ".join(CHOICES)}',
        )
    return tuple(axis for axis in CHOICES if axis in named)


def may_change(command: str, has_other_cores: bool) -> dict[str, Any]:
    """What may change: only what the command can be run with."""
    values: dict[str, Any] = {
        "overlap": [True, False], "size": ["4KiB", "64KiB", "1MiB"], "comm_threads": "1-2", "w": "best"
    }  # fmt: skip
    axes = choices_of_command(command)
    if has_other_cores and "cores" in axes:
        axes = (*axes, "cores_other")
    return {axis: values.get(axis, "every") for axis in axes}


def _verify_table(options: ProfiledProgram) -> dict[str, str] | None:
    if options.verify is None:
        return None
    pattern = {} if options.metric in (None, "wall") else {"number": options.metric}
    return {"command": options.verify, **pattern}
