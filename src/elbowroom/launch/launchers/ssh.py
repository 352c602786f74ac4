"""A program on one host by ssh, without MPI between hosts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from elbowroom.errors import UsageError
from elbowroom.launch.launcher import Launch, Launcher, LaunchRequest, given_hosts, program_words

SECONDS = 10
"""In which a host takes the connection."""


def build(request: LaunchRequest, _env: Mapping[str, str]) -> Launch:
    """The program on the host of the request, which must be one."""
    command = ("ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={SECONDS}", only_host(request))
    return Launch(command=(*command, shlex.join(program_words(request))), env={})


def only_host(request: LaunchRequest) -> str:
    """The host of the request; UsageError for several ranks, which would not be one MPI job."""
    if request.ranks > 1:
        raise UsageError(
            "starts each program without MPI",
            field="launcher",
            value=f"{request.ranks} ranks",
            hint="only `elbowroom accept` uses it; otherwise: --launcher mpiexec",
        )
    return given_hosts(request)[0]


LAUNCHER = Launcher(name="ssh", build=build, program="ssh", joins_ranks=False)
