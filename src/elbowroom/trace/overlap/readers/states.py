"""What the names of states and links mean in traces of task runtimes (Pajé, StarVZ)."""

from __future__ import annotations

import re
from functools import lru_cache

from elbowroom.trace.overlap.event_rows import RowLane
from elbowroom.trace.overlap.events import EventClass

_WAITS = re.compile(r"idle|sleep|block|wait|poll|^(no|nothing)$|barrier", re.IGNORECASE)
_RUNTIME = re.compile(
    r"init|overhead|sched|progress|callback|submit|build|alloc|reclaim|fetch|push|start|stop|hypervisor"
    r"|execut(ing|ion)$|tear|active$|finali[sz]",
    re.IGNORECASE,
)
_LINKS = re.compile(r"mpi|comm|message|transfer|send|link|flow", re.IGNORECASE)
_COPIES = re.compile(r"intra|driver|copy|prefetch|fetch", re.IGNORECASE)
_RANK = re.compile(r"(rank|mpi|process|proc|node|p)[ _:#-]*(\d+)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def state_class(value: str, type_name: str) -> EventClass:
    """The class of a state of a worker or a rank; a name that no rule knows is a task, which computes."""
    if "mpi" in type_name.lower() and not value.lower().startswith(("mpi", "comput", "pmpi")):
        category = "runtime"
    elif value.lower().startswith("comput"):
        category = "computation"
    elif _WAITS.search(value) and not value.lower().startswith(("mpi_", "pmpi_")):
        category = "wait"
    elif _RUNTIME.match(value):
        category = "scheduler"
    else:
        category = ""
    return EventClass(name=value, category=category)


@lru_cache(maxsize=4096)
def link_class(type_name: str) -> EventClass | None:
    """The class of a link between two containers; None where it is not a transfer (a dependency)."""
    if not _LINKS.search(type_name):
        return None
    return EventClass(name=type_name, category="memcpy" if _COPIES.search(type_name) else "message")


def rank_of(names: list[str]) -> str:
    """The rank of a container from the names on the way to it, outermost first; empty: not stated."""
    for name in reversed(names):
        if match := _RANK.fullmatch(name.strip()):
            return f"rank {int(match[2])}"
    return ""


def messages_of(rank: str) -> RowLane:
    """Where the messages that a rank sends are shown."""
    return RowLane(rank, "messages", True)
