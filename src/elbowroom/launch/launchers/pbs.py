"""Ranks on the hosts of a PBS allocation, by the launcher of the program's own MPI."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from elbowroom.launch.launcher import Launch, Launcher, LaunchRequest, outside, read_hostfile
from elbowroom.launch.launchers import mpiexec


def build(request: LaunchRequest, env: Mapping[str, str]) -> Launch:
    """Ranks on the hosts of a PBS allocation, by mpiexec with the allocation's file of nodes."""
    hostfile = env.get("PBS_NODEFILE", "")
    if not hostfile:
        raise outside("pbs", "PBS_NODEFILE")
    if not request.hosts:
        request = msgspec.structs.replace(request, hostfile=request.hostfile or hostfile)
    return mpiexec.build(request, env)


def names(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of the allocation."""
    return read_hostfile(env["PBS_NODEFILE"]) if env.get("PBS_NODEFILE") else ()


LAUNCHER = Launcher(
    name="pbs",
    build=build,
    detect=lambda env: bool(env.get("PBS_NODEFILE")),
    hosts=lambda env: max(1, len(names(env))),
    names=names,
    precedence=1,
)
