"""Ranks on the hosts of --hosts or --hostfile, by the launcher of the program's own MPI."""

from __future__ import annotations

from collections.abc import Mapping

from elbowroom.launch.launcher import (
    Launch,
    Launcher,
    LaunchRequest,
    check_slots,
    forwarded,
    given_hosts,
    mpi_environment,
    mpirun,
    program_words,
    too_few,
    where,
)


def build(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """Ranks on the hosts of --hosts or --hostfile, by the launcher of the probe's own MPI."""
    hosts = given_hosts(request)
    if len(hosts) * request.ranks_per_host < request.ranks:
        raise too_few(request, len(hosts))
    check_slots(request)
    return Launch(
        command=(*mpirun(request), *where(request), *forwarded(request, env), *program_words(request)),
        env=mpi_environment(request, env),
    )


LAUNCHER = Launcher(name="mpiexec", build=build)
