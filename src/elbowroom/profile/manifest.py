"""The manifest of a profile folder: what was profiled, where, and how it ended."""

from __future__ import annotations

from typing import Any

import msgspec

from elbowroom.documents import DocumentFormat

SCHEMA = "elbowroom/profile"
VERSION = 1
FILE = "profile.json"


class EmulatedNic(msgspec.Struct, frozen=True, kw_only=True):
    """The emulated NIC of a job: `bandwidth` in B/s of each direction of each node. `nodes`: those that the
    job is on, in the order of its ranks; empty: 0, 1, 2, …
    """

    name: str = ""
    bandwidth: float | None = None
    ranks_per_node: int | None = None
    nodes: tuple[int, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What `elbowroom profile` knows beside the files of the ranks. `machine`: the host that it ran on
    (machine/host.py), {} in older profiles; `exit_code` None: the program still runs, or elbowroom was
    killed; `memory_bytes`: of that host during the job, None where no counter was there, `memory_reason`
    says why. Samples of it are in memory.json.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str = ""
    command: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    machine: dict[str, Any] = {}
    mpi: str = ""
    started: str = ""
    exit_code: int | None = None
    window_ns: int | None = None
    nic: EmulatedNic | None = None
    memory_bytes: float | None = None
    memory_reason: str = "no counter of memory traffic was read"
    notes: tuple[str, ...] = ()


MANIFEST = DocumentFormat(
    kind=Manifest,
    schema=SCHEMA,
    version=VERSION,
    name="profile",
    hint="name a folder that `profile -o` wrote",
)
