"""Which events of a trace are computation, which are communication, and what is neither.

By name alone tools fall silent when a library renames its kernels (NCCL: ncclKernel, then ncclDevKernel). So
four things decide, the first that knows: patterns of the user; the kind that the format states (MPI region,
direction of a copy, collective); the operation that launched the event; its name; then the stream: what runs
on a stream that otherwise communicates is communication.

Waits, set-up, launches, annotations and categories that are not known are left out: they are no computation,
and nothing is hidden beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.trace.overlap import names
from elbowroom.trace.overlap.categories import KERNELS, LAUNCHED, STEP, meaning
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Flags

Sides = npt.NDArray[np.int8]

OTHER, COMPUTATION, COMMUNICATION, WAITING = range(4)
"""Sides of an event. `waiting`: a call that waits for messages. Nothing is hidden beside it, but where the
rank does not compute, it is exposed communication.
"""
KINDS = {
    "computation": COMPUTATION,
    "collective": COMMUNICATION,
    "message": COMMUNICATION,
    "copy": COMMUNICATION,
    "communication": COMMUNICATION,
    "wait for messages": WAITING,
    **dict.fromkeys(("set-up", "wait", "launch", "annotation", "runtime", "input/output", "unknown"), OTHER),
}
"""Kinds of events, and their sides."""
_NUMBERS = {name: number for number, name in enumerate(KINDS)}
_SIDES = np.array(list(KINDS.values()), dtype=np.int8)
_OPENMP_WORK = ("loop", "sections", "single", "taskloop", "masked", "workshare", "distribute")
CHANNEL = "KernelCh"
"""A channel of a collective, which NCCL's example profiler writes beside the collective."""
STREAM_SHARE = 0.5
"""A stream communicates if recognised communication takes more than this share of its busy time."""


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """Regular expressions of the user, searched in names: what computes, what communicates, whatever the
    trace says; and what a `step` is.
    """

    computation: tuple[str, ...] = ()
    communication: tuple[str, ...] = ()
    step: tuple[str, ...] = ()

    def compiled(self) -> dict[str, list[re.Pattern[str]]]:
        """All as patterns; UsageError for one that is not a regular expression."""
        return {field: _compiled(field, getattr(self, field)) for field in self.__struct_fields__}


def _compiled(field: str, texts: Sequence[str]) -> list[re.Pattern[str]]:
    patterns = []
    for text in texts:
        try:
            patterns.append(re.compile(text))
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(
                f"is not a regular expression ({error})",
                field=field,
                value=text,
                hint="for instance 'gemm|conv'",
            ) from error
    return patterns


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """The kind of each event as a number of KINDS, and its side: both of shape (events,)."""

    kind: Sides
    side: Sides

    def of_kind(self, name: str) -> Flags:
        """The events of a kind."""
        flags: Flags = self.kind == _NUMBERS[name]
        return flags


def recognise(events: Events, patterns: Patterns | None = None) -> Recognised:
    """The kind and the side of each event."""
    chosen = (patterns or Patterns()).compiled()
    kinds = [_kind(one) for one in events.classes]
    by_class = np.array([_NUMBERS[kind] for kind in kinds], dtype=np.int8)
    _set_launched(events, by_class)
    of_events = _of_streams(events, by_class, by_class[events.kind])
    for name, side in (("computation", COMPUTATION), ("communication", COMMUNICATION)):
        if chosen[name]:
            named = [any(one.search(kind.name) for one in chosen[name]) for kind in events.classes]
            of_events[np.array(named)[events.kind] & (_SIDES[of_events] != side)] = _NUMBERS[name]
    return Recognised(kind=of_events, side=_SIDES[of_events])


def _kind(one: EventClass) -> str:
    """The kind that category and name state."""
    stated = meaning(one.category)
    if one.collective:
        return names.of_communication(one.name, kernel=True)
    if stated == "wait" and names.communicates(one.name):
        return "wait for messages"
    if stated in KINDS and KINDS[stated] == OTHER:
        waits = _waits if one.category == LAUNCHED else names.is_wait
        return "wait" if stated == "launch" and waits(one.name) else stated
    if stated == "copy":
        return "computation" if names.is_within(one.name) else "copy"
    if stated == "omp":
        return "computation" if one.name in _OPENMP_WORK else "runtime"
    kernel = one.category in KERNELS
    if stated == "communication" and not names.communicates(one.name):
        return "wait for messages" if names.is_wait(one.name) else names.of_transfer(one.name) or stated
    if names.communicates(one.name):
        kind = names.of_communication(one.name, kernel=kernel)
        return "wait for messages" if kind == "wait" else kind
    if kernel:
        return "computation"
    if stated == "device":
        return _of_device(one.name)
    if stated in ("", "operation") or one.category in ("user", "function"):
        return "wait" if _waits(one.name) else "launch" if names.is_launch(one.name) else "computation"
    return "computation"


def _of_device(name: str) -> str:
    """An entry of a device's queue whose category names the device only."""
    if name == CHANNEL:
        return "runtime"
    if names.is_wait(name):
        return "wait"
    if names.is_copy(name):
        return "computation" if names.is_within(name) else "copy"
    return "computation"


def _waits(name: str) -> bool:
    """Whether a call of the host waits: by the runtimes' and the system's own names only, since a program's
    function may be called anything.
    """
    return re.match(r"[\w:]+$", name) is not None and names.is_wait(name) and (
        names.is_launch(name) or name.startswith(("pthread_", "sem_", "usleep", "sleep", "nanosleep", "poll",
                                                  "epoll", "select", "futex", "sched_yield"))
    )  # fmt: skip


def _set_launched(events: Events, by_class: Sides) -> None:
    """Kernels that operations which communicate launched, at least half of those whose launch is known."""
    known = events.launched != NONE
    if not known.any():
        return
    launchers = np.array([names.communicates(kind.name) for kind in events.classes])
    launched = np.bincount(events.kind[known], minlength=len(by_class))
    by_them = np.bincount(
        events.kind[known], weights=launchers[events.launched[known]], minlength=len(by_class)
    )
    kernels = np.array([meaning(kind.category) == "device" for kind in events.classes])
    new = kernels & (launched > 0) & (2 * by_them >= launched) & (_SIDES[by_class] == COMPUTATION)
    by_class[new] = _NUMBERS["collective"]


def _of_streams(events: Events, by_class: Sides, kinds: Sides) -> Sides:
    """Kernels on streams of a device that communicate become communication, unless the same kernels mostly
    run on other streams, or no other stream of the rank computes.
    """
    kernels = np.array([kind.category in KERNELS for kind in events.classes])
    device = np.array([lane.device for lane in events.lanes])
    chosen = device[events.lane] & kernels[events.kind]
    if not chosen.any():
        return kinds
    busy = _sums(events, chosen)
    communicating = _sums(events, chosen & (_SIDES[kinds] == COMMUNICATION))
    streams = communicating > STREAM_SHARE * busy
    on_them = streams[events.lane] & chosen
    ranks = np.array([lane.rank for lane in events.lanes])
    computing = np.zeros(len(events.ranks), dtype=bool)
    np.logical_or.at(computing, ranks[~streams & (busy > communicating)], True)
    total = np.bincount(events.kind[chosen], minlength=len(by_class))
    there = np.bincount(events.kind[on_them], minlength=len(by_class))
    mostly = 10 * there >= 9 * total
    renamed: Flags = on_them & mostly[events.kind] & computing[events.rank] & (_SIDES[kinds] == COMPUTATION)
    kinds[renamed] = _NUMBERS["communication"]
    return kinds


def _sums(events: Events, chosen: Flags) -> npt.NDArray[np.float64]:
    """Busy time of each lane, ns."""
    weights = events.duration[chosen].astype(float)
    return np.bincount(events.lane[chosen], weights, len(events.lanes)).astype(np.float64)


def steps_of(events: Events, patterns: Patterns | None = None) -> Flags:
    """The events that are steps, by the user's patterns, or else by their names."""
    chosen = (patterns or Patterns()).compiled()["step"]
    flags = [
        any(one.search(kind.name) for one in chosen) if chosen else kind.category == STEP
        for kind in events.classes
    ]
    matches: Flags = np.array(flags, dtype=bool)[events.kind]
    return matches
