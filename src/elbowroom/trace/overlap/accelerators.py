"""Which processes of a trace in JSON are devices, and what the events of their host mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from elbowroom.trace.overlap.categories import ANNOTATION, HOST, LAUNCHED, STEP, meaning
from elbowroom.trace.overlap.events import EventClass
from elbowroom.trace.overlap.names import is_launch

_DEVICE = re.compile(
    r"\s*(/\w+:\d+)*/?(device:)?(GPU|XPU|HPU|NPU|TPU|IPU|MLU|DCU|MTIA|MUSA|CUDA|ROCm|HIP|Ascend|Gaudi|Neuron"
    r"|PrivateUse(One|1)|Accelerator|Device)([ :_#-]*\d+|\s*$|\s+(hardware|device)\b)",
    re.IGNORECASE,
)
"""Names and labels of processes that stand for a device."""
_SORTED_AS_DEVICE = range(5_000_000, 1 << 29)
"""process_sort_index that Kineto gives to devices: 5,000,000 and more, before that 2^24; its spans have 2^29.
"""
_ON_HOST = re.compile(r"(gloo|mpi|ucc):", re.IGNORECASE)
"""Annotations of collectives that the host carries out."""
_ON_DEVICE = re.compile(r"(nccl|rccl|hccl|xccl|mccl|cncl|eccl|occl)", re.IGNORECASE)
_OPERATIONS = re.compile(r"_?c10d(_functional)?::|record_param_comms")
_WITHOUT_DEVICE = "a device was used, but none was recorded: the operations of the host count as launches"


OPERATIONS, ASYNCHRONOUS = "XLA Ops", "Async XLA Ops"
"""Threads of a device in the profiles of JAX and TensorFlow. Where there are streams (GPU), they repeat their
work; elsewhere (TPU) they are the work: operations, which nest, and collectives in flight.
"""
_THREADS_OF_XLA = {"Steps": STEP, OPERATIONS: OPERATIONS, ASYNCHRONOUS: ASYNCHRONOUS}


class ProcessFacts:
    """What metadata events say of processes, and of their threads."""

    def __init__(self) -> None:
        self.threads: dict[Any, dict[Any, str]] = {}
        self.names: dict[Any, str] = {}
        self.labels: dict[Any, str] = {}
        self.devices: set[Any] = set()

    def add(self, process: Any, fact: Any, arguments: Any, thread: Any = None) -> None:
        """A metadata event: a process's name, its labels, where it is sorted, or the name of a thread."""
        if fact == "thread_name" and arguments.name is not None:
            self.threads.setdefault(process, {})[thread] = str(arguments.name)
            return
        if fact == "process_name" and arguments.name is not None:
            self.names[process] = str(arguments.name)
        elif fact == "process_labels" and arguments.labels is not None:
            self.labels[process] = str(arguments.labels)
        elif fact == "process_sort_index":
            if isinstance(arguments.sort_index, int) and arguments.sort_index in _SORTED_AS_DEVICE:
                self.devices.add(process)
            return
        else:
            return
        if _DEVICE.match(str(arguments.name if fact == "process_name" else arguments.labels)):
            self.devices.add(process)

    def role_of(self, process: Any, thread: Any) -> str:
        """What the name of a thread says of all its events: STEP, ANNOTATION, OPERATIONS or ASYNCHRONOUS;
        empty: nothing.
        """
        names = self.threads.get(process, {})
        if process not in self.devices or not {"XLA Modules", OPERATIONS} & set(names.values()):
            return ""
        name = names.get(thread, "")
        if not name or name.startswith("Stream #"):
            return ""
        role = _THREADS_OF_XLA.get(name, ANNOTATION)
        streams = any(one.startswith("Stream #") for one in names.values())
        return ANNOTATION if streams and role != STEP else role

    def titles(self, processes: Iterable[Any], otherwise: str) -> dict[Any, str]:
        """A name for each process that no other has."""
        names = {
            one: self.labels.get(one) or self.names.get(one) or f"{otherwise} {one}"
            for one in dict.fromkeys(processes)
        }
        texts = list(names.values())
        return {one: text if texts.count(text) == 1 else f"{text} ({one})" for one, text in names.items()}


def of_host(classes: Sequence[EventClass], *, device: bool, backends: str) -> tuple[list[EventClass], str]:
    """The classes of the host's lanes with the categories that follow from what else was recorded, and a note
    (may be empty). `device`: whether events of a device were recorded; `backends`: those that the trace
    states.
    """
    annotated = any(_ON_HOST.match(one.name) for one in classes)
    by_device = any(_ON_DEVICE.match(one.name) for one in classes) or _ON_DEVICE.search(backends) is not None
    launching = any(meaning(one.category) == "launch" and is_launch(one.name) for one in classes)
    used = device or by_device or launching
    operations = []
    for one in classes:
        stated = meaning(one.category)
        category = one.category
        if stated == "annotation" and _ON_HOST.match(one.name):
            category = "communication"
        elif one.category in HOST or not stated:
            launches = used or (annotated and _OPERATIONS.match(one.name))
            category = LAUNCHED if launches else category
        operations.append(msgspec.structs.replace(one, category=category))
    launched = used and not device and any(one.category == LAUNCHED for one in operations)
    return operations, _WITHOUT_DEVICE if launched else ""


def backends_of(stated: Any) -> str:
    """The names of a job's backends, as Kineto's `distributedInfo` has them."""
    if not isinstance(stated, dict):
        return ""
    groups = stated.get("pg_config")
    several = (
        [one.get("backend_config") for one in groups if isinstance(one, dict)]
        if isinstance(groups, list)
        else []
    )
    return " ".join(str(one) for one in (stated.get("backend"), *several) if one)
