"""What a name of an event says: communication, a wait, set-up, a launch, a copy."""

from __future__ import annotations

import re

_COMMUNICATES = re.compile(
    r"(void\s+)?(\w+::)*("
    r"P?MPIX?_[A-Z]\w*|p?mpi_[a-z]\w*_?$"
    r"|nccl|rccl|xccl|mscclKernel|oneccl|ccl_|gloo:|mpi:|ucc:|c10d::|_c10d_functional::|hccl|nvshmem|roc_?shmem|shmem_"
    r"|p?shmem|ucp_|uct_|ucc_|ibv_|gaspi_"
    r"|record_param_comms|cross_device_reduce|(one|two)_?shot_?all_?reduce"
    r"|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv)",
    re.IGNORECASE,
)
"""Beginnings of names that communicate. Broadcast is not among them: many kernels broadcast a tensor."""
_MPI = re.compile(r"\s*P?MPIX?_(\w+)", re.IGNORECASE)
_MPI_ENDS = re.compile(r"(_(c|x|f08|f08ts|fts))?_{0,2}$")
"""Of MPI's names: large counts, and Fortran's."""
_MPI_COLLECTIVE = re.compile(
    r"i?(bcast|reduce(_scatter(_block)?)?|allreduce|(all)?gatherv?|scatterv?|alltoall[vw]?|(ex)?scan"
    r"|neighbor_(allgatherv?|alltoall[vw]?))$",
    re.IGNORECASE,
)
_MPI_MESSAGE = re.compile(
    r"(i?[bsr]?send|i?m?recv|i?sendrecv(_replace)?|start(all)?|pready(_range|_list)?"
    r"|r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap"
    r"|win_(fence|complete|unlock|unlock_all|flush\w*))$",
    re.IGNORECASE,
)
_MPI_WAIT = re.compile(
    r"(wait|test|(wait|test)(all|any|some)|request_get_status\w*|i?m?probe|i?barrier|parrived"
    r"|win_(wait|test|post|start|lock|lock_all|sync))$",
    re.IGNORECASE,
)
_SET_UP = re.compile(
    r"(init|finali[sz]e|create|destroy|delete|free|alloc|malloc|calloc|set_?up|connect|bootstrap"
    r"|register|(^|_)reg_mr|dereg)|comm_?(split|dup|abort|count|rank|size|user|cu)",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"(?<![Aa])[Ss]ync\b|[Ss]ynchroni[sz]e|_sync_|event_?record|(^|[^a-z])wait|Wait|barrier|quiet|fence"
    r"|(^|_)poll|progress$|[Ff]inish|(Event|Stream|Context|Device|Host)[ _]Sync|_join$|_cond_|mutex_lock"
    r"|\b(u|nano)?sleep|sched_yield|\bidle",
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
    r"send_?recv|c10d::(send|recv)|[:_](i?send|i?recv|put|get)(_|$|\s)|nccl(Send|Recv)|in flight",
    re.IGNORECASE,
)


def communicates(name: str) -> bool:
    """Whether a name is that of a communication library."""
    return _COMMUNICATES.match(name) is not None


def of_communication(name: str, *, kernel: bool = False) -> str:
    """`collective` or `message`; `wait` or `set-up` for a call that transfers nothing. Kernels of a library
    are never set-up.
    """
    mpi = _MPI.match(name)
    if mpi is not None:
        return _of_mpi(_MPI_ENDS.sub("", mpi[1]))
    if not kernel and _SET_UP.search(name):
        return "set-up"
    if not kernel and is_wait(name):
        return "wait"
    return of_transfer(name) or "collective"


def of_transfer(name: str) -> str:
    """`message` if a name says so; empty otherwise."""
    return "message" if _MESSAGES.search(name) else ""


def _of_mpi(call: str) -> str:
    for pattern, kind in ((_MPI_COLLECTIVE, "collective"), (_MPI_MESSAGE, "message"), (_MPI_WAIT, "wait")):
        if pattern.match(call):
            return kind
    return "input/output" if re.match(r"file_i?(read|write)", call, re.IGNORECASE) else "set-up"


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
