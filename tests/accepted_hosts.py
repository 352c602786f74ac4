"""`elbowroom accept` on hosts of one machine (tests/linked_hosts.py), whose links are slow enough to be what
limits messages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from elbowroom.launch.launcher import Launch
from elbowroom.launch.mpi import launch_environment
from linked_hosts import LinkedHosts

MEGABITS = 10.0
BURST = "8kb"
QUEUE = "500ms"
"""More than two messages of each way, so that none is lost and sent again."""
BUDGET = "30s"


def names(count: int) -> list[str]:
    """n0, n1, ..."""
    return [f"n{number}" for number in range(count)]


def limit_links(hosts: LinkedHosts, slow: str = "", factor: float = 0.5) -> None:
    """A token bucket on each link; that of `slow` has this part of the rate."""
    for name in hosts.names:
        hosts.limit(name, MEGABITS * (factor if name == slow else 1.0), BURST, QUEUE)


def start_accept(
    hosts: LinkedHosts, folder: Path, words: Sequence[str], allocation: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """The driver on the first host, for all hosts or inside the `allocation` with this environment; the
    result is on stdout as JSON.
    """
    place = [] if allocation else ["--hosts", ",".join(hosts.addresses.values())]
    line = ["accept", "site", *place, "--size", "32KiB", "--working-set", "2MiB", "--json", *words]
    launch = hosts.on_first(
        Launch(command=(sys.executable, "-m", "elbowroom", *line), env=launch_environment())
    )
    return subprocess.Popen(
        launch.command,
        env={**os.environ, **launch.env, **(allocation or {})},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
