"""A program on one host by ClusterShell, as its configuration says (ssh, rsh, its tree), without MPI."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from elbowroom.launch.launcher import Launch, Launcher, LaunchRequest, program_words
from elbowroom.launch.launchers.ssh import SECONDS, only_host


def build(request: LaunchRequest, _env: Mapping[str, str]) -> Launch:
    """The program on the host of the request, which must be one; lines are passed on without its name."""
    command = ("clush", "-N", "-S", "-q", "-t", f"{SECONDS}", "-w", only_host(request))
    return Launch(command=(*command, shlex.join(program_words(request))), env={})


LAUNCHER = Launcher(name="clush", build=build, program="clush", joins_ranks=False)
