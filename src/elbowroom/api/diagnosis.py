"""From a program to advice: its profile, the job that it is, the machine's model, and what to change."""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.advise.advice import Advice
from elbowroom.advise.job import AXES
from elbowroom.advise.reasons import percent, seconds
from elbowroom.advise.verification import Compared
from elbowroom.api.advice import verify_advice
from elbowroom.api.machine_models import MachineModel, Origin, model_of_machine
from elbowroom.api.models import Model, advise, load_job
from elbowroom.api.profiles import analyse_nodes
from elbowroom.api.runs import chatter
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.measure.session import default_out
from elbowroom.models.curves import Shape
from elbowroom.profile.analysis import Analysis, summarise
from elbowroom.profile.job import JobFacts, ProfiledJob, counted_bytes, job_of_steps, overlaps
from elbowroom.profile.steps import Steps, find_steps
from elbowroom.profile.summary import OverlapSummary

FAR = 0.25
"""A predicted step that differs more from the measured one is mentioned."""


class StepFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a step of the profiled program does on one node, `node`; medians in s, mean bytes. `inside`: the
    job has one node, and the messages are those inside it.
    """

    found_by: Literal["marks", "pattern"]
    count: int
    node: str
    ranks: int
    inside: bool
    duration_s: float
    computation_s: float
    network_s: float
    bytes_sent: float
    bytes_received: float
    message_bytes: int | None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose --json` prints. `exit_code`: of the program, None where only its profile was read;
    `job`: as in `job_file`; `unknown`: what the profile could not tell of it; `model_origin`: of `model`;
    `step_error`: predicted / measured present step - 1; `notes`: what to know, and what is partial.
    `trusted` is false where a measurement of the model or of the gain was too noisy.
    """

    schema: str = "elbowroom/diagnosis"
    version: int = 1
    profile: str
    exit_code: int | None = None
    steps: StepFacts
    job: dict[str, Any]
    job_file: str | None = None
    unknown: tuple[str, ...]
    model: str
    model_origin: Origin
    advice: Advice
    step_error: float
    verified: Compared | None = None
    trusted: bool
    notes: tuple[str, ...] = ()


class DiagnosisOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user knows beside the profile. `cores`: that compute on a node; `communication_threads`: other
    threads of a rank compute while its messages are pending; `verify`: a command with the choices in braces,
    whose wall time counts, or the seconds that `number` finds.
    """

    name: str | None = None
    cores: int | None = None
    comp_node: int = 0
    comm_node: int = 0
    communication_threads: bool = False
    verify: str | None = None
    number: str | None = None
    repetitions: int = 9
    patience: float | None = None


class ProfiledSteps(NamedTuple):
    """A profile with its steps: what a job is made of. `inside`: of messages inside the only node."""

    analysis: Analysis
    steps: Steps
    overlap: OverlapSummary
    inside: bool
    hosts: tuple[str, ...]

    @property
    def message_bytes(self) -> int | None:
        """The size of the messages with most bytes; None without messages."""
        return self.steps.sizes[0].bytes if self.steps.sizes else None


def new_folder() -> Path:
    """Where the profile of a command goes by default."""
    return default_out("diagnose")


def profiled_steps(
    directory: Path | str, *, curve: Path | str | None = None, communication_threads: bool = False
) -> ProfiledSteps:
    """The steps in a profile. UsageError where it holds no profile, no steps or no communication."""
    analysis, inside = read = analyse_nodes(directory, curve, communication_threads=communication_threads)
    search = find_steps(analysis, of_all_ranks=inside)
    if search.steps is None:
        raise UsageError(
            f"has no steps: {search.reason}",
            field="profile",
            value=str(directory),
            hint="profile more steps, or call MPI_Pcontrol(1) at the begin of each",
        )
    steps = search.steps
    if steps.received.mean + steps.sent.mean == 0:
        raise UsageError(
            f"has {steps.count} steps that send no data{'' if inside else ' between nodes'}",
            field="profile",
            value=str(directory),
            hint="no choice of cores, nodes or messages changes what such a program communicates",
        )
    if steps.computation.median <= 0:
        raise UsageError(
            "has steps that compute nothing outside MPI",
            field="profile",
            value=str(directory),
            hint="if other threads compute, say so: --communication-threads",
        )
    return ProfiledSteps(analysis, steps, summarise(analysis).overlap, inside, read.hosts)


def job_of_profile(
    found: ProfiledSteps, options: DiagnosisOptions, model: Model | None = None
) -> ProfiledJob:
    """The job description of a profiled program; on the cores that the machine of `model` has."""
    steps = found.steps
    wanted, notes = _wanted_cores(steps.ranks, options)
    overlapped = options.communication_threads or overlaps(found.overlap)
    cores, other = (wanted, 0) if wanted is not None else (steps.ranks, 0)
    if model is not None:
        cores, other, overlapped, more = _fitted(model.machine, cores, overlapped, options)
        notes += more
    knows_sizes = model is not None and model.document.message_size is not None
    given = wanted is not None or (cores, other) != (steps.ranks, 0)
    facts = JobFacts(
        name=options.name or _name(found),
        cores=cores if given else None,
        cores_other=other,
        comp_node=options.comp_node,
        comm_node=options.comm_node,
        direction="receive" if steps.received.mean > 0 else "send",
        overlap=overlapped,
        size=found.message_bytes if knows_sizes else None,
        may=None if options.verify is None else may_change(options.verify, other > 0),
        verify=_verify_table(options),
        notes=(*notes, *_message_notes(found)),
    )
    return job_of_steps(found.analysis, steps, found.overlap, facts)


def _wanted_cores(ranks: int, options: DiagnosisOptions) -> tuple[int | None, list[str]]:
    """The computing cores that are said to be: by option, or by OpenMP's variable."""
    if options.cores is not None:
        return options.cores, []
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal() and int(threads) > 1:
        note = f"OMP_NUM_THREADS is {threads}: so many threads of each of the {ranks} ranks are assumed."
        return int(threads) * ranks, [note]
    return None, []


def _fitted(
    shape: Shape, cores: int, overlapped: bool, options: DiagnosisOptions
) -> tuple[int, int, bool, list[str]]:
    """Computing cores on both sockets of a machine, whether both sides overlap there, and notes."""
    notes = []
    most = shape.cores_first_socket * shape.sockets
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


def _message_notes(found: ProfiledSteps) -> list[str]:
    if not found.inside:
        return []
    return [
        "All ranks are on one node: the messages are those of all ranks inside it, which are copies in its "
        "memory."
    ]


def _name(found: ProfiledSteps) -> str:
    """The program's name: the last word of its command that is a file, else the folder's."""
    manifest = found.analysis.profile.manifest
    words = () if manifest is None else manifest.command
    programs = [word for word in words if os.path.isfile(word) and os.access(word, os.X_OK)]
    return Path(programs[-1] if programs else found.analysis.profile.folder).name


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
    unknown = sorted(named - set(AXES))
    if unknown or not named:
        problem = f"names {{{unknown[0]}}}, which is no choice of a job" if unknown else "names no choice"
        raise UsageError(
            problem,
            field="verify",
            value=command,
            hint=f'write one in braces: "./app --threads {{cores}}"; known: {", ".join(AXES)}',
        )
    return tuple(axis for axis in AXES if axis in named)


def may_change(command: str, has_other_cores: bool) -> dict[str, Any]:
    """What may change: only what the command can be run with."""
    values: dict[str, Any] = {
        "overlap": [True, False], "size": ["4KiB", "64KiB", "1MiB"], "comm_threads": "1-2", "w": "best"
    }  # fmt: skip
    axes = choices_of_command(command)
    if has_other_cores and "cores" in axes:
        axes = (*axes, "cores_other")
    return {axis: values.get(axis, "every") for axis in axes}


def _verify_table(options: DiagnosisOptions) -> dict[str, str] | None:
    if options.verify is None:
        return None
    return {"command": options.verify, **({} if options.number is None else {"number": options.number})}


def diagnose(
    directory: Path | str,
    *,
    model: Model | Path | str | None = None,
    options: DiagnosisOptions | Mapping[str, Any] = DiagnosisOptions(),  # noqa: B008
    curve: Path | str | None = None,
    job_file: Path | str | None = None,
    exit_code: int | None = None,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = chatter,
) -> Diagnosis:
    """What to change in the program of a profile (`record_profile`), and why; with `options.verify` the gain
    is measured. `job_file`: where the job is written, for `advise`; `model`: of the machine, else the newest
    in runs/, else it is measured now; `exit_code`: of the program.

    UsageError where the profile has no steps or no communication, the model is of another machine, or the
    job leaves nothing to choose; MachineError where no model could be measured.
    """
    known = options if isinstance(options, DiagnosisOptions) else msgspec.convert(options, DiagnosisOptions)
    if known.verify is not None:
        choices_of_command(known.verify)
    found = profiled_steps(directory, curve=curve, communication_threads=known.communication_threads)
    # It is there even if no model is.
    _write(job_of_profile(found, known), job_file)
    machine = model_of_machine(found.hosts, found.message_bytes or 0, model, tell=tell)
    job = job_of_profile(found, known, machine.model)
    _write(job, job_file)
    advice = advise(machine.model, load_job(job.data))
    verified = None
    if known.verify is not None:
        verified = verify_advice(
            advice,
            machine.model,
            repetitions=known.repetitions,
            patience=known.patience,
            command=command,
            tell=tell,
        )
    return _diagnosis(found, job, machine, advice, verified, job_file, exit_code)


def _write(job: ProfiledJob, path: Path | str | None) -> None:
    if path is not None:
        write_atomically(Path(path), job.text.encode())


def _diagnosis(
    found: ProfiledSteps,
    job: ProfiledJob,
    machine: MachineModel,
    advice: Advice,
    verified: Compared | None,
    job_file: Path | str | None,
    exit_code: int | None,
) -> Diagnosis:
    error = advice.now.total.value / found.steps.duration.median - 1
    model = machine.model
    return Diagnosis(
        profile=found.analysis.profile.folder,
        exit_code=exit_code,
        steps=_step_facts(found, job),
        job=job.data,
        job_file=None if job_file is None else str(job_file),
        unknown=job.unknown,
        model=advice.model if model.path is None else str(model.path),
        model_origin=machine.origin,
        advice=advice,
        step_error=error,
        verified=verified,
        trusted=machine.trusted is not False and (verified is None or verified.trusted),
        notes=(*_notes(found, exit_code), *_doubts(found, machine, advice, error)),
    )


def _step_facts(found: ProfiledSteps, job: ProfiledJob) -> StepFacts:
    steps = found.steps
    return StepFacts(
        found_by=steps.found_by,
        count=steps.count,
        node=found.analysis.profile.names[steps.node],
        ranks=steps.ranks,
        inside=found.inside,
        duration_s=steps.duration.median,
        computation_s=job.data["step"]["t_comp"]["seconds"],
        network_s=steps.network.median,
        bytes_sent=steps.sent.mean,
        bytes_received=counted_bytes(steps, "receive"),
        message_bytes=found.message_bytes,
    )


def _notes(found: ProfiledSteps, exit_code: int | None) -> list[str]:
    notes = []
    if exit_code:
        notes.append(
            f"The program ended with exit code {exit_code}: the job is what was recorded until then."
        )
    partial = [note for note in found.analysis.profile.notes if note.startswith("partial")]
    return [*notes, *(f"The profile is {note}." for note in partial)]


def _doubts(found: ProfiledSteps, machine: MachineModel, advice: Advice, error: float) -> list[str]:
    """Why the advice may not be right for this program."""
    doubts = []
    if machine.trusted is False:
        doubts.append("The model was measured on a machine that was not quiet: measure again.")
    if abs(error) > FAR:
        doubts.append(
            f"A step took {seconds(found.steps.duration.median)}, and the model predicts "
            f"{seconds(advice.now.total.value)} ({percent(error, sign=True)}): the program does something "
            "else than the job says. Verify before you change it."
        )
    calibrated, size = machine.model.document.calibration.size, found.message_bytes
    if machine.model.document.message_size is None and size and not size / 2 <= calibrated <= 2 * size:
        doubts.append(
            f"The model knows messages of {calibrated} B only, and most bytes are in messages of {size} B."
        )
    return doubts
