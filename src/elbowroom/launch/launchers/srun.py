"""A step of a Slurm allocation."""

from __future__ import annotations

from collections.abc import Mapping

from elbowroom.launch.launcher import (
    Launch,
    Launcher,
    LaunchRequest,
    mpi_environment,
    needed_hosts,
    number_of,
    outside,
    program_words,
)
from elbowroom.launch.mpi import stdout_of


def build(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """A step of a Slurm allocation; PMI as the probe's MPI speaks it, binding left to the probe."""
    if not env.get("SLURM_JOB_ID"):
        raise outside("srun", "SLURM_JOB_ID")
    hosts = needed_hosts(request)
    command = [
        "srun",
        f"--ntasks={request.ranks}",
        f"--nodes={hosts}",
        f"--ntasks-per-node={request.ranks_per_host}",
        "--distribution=block",
        "--cpu-bind=none",
        "--overlap",
        f"--mpi={'pmix' if request.mpi.kind == 'openmpi' else 'pmi2'}",
        "--input=0",
        "--unbuffered",
        "--kill-on-bad-exit=1",
    ]
    if request.hosts:
        command.append(f"--nodelist={','.join(request.hosts)}")
    return Launch(command=(*command, *program_words(request)), env=mpi_environment(request, env))


def names(env: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes of the allocation."""
    folded = env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST") or ""
    return expanded(folded) if folded else ()


def expanded(nodes: str) -> tuple[str, ...]:
    """The nodes of a folded list, `n[1-3]`, as Slurm itself reads it."""
    return tuple(stdout_of("scontrol", "show", "hostnames", nodes).split())


LAUNCHER = Launcher(
    name="srun",
    build=build,
    program="srun",
    detect=lambda env: bool(env.get("SLURM_JOB_ID")),
    hosts=lambda env: number_of(env.get("SLURM_JOB_NUM_NODES") or env.get("SLURM_NNODES")),
    names=names,
    precedence=2,
)
