"""A plan as one script for Slurm, which submits each group as an allocation of whole nodes.

Jobs that share nodes are steps of one allocation: this needs no partition that is shared (OverSubscribe).
Each step takes exactly its part of the cores (`--exact`, Slurm 20.11 or newer) and of the memory: without
`--mem` the first step would hold all of it, and the second one would wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from elbowroom.errors import UsageError
from elbowroom.schedule.jobs import Jobs, ScheduledJob, memory_of
from elbowroom.schedule.plan import PlannedGroup, PlannedJob, SchedulePlan

MARGIN = 1.2
"""Time limit of an allocation over its predicted time."""

_HEAD = """#!/bin/bash
# {jobs} jobs in {groups} allocations, {hours:.4g} node-hours predicted (exclusive: {exclusive:.4g}).
# Run this file on a login node: bash {name}
# Each allocation has a time limit of {margin:.0%} of its predicted time.
# Jobs that share nodes are steps of one allocation (Slurm 20.11 or newer).
set -u

wait_for_all() {{
    local code=0 process
    for process in "$@"; do
        wait "$process" || code=1
    done
    return "$code"
}}
"""

_SUBMIT = """
# Slurm starts this file with the number of an allocation.
if [ $# -gt 0 ]; then
    "allocation_$1"
    exit
fi
"""


def slurm_script(plan: SchedulePlan, jobs: Jobs, name: str = "jobs.sh") -> str:
    """The script; UsageError for a job without a command."""
    by_name = {job.name: job for job in jobs.jobs}
    for job in jobs.jobs:
        if job.command is None:
            raise UsageError("has no command", field="jobs.command", value=job.name, hint="add it to the job")
    number_of = {job.name: number for number, group in enumerate(plan.groups, start=1) for job in group.jobs}
    head = _HEAD.format(
        jobs=len(by_name),
        groups=len(plan.groups),
        hours=plan.node_hours.plan,
        exclusive=plan.node_hours.exclusive,
        name=name if name.isprintable() else "FILE",
        margin=MARGIN,
    )
    lines = [head]
    for number, group in enumerate(plan.groups, start=1):
        lines += ["", f"allocation_{number}() {{", *_body(group, by_name, plan.cluster.cores), "}"]
    lines.append(_SUBMIT)
    for number, group in enumerate(plan.groups, start=1):
        lines.append(_submission(number, group, by_name, number_of))
    return "\n".join(lines) + "\n"


def _body(group: PlannedGroup, jobs: Mapping[str, ScheduledJob], cores: int) -> Iterator[str]:
    """The steps of an allocation: the host, and each queue of companions one after the other."""
    planned = {job.name: job for job in group.jobs}
    host = group.jobs[0]
    if not group.queues:
        yield f"    {_step(host, jobs[host.name], cores, 0)}"
        return
    yield "    local -a processes=()"
    first = 0
    for queue in ((host.name,), *group.queues):
        relative = 0 if queue == (host.name,) else first
        steps = [_step(planned[name], jobs[name], cores, relative) for name in queue]
        yield f"    # {', then '.join(queue)}"
        if len(steps) == 1:
            yield f"    {steps[0]} &"
        else:
            yield from ("    (", "        code=0", *(f"        {step} || code=1" for step in steps))
            yield '        exit "$code"'
            yield "    ) &"
        yield "    processes+=($!)"
        if queue != (host.name,):
            first += max(len(planned[name].nodes) for name in queue)
    yield '    wait_for_all "${processes[@]}"'


def _step(planned: PlannedJob, job: ScheduledJob, cores: int, relative: int) -> str:
    """One srun. `relative`: its first node in the allocation."""
    nodes = len(planned.nodes)
    each = cores if planned.cores == "all" else max(1, cores // 2)
    ranks = min(job.ranks or nodes * each, nodes * each)
    memory = memory_of(job, planned.cores)
    # A step with --mem=0 may use the memory of the allocation and holds none of it back.
    size = "0" if memory == 0 else f"{math.ceil(memory / 2**20)}M"
    place = f" --relative={relative}" if relative else ""
    # Output of jobs that share an allocation would be mixed in one file.
    place += " --output=slurm-%j-%s.out" if planned.companions else ""
    return (
        f"srun --exact --nodes={nodes} --ntasks={ranks} --ntasks-per-node={each} --cpus-per-task=1 "
        f"--cpu-bind=cores --mem={size}{place} {job.command}"
    )


def _submission(
    number: int, group: PlannedGroup, jobs: Mapping[str, ScheduledJob], number_of: Mapping[str, int]
) -> str:
    minutes = math.ceil(60 * MARGIN * (group.end - group.start))
    before = sorted({number_of[name] for job in group.jobs for name in jobs[job.name].after})
    waits = "".join(f':"$id_{other}"' for other in before)
    dependency = f" --dependency=afterok{waits}" if before else ""
    return (
        f"id_{number}=$(sbatch --parsable --job-name=allocation-{number} --nodes={len(group.nodes)} "
        f'--exclusive --mem=0 --time={minutes}{dependency} "$0" {number}) || exit\n'
        f'echo "$id_{number} {_quoted(" ".join(job.name for job in group.jobs))}"'
    )


def _quoted(text: str) -> str:
    """Text inside double quotes of the shell."""
    return "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in text)
