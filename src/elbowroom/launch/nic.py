"""Runs programs behind an emulated NIC, which gives messages between emulated nodes a known bandwidth
(docs/reference/nic.md).

All ranks are on this host. Jobs with the same name share the same emulated nodes.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch import build, recorder
from elbowroom.launch.launch_line import plain_folder
from elbowroom.launch.launcher import Launch
from elbowroom.launch.recorder import RecordedCommand

MOST_NODES = 64
"""Of all jobs with one name; also in lib/nic/fluid.hpp."""

LEAST_BANDWIDTH = 1000.0
"""B/s"""

_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_ALONE = "alone-"
_COUNT = itertools.count()
_PATIENCE = 5.0
_BETWEEN = 0.02

_TCP = {
    # Open MPI: sockets for every message. Windows over shared memory would leave no trace in them.
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_osc": "^sm",
    # MPICH: no shared memory, and sockets below UCX or libfabric.
    "MPIR_CVAR_NOLOCAL": "1",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "lo",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": "lo",
}
"""Environment variables that make MPIs communicate over TCP; each knows its own ones only."""


def _own_name() -> str:
    return f"{_ALONE}{os.getpid()}-{next(_COUNT)}"


class NicSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The emulated NIC of each node, and where this job's ranks are.

    `bandwidth`: B/s of each direction; the job's ranks 0 to `ranks_per_node` - 1 are on the first of `nodes`,
    the next ones on the second (default: nodes 0, 1, 2, …); `name`: jobs with the same one share their nodes'
    NICs, by default one that no other settings have; `log`: a folder for what was sent when.
    """

    bandwidth: float
    ranks_per_node: int = 1
    nodes: tuple[int, ...] = ()
    name: str = msgspec.field(default_factory=_own_name)
    log: str | None = None

    def environment(self) -> dict[str, str]:
        """As the environment of a process, with what makes its MPI use TCP."""
        variables = {
            "ELBOW_NIC_NAME": self.name,
            "ELBOW_NIC_BANDWIDTH": f"{self.bandwidth:g}",
            "ELBOW_NIC_RANKS_PER_NODE": str(self.ranks_per_node),
        }
        if self.nodes:
            variables["ELBOW_NIC_NODES"] = ",".join(map(str, self.nodes))
        if self.log is not None:
            variables["ELBOW_NIC_LOG"] = os.path.abspath(self.log)
        return variables | _TCP


def check(nic: NicSettings) -> None:
    """UsageError for settings that cannot be emulated."""
    if not nic.bandwidth >= LEAST_BANDWIDTH:
        raise UsageError("is below 1 kB/s", field="nic", value=nic.bandwidth, hint="give 50MB/s")
    if nic.ranks_per_node < 1:
        raise UsageError("is below 1", field="ranks_per_node", value=nic.ranks_per_node, hint="give 2")
    wrong = [node for node in nic.nodes if not 0 <= node < MOST_NODES]
    if wrong or len(set(nic.nodes)) < len(nic.nodes):
        raise UsageError(
            f"are not different numbers from 0 to {MOST_NODES - 1}",
            field="nic_nodes",
            value=",".join(map(str, nic.nodes)),
            hint="give 0,1",
        )
    if not _NAME.fullmatch(nic.name):
        raise UsageError(
            "is not a name of up to 100 letters, digits, dots and dashes",
            field="nic_name",
            value=nic.name,
            hint="give a short name: pair1",
        )


def preloads(nic: NicSettings) -> tuple[Path, ...]:
    """The library for the ranks, built on first use; after `check`."""
    check(nic)
    library = build.nic_library()
    return (plain_folder(library.parent) / library.name,)


def prepare(words: Sequence[str], nic: NicSettings) -> RecordedCommand:
    """The command that runs `words` behind the NIC. UsageError where there is no such command, or the
    settings are wrong; MachineError where the library cannot be built.
    """
    return recorder.prepare(words, None, preloads=preloads(nic), variables=nic.environment())


def behind(launch: Launch, nic: NicSettings) -> Launch:
    """A launch with its ranks behind the NIC; errors as `prepare`."""
    prepared = recorder.prepare(
        launch.command,
        None,
        preloads=preloads(nic),
        variables=nic.environment(),
        env={**os.environ, **launch.env},
    )
    return Launch(command=prepared.command, env=prepared.env)


@contextlib.contextmanager
def emulated(nic: NicSettings) -> Iterator[None]:
    """While jobs run behind the NIC. What nobody uses is removed from shared memory before and after: the
    last process does it, but not one that is killed.
    """
    remove_unused()
    try:
        yield
    finally:
        alone = nic.name.startswith(_ALONE)
        deadline = time.monotonic() + (_PATIENCE if alone else 0.0)
        # Ranks of a launcher that was killed may take a moment to end.
        while remove_unused(nic.name) and time.monotonic() < deadline:
            time.sleep(_BETWEEN)


def remove_unused(name: str = "*") -> list[Path]:
    """Removes the shared memory of NICs that no process of this user holds; the result is what is in use."""
    used = []
    for path in _MEMORY.glob(f"elbow-nic-{os.geteuid()}-{name}"):
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                continue  # what another user calls so: opening a pipe would wait
            with open(path, "rb") as file:
                # Every process that uses it holds a shared lock (lib/nic/board.cpp).
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except BlockingIOError:
            used.append(path)
        except OSError:
            continue  # another process removed it
    return used


def run_behind_nic(command: Sequence[str], nic: NicSettings, *, stdout: IO[bytes] | int | None = None) -> int:
    """Runs `command` with its ranks behind an emulated NIC, and gives its exit code, as a shell does.

    What the program prints stays its own. UsageError where there is no such command or the settings are
    wrong, MachineError where it cannot be started or the library cannot be built.
    """
    prepared = prepare(command, nic)
    with emulated(nic):
        return recorder.run(prepared, stdout)
