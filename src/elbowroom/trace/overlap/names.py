"""What a name of an event says: communication, a wait, set-up, a launch, a copy."""

from __future__ import annotations

import re

from elbowroom.trace import columns

_COMMUNICATES = re.compile(
    r"(void\s+)?(\w+::)*("
    r"P?MPIX?_[A-Z]\w*|p?mpi_[a-z]\w*_?$"
    r"|nccl|rccl|xccl|mscclKernel|oneccl|ccl_|gloo:|mpi:|ucc:|c10d::|_c10d_functional::|hccl|nvshmem|roc_?shmem|shmem_"
    r"|p?shmem|ucp_|uct_|ucc_|ibv_|gaspi_"
    r"|record_param_comms|cross_device_reduce|(one|two)_?shot_?all_?reduce"
    r"|all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|(ragged-)?all[-_]?to[-_]?all|send[-_]?recv"
    r"|collective-(permute|broadcast)|(send|recv)(-done)?\.\d+$)",  # XLA's
    re.IGNORECASE,
)
"""Beginnings of names that communicate. Broadcast is not among them: many kernels broadcast a tensor."""
_SET_UP = re.compile(
    r"(init|finali[sz]e|create|destroy|delete|free|alloc|malloc|calloc|set_?up|connect|bootstrap"
    r"|register|(^|_)reg_mr|dereg)|comm_?(split|dup|abort|count|rank|size|user|cu)",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"(?<![Aa])[Ss]ync\b|[Ss]ynchroni[sz]e|_sync_|event_?record|(^|[^a-z])wait|Wait|barrier|quiet|fence"
    r"|(^|_)poll|progress$|[Ff]inish|(Event|Stream|Context|Device|Host)[ _]Sync|_join$|_cond_|mutex_lock"
    r"|\b(u|nano)?sleep|sched_yield|\bidle|-done(\.\d+)?$",
)
_LAUNCHES = re.compile(
    r"(cuda|hip|ze|zes|cl|mtia|musa|cn|acl|acc|sycl|ur|pi)[A-Z]\w+$|cu[A-Z]\w+$|(acc|omp_target|hsa|aclrt)_?\w+$"
    r"|\w*([Ll]aunch|[Ee]nqueue)[A-Za-z]*$"
)
"""Calls of the runtimes of accelerators."""
_COPIES = re.compile(
    r"mem_?c(o?)py|\bdma|copy_?(host|device|[hdp]2|[hdp]to)|\b[hdp](2|to)[hdp]\b|memory_copy", re.IGNORECASE
)
_WITHIN = re.compile(
    r"\bD(2|to)D\b|Device\s*(->|to)\s*Device|DEVICE_TO_DEVICE|\bH(2|to)H\b|ARRAY", re.IGNORECASE
)
"""Copies inside one memory: they use no link."""
_MESSAGES = re.compile(
    r"send[-_]?recv|^(send|recv)\.|collective-permute"
    r"|c10d::(send|recv)|[:_](i?send|i?recv|put|get)(_|$|\s)|nccl(Send|Recv)|in flight",
    re.IGNORECASE,
)


def communicates(name: str) -> bool:
    """Whether a name is that of a communication library."""
    return _COMMUNICATES.match(name) is not None


def of_communication(name: str, *, kernel: bool = False) -> str:
    """`collective` or `message`; `wait` or `set-up` for a call that transfers nothing. Kernels of a library
    are never set-up.
    """
    if kind := columns.kind_of(name):
        return kind
    if not kernel and _SET_UP.search(name):
        return "set-up"
    if not kernel and is_wait(name):
        return "wait"
    return of_transfer(name) or "collective"


def of_transfer(name: str) -> str:
    """`message` if a name says so; empty otherwise."""
    return "message" if _MESSAGES.search(name) else ""


def is_wait(name: str) -> bool:
    """Whether a call, or an entry of a device's queue, only waits."""
    return _WAITS.search(name) is not None


def is_launch(name: str) -> bool:
    """Whether a call is one of an accelerator's runtime."""
    return _LAUNCHES.match(name) is not None


def is_copy(name: str) -> bool:
    """Whether a device copies between memories."""
    return _COPIES.search(name) is not None


def is_within(name: str) -> bool:
    """Whether a copy stays in one memory."""
    return _WITHIN.search(name) is not None
