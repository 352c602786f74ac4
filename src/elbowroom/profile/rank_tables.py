"""The threads, modules, calls and sites in the file of a process, and the checks of what a file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError

THREAD_1 = np.dtype(
    [
        ("thread", "<i4"), ("cpus", "<u4"), ("first", "<u4"), ("last", "<u4"), ("mask", "<u8"),
        ("cpu_ns", "<u8"),
    ]
)  # fmt: skip
THREADS_1 = 116
"""Threads of a process that are in a file of format 1 at most."""
THREAD = np.dtype(
    [
        *((name, THREAD_1[name]) for name in THREAD_1.names or ()),
        ("waited_ns", "<u8"),
        ("cpu", "<i4"),
        ("node", "<i4"),
        ("migrations", "<u4"),
        ("reserved", "<u4"),
    ]
)

CALL_KIND = np.dtype([("name", "S40"), ("count", "<u8"), ("ns", "<u8"), ("bytes", "<u8")])
SITE = np.dtype(
    [
        ("call", "<u4"), ("module", "<u4"), ("offset", "<u8"), ("reserved", "<u8", 3), ("count", "<u8"),
        ("ns", "<u8"), ("bytes", "<u8"),
    ]
)  # fmt: skip
MODULE = np.dtype([("bias", "<u8"), ("size", "<u8"), ("mtime_ns", "<i8"), ("path", "S1000")])
NO_MODULE = 0xFFFFFFFF
MOST_NS = 1 << 62
MOST_CPUS = 1 << 20
"""What is larger is damage."""


class CallKind(msgspec.Struct, frozen=True, kw_only=True):
    """What one MPI function did in a process: `ns` inside it, `bytes` that this process gave it."""

    name: str
    count: int
    ns: int
    bytes: int


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the program that calls MPI: the function's name, and the return address as a virtual address
    of the module (an executable or shared library, by its path). No module: the place is not known.
    `size` and `mtime_ns` are those of the module's file when the program ran, 0 if not known.
    """

    call: str
    module: str = ""
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0


class ThreadPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A thread: how many cores it may run on, the first and the last of them, a hash of all (threads with the
    same cores have the same), and its CPU time in ns.

    `waited_ns`: its time in the run queue; `cpu` and `node`: the core that it ran on last, and that core's
    NUMA node; `migrations`: how often it was seen on another core than before. None if not known.
    """

    thread: int
    cpus: int
    first: int
    last: int
    mask: int
    cpu_ns: int
    waited_ns: int | None = None
    cpu: int | None = None
    node: int | None = None
    migrations: int | None = None


class CpuLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the control group of a process allowed at MPI_Init: `cpus`, cores' worth of time (None: no limit),
    and the list of its cores, as "0-3,8" ("" if not known).
    """

    cpus: float | None
    cpuset: str


def threads_of(places: npt.NDArray[Any]) -> tuple[ThreadPlace, ...]:
    """Those of THREAD, or of THREAD_1."""
    names = places.dtype.names or ()
    return tuple(_thread({name: int(place[name]) for name in names}) for place in places)


def _thread(place: dict[str, int]) -> ThreadPlace:
    known: dict[str, Any] = {name: place[name] for name in THREAD_1.names or ()}
    if "cpu" in place:
        # A kernel that does not count the one does not count the other.
        known["waited_ns"] = place["waited_ns"] if place["cpu_ns"] else None
        known["node"] = place["node"] if place["node"] >= 0 else None
    if place.get("cpu", -1) >= 0:
        known |= {"cpu": place["cpu"], "migrations": place["migrations"]}
    return ThreadPlace(**known)


def limits_of(path: Path, head: Any) -> CpuLimits | None:
    """Those of the control group; None where it is not known."""
    check(path, "cpu_limit", abs(cpus := float(head["cpu_limit"])) < MOST_CPUS)
    return CpuLimits(cpus=cpus or None, cpuset=text(head["cpuset"])) if cpus >= 0 else None


def checked_sites(
    path: Path, sites: npt.NDArray[Any], modules: npt.NDArray[Any], calls: tuple[CallKind, ...]
) -> tuple[Site, ...]:
    """Those of unknown place, one of each call, and those of the table."""
    known = sites["module"] != NO_MODULE
    check(path, "sites", len(calls) + len(sites) <= 1 << 16)
    check(path, "sites.call", int(sites["call"].max(initial=0)) < len(calls) or not len(sites))
    check(path, "sites.module", int(sites["module"][known].max(initial=0)) < len(modules) or not known.any())
    files = [
        {"module": text(one["path"]), "size": int(one["size"]), "mtime_ns": int(one["mtime_ns"])}
        for one in modules
    ]
    places: list[dict[str, Any]] = [files[one] if one != NO_MODULE else {} for one in sites["module"]]
    return (
        *(Site(call=kind.name) for kind in calls),
        *(
            Site(call=calls[site["call"]].name, offset=int(site["offset"]), **place)
            for site, place in zip(sites, places, strict=True)
        ),
    )


def with_sites(path: Path, calls: tuple[CallKind, ...], sites: npt.NDArray[Any]) -> tuple[CallKind, ...]:
    """The totals of calls with those of their sites."""
    sums = {}
    for name in ("count", "ns", "bytes"):
        check(path, f"sites.{name}", name == "bytes" or int(sites[name].max(initial=0)) < MOST_NS)
        sums[name] = np.zeros(len(calls), object)
        np.add.at(sums[name], sites["call"], sites[name].astype(object))
    return tuple(
        msgspec.structs.replace(
            kind, **{name: getattr(kind, name) + int(sums[name][at]) for name in ("count", "ns", "bytes")}
        )
        for at, kind in enumerate(calls)
    )


def text(raw: bytes) -> str:
    """A text of C; what cannot be printed is replaced."""
    letters = raw.split(b"\0")[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "�" for letter in letters)


def check(path: Path, what: str, good: object) -> None:
    """UsageError unless it is good."""
    if not good:
        raise file_error(path, f"is damaged: its {what} cannot be right")


def file_error(path: Path, message: str, hint: str = "profile the program again") -> UsageError:
    """One sentence on a file."""
    return UsageError(message, field="profile", value=str(path), hint=hint)
