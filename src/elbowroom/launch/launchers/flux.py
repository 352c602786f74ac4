"""A job of the Flux instance this shell is in."""

from __future__ import annotations

import shutil
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
    """A job of the Flux instance this shell is in."""
    if not env.get("FLUX_URI"):
        raise outside("flux", "FLUX_URI")
    command = [
        "flux",
        "run",
        f"--nodes={needed_hosts(request)}",
        f"--tasks-per-node={request.ranks_per_host}",
        "--exclusive",
        "--unbuffered",
        "--input=0",
        "-o",
        "cpu-affinity=off",
    ]
    if request.hosts:
        command.append(f"--requires=host:{','.join(request.hosts)}")
    return Launch(command=(*command, *program_words(request)), env=mpi_environment(request, env))


def hosts(env: Mapping[str, str]) -> int:  # noqa: ARG001
    """Those of the instance, as it says itself."""
    return number_of(stdout_of("flux", "getattr", "size")) if shutil.which("flux") else 1


def names(env: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG001
    """The hosts of the instance, as it says itself."""
    return tuple(stdout_of("flux", "hostlist", "--expand", "local").split()) if shutil.which("flux") else ()


# Flux under Slurm or PBS is the nearer allocation of the two.
LAUNCHER = Launcher(
    name="flux",
    build=build,
    program="flux",
    detect=lambda env: bool(env.get("FLUX_URI")),
    hosts=hosts,
    names=names,
    precedence=3,
)
