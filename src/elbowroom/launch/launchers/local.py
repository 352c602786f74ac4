"""All ranks on this host, by the launcher of the program's own MPI."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch.launcher import Launch, Launcher, LaunchRequest, mpi_environment, mpirun, program_words


def build(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """All ranks on this host, by the launcher of the probe's own MPI."""
    if request.hosts or request.hostfile:
        raise UsageError(
            "the local launcher knows this host only",
            field="launcher",
            value="local",
            hint="use --launcher mpiexec for several hosts",
        )
    here = msgspec.structs.replace(request, ranks_per_host=request.ranks)
    return Launch(command=(*mpirun(here), *program_words(here)), env=mpi_environment(here, env))


LAUNCHER = Launcher(name="local", build=build, this_host_only=True)
