"""Which processes of a trace in JSON are devices, and what the events of their host mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from elbowroom.trace.overlap.categories import HOST, LAUNCHED, meaning
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


class ProcessFacts:
    """What metadata events say of processes."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.labels: dict[Any, str] = {}
        self.devices: set[Any] = set()

    def add(self, process: Any, fact: Any, arguments: Any) -> None:
        """A metadata event of a process: its name, its labels, or where it is sorted."""
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
