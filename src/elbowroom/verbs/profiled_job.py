"""The job description of a profiled program, with what its user knows of it."""

from __future__ import annotations

import os
import string
import sys
from pathlib import Path
from typing import Any

from elbowroom.advise.collectives import WAY
from elbowroom.advise.job import AXES
from elbowroom.errors import UsageError
from elbowroom.launch.launch_line import LAUNCHERS, WRAPPERS
from elbowroom.models.curves import Shape
from elbowroom.models.demand import demand_of_profile
from elbowroom.profile.job import JobFacts, ProfiledJob, ProfiledSteps, job_of_steps, overlaps
from elbowroom.verbs.model_file import Model
from elbowroom.verbs.run_options import ProfiledProgram

CHOICES = tuple(axis for axis in AXES if axis not in WAY)
"""What a profiled job may choose: a profile does not measure other forms of its collectives."""


def job_of_profile(
    profiled: ProfiledSteps, options: ProfiledProgram, model: Model | None = None
) -> ProfiledJob:
    """The job description of a profiled program; on the cores that the machine of `model` has."""
    steps, demand = profiled.steps, demand_of_profile(profiled.analysis.profile.folder)
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
        traffic=None if demand is None or not demand.trusted else demand.traffic,
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
