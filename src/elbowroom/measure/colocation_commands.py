"""What is started of applications that share nodes: checks before anything is measured, and the environment.

Emulated nodes of two jobs have their NICs in common where both name the same memory (docs/reference/nic.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from elbowroom.errors import UsageError
from elbowroom.launch import nic
from elbowroom.launch.launch_line import DIRECT, NAME, joined, launcher_of
from elbowroom.launch.mpi import describe, launcher_identity, loaded_library, output, wrapper_of
from elbowroom.launch.recorder import program_libraries
from elbowroom.schedule.applications import Applications, Mode, NicTable


def check_commands(apps: Applications, environment: Mapping[str, str]) -> None:
    """UsageError where a command cannot start what is meant: no such program, a program of another MPI than
    its launcher's, or more nodes than the allocation has.
    """
    path = apps.env.get("PATH", environment.get("PATH"))
    for name, app in apps.apps.items():
        words = apps.words(name, "exclusive")
        if shutil.which(words[0], path=path) is None:
            raise UsageError(
                "is not an executable on this host",
                field=f"apps.{name}.command",
                value=words[0],
                hint="correct the path",
            )
        _check_mpi(name, words, app.command)
    _check_allocation(apps, environment)


def _check_mpi(name: str, words: list[str], command: str) -> None:
    place = launcher_of(words)
    if place is None or Path(words[place]).name in DIRECT:
        return
    launcher = launcher_identity(output(shutil.which(words[place]) or words[place], "--version"))[0]
    program = program_libraries(words[place + 1 :]).get("mpi")
    library = None if program is None else loaded_library(Path(program))
    wrapper = None if library is None else wrapper_of(library)
    if launcher is None or wrapper is None:
        return
    mpi = describe(wrapper)
    if mpi.kind != launcher:
        raise UsageError(
            f"starts a program of {mpi.name} with the launcher of another MPI",
            field=f"apps.{name}.command",
            value=command,
            hint=f"use {mpi.launcher}",
        )


def _check_allocation(apps: Applications, environment: Mapping[str, str]) -> None:
    given = environment.get("SLURM_JOB_NUM_NODES", environment.get("SLURM_NNODES", ""))
    needed = 2 * apps.nodes
    if apps.nic is None and re.fullmatch(r"[0-9]+", given) and int(given) < needed:
        raise UsageError(
            f"has {given} nodes, and half of the cores need {needed}",
            field="allocation",
            value=environment.get("SLURM_JOB_ID"),
            hint=f"salloc --nodes={needed}, or give fewer `nodes`",
        )


@contextlib.contextmanager
def shared_environment(
    apps: Applications, mode: Mode, environment: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """The environment of one application alone, or of two that share: theirs is the same, and so are their
    emulated NICs, which nobody else has.
    """
    env = {**environment, **apps.env}
    if apps.nic is None:
        yield env
        return
    settings = nic_settings(apps.nic, apps.place(mode)[0])
    libraries = [str(path) for path in nic.preloads(settings)]
    with nic.emulated(settings):
        yield {
            **env,
            **settings.environment(),
            NAME: joined(*libraries, env.get(NAME)),
        }


def nic_settings(table: NicTable, ranks_per_node: int) -> nic.NicSettings:
    """Of jobs that share NICs with nobody else: a name for one measurement."""
    name = f"colocation-{os.getpid()}-{secrets.token_hex(4)}"
    return nic.NicSettings(bandwidth=table.rate, ranks_per_node=ranks_per_node, name=name)
