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
    return mpiexec.build(
        msgspec.structs.replace(request, hostfile=request.hostfile or hostfile, hosts=()), env
    )


def hosts(env: Mapping[str, str]) -> int:
    """Those of the allocation."""
    return len(read_hostfile(env["PBS_NODEFILE"])) if env.get("PBS_NODEFILE") else 1


LAUNCHER = Launcher(
    name="pbs", build=build, detect=lambda env: bool(env.get("PBS_NODEFILE")), hosts=hosts, precedence=1
)
