"""Which events of a trace are computation and which are communication.

By name alone tools fall silent when a library renames its kernels (NCCL: ncclKernel, then ncclDevKernel). So
four things decide, the first that knows: patterns of the user; the kind that the format states (MPI region,
direction of a copy, collective); the operation that launched the event; its name; then the stream: what runs
on a stream that otherwise communicates is communication.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Flags

Sides = npt.NDArray[np.int8]

OTHER, COMPUTATION, COMMUNICATION = 0, 1, 2
"""Sides of an event; `other` are launches, waits for locks, annotations, clocks."""

_NAMES = re.compile(
    r"(void\s+)?(\w+::)*("
    r"P?MPIX?_[A-Z]\w*|p?mpi_[a-z]\w*_?$"
    r"|nccl|rccl|mscclKernel|oneccl|ccl_|gloo:|c10d::|hccl|nvshmem|roc_?shmem|shmem_|p?shmem|ucp_|uct_|ibv_|gaspi_"
    r"|record_param_comms|cross_device_reduce|(one|two)_?shot_?all_?reduce"
    r"|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv)",
    re.IGNORECASE,
)
"""Beginnings of names that communicate. Broadcast is not among them: many kernels broadcast a tensor."""

_CATEGORIES = {
    # elbowroom's own (docs/reference/trace-mpi.md, trace-runtimes.md)
    "mpi": COMMUNICATION,
    "poll": COMMUNICATION,
    "communication": COMMUNICATION,
    "message": COMMUNICATION,
    "computation": COMPUTATION,
    "task": COMPUTATION,
    "clock": OTHER,
    "trace": OTHER,
    "protocol": OTHER,
    "starpu": OTHER,
    # Kineto
    "gpu_memset": COMPUTATION,
    "gpu_user_annotation": OTHER,
    "user_annotation": OTHER,
    "cuda_runtime": OTHER,
    "cuda_driver": OTHER,
    "hip_runtime": OTHER,
    "overhead": OTHER,
    "python_function": OTHER,
    "cpu_instant_event": OTHER,
    "Trace": OTHER,
    "step": OTHER,
    # Nsight Systems
    "nvtx": OTHER,
    "runtime": OTHER,
    "memset": COMPUTATION,
    # OTF2
    "artificial": OTHER,
}
_OPENMP_WORK = ("loop", "sections", "single", "taskloop", "masked", "workshare", "distribute")
_COPIES = ("gpu_memcpy", "memcpy")
_WITHIN = re.compile(r"DtoD|Device\s*(->|to)\s*Device|DEVICE_TO_DEVICE|HtoH|ARRAY", re.IGNORECASE)
"""Copies inside one memory: they use no link."""
KERNELS = ("kernel", "concurrent_kernel")
_HOST = ("cpu_op", "host")
"""The host's operations: with a device, they only launch what computes."""
STREAM_SHARE = 0.5
"""A stream communicates if recognised communication takes more than this share of its busy time."""


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """Regular expressions of the user, searched in names: what computes, what communicates, whatever the
    trace says.
    """

    computation: tuple[str, ...] = ()
    communication: tuple[str, ...] = ()

    def compiled(self) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
        """Both as patterns; UsageError for one that is no regular expression."""
        return _compiled("computation", self.computation), _compiled("communication", self.communication)


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


def sides(events: Events, patterns: Patterns | None = None) -> Sides:
    """The side of each event: shape (events,)."""
    computing, communicating = (patterns or Patterns()).compiled()
    devices = any(kind.category in KERNELS for kind in events.classes)
    by_class = np.array([_side(kind, devices) for kind in events.classes], dtype=np.int8)
    _set_launched(events, by_class)
    found = by_class[events.kind]
    found = _of_streams(events, by_class, found)
    for chosen, side in ((computing, COMPUTATION), (communicating, COMMUNICATION)):
        named = [any(one.search(kind.name) for one in chosen) for kind in events.classes] if chosen else []
        if named:
            found[np.array(named)[events.kind]] = side
    return found


def communicates(name: str) -> bool:
    """Whether a name is that of a communication."""
    return _NAMES.match(name) is not None


def _side(kind: EventClass, devices: bool) -> int:
    """The side that category and name state."""
    if kind.collective:
        return COMMUNICATION
    if kind.category in _CATEGORIES:
        return _CATEGORIES[kind.category]
    if kind.category in _COPIES:
        return COMPUTATION if _WITHIN.search(kind.name) else COMMUNICATION
    if kind.category == "omp":
        return COMPUTATION if kind.name in _OPENMP_WORK else OTHER
    if kind.category in _HOST and devices:
        return OTHER
    return COMMUNICATION if communicates(kind.name) else COMPUTATION


def _set_launched(events: Events, by_class: Sides) -> None:
    """Kernels that operations which communicate launched, at least half of those whose launch is known."""
    known = events.launched != NONE
    if not known.any():
        return
    launchers = np.array([communicates(kind.name) for kind in events.classes])
    launched = np.bincount(events.kind[known], minlength=len(by_class))
    by_them = np.bincount(
        events.kind[known], weights=launchers[events.launched[known]], minlength=len(by_class)
    )
    kernels = np.array([kind.category in KERNELS for kind in events.classes])
    by_class[kernels & (launched > 0) & (2 * by_them >= launched)] = COMMUNICATION


def _of_streams(events: Events, by_class: Sides, found: Sides) -> Sides:
    """Kernels on streams of a device that communicate become communication, unless the same kernels mostly
    run on other streams, or no other stream of the rank computes.
    """
    kernels = np.array([kind.category in KERNELS for kind in events.classes])
    device = np.array([lane.device for lane in events.lanes])
    chosen = device[events.lane] & kernels[events.kind]
    if not chosen.any():
        return found
    busy = _sums(events, chosen)
    communicating = _sums(events, chosen & (found == COMMUNICATION))
    streams = communicating > STREAM_SHARE * busy
    on_them = streams[events.lane] & chosen
    ranks = np.array([lane.rank for lane in events.lanes])
    computing = np.zeros(len(events.ranks), dtype=bool)
    np.logical_or.at(computing, ranks[~streams & (busy > communicating)], True)
    total = np.bincount(events.kind[chosen], minlength=len(by_class))
    there = np.bincount(events.kind[on_them], minlength=len(by_class))
    mostly = 10 * there >= 9 * total
    renamed: Flags = on_them & mostly[events.kind] & computing[events.rank] & (found == COMPUTATION)
    found[renamed] = COMMUNICATION
    return found


def _sums(events: Events, chosen: Flags) -> npt.NDArray[np.float64]:
    """Busy time of each lane, ns."""
    weights = events.duration[chosen].astype(float)
    return np.bincount(events.lane[chosen], weights, len(events.lanes)).astype(np.float64)
