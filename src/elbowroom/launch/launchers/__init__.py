"""Launchers: a file each here, and those that installed packages declare (docs/reference/extend.md)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from elbowroom import plugins
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.launcher import Launch, Launcher, LaunchRequest, read_hostfile
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.session import PREFIX

DEFAULT = "local"
"""The launcher outside of any allocation."""


def _hint(_name: str, known: Sequence[str]) -> str:
    return f"one of: {', '.join([*known, f'{PREFIX}RUN'])}"


LAUNCHERS = plugins.Registry.of_modules("launchers", "launcher", Launcher, __name__, hint=_hint)
names, get = LAUNCHERS.names, LAUNCHERS.get


def detect(env: Mapping[str, str]) -> str:
    """The launcher of the allocation this shell is in; `local` outside of any."""
    inside = [launcher for launcher in LAUNCHERS.all() if launcher.detect(env)]
    return max(inside, key=lambda launcher: launcher.precedence).name if inside else DEFAULT


def build_launch(name: str, request: LaunchRequest, env: Mapping[str, str] | None = None) -> Launch:
    """The command line of launcher `name` for `request`; `env` is the caller's environment."""
    launcher = get(name)
    if request.hosts and request.hostfile:
        raise UsageError("hosts are given twice", field="hosts", hint="give --hosts or --hostfile, not both")
    return launcher.build(request, os.environ if env is None else env)


def host_count(name: str, hosts: tuple[str, ...], hostfile: str | None, env: Mapping[str, str]) -> int:
    """How many hosts launcher `name` reaches: those given, else those of the allocation; 1 for `local`."""
    launcher = get(name)
    if launcher.this_host_only:
        return 1
    if hosts:
        return len(set(hosts))
    return len(read_hostfile(hostfile)) if hostfile else launcher.hosts(env)


def host_names(
    name: str, hosts: tuple[str, ...], hostfile: str | None, env: Mapping[str, str]
) -> tuple[str, ...]:
    """The hosts given, else those of the allocation; none outside of any."""
    if hosts:
        return hosts
    return read_hostfile(hostfile) if hostfile else get(name).names(env)


def check_program(name: str, mpi: Mpi) -> None:
    """MachineError if launcher `name` cannot start anything here."""
    program = get(name).program or mpi.launcher
    if not shutil.which(program):
        raise MachineError(
            f"{program} is not in PATH", field="launcher", value=name, hint="choose another --launcher"
        )
