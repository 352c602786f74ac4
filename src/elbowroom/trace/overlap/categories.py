"""What the categories of events mean, by format and by the words they consist of."""

from __future__ import annotations

import re
from functools import lru_cache

KERNELS = ("kernel", "concurrent_kernel", "kernel_dispatch")
COPIES = ("gpu_memcpy", "memcpy", "memory_copy")
HOST = ("cpu_op", "host", "Operator", "operator")
"""The host's operations (PyTorch until 1.9: Operator): with a device, they only launch what computes."""
LAUNCHED = "launch"
"""The category that a reader gives to operations of a host that has a device."""
STEP = "step"
ANNOTATION = "annotation"

_MEANINGS = {
    # elbowroom's own (docs/reference/trace-mpi.md, trace-runtimes.md)
    "poll": "wait",
    "idle": "wait",
    "clock": "runtime",
    "trace": "runtime",  # Kineto's too
    "protocol": "runtime",
    "starpu": "runtime",
    "scheduler": "runtime",
    "broadcast": "runtime",
    # Kineto
    "gpu_memset": "computation",
    "gpu_user_annotation": "annotation",
    "user_annotation": "annotation",
    "python_function": "annotation",
    "cpu_instant_event": "annotation",
    "overhead": "runtime",
    "collective_comm": "launch",
    STEP: "annotation",
    # Nsight Systems
    "nvtx": "annotation",
    "runtime": "launch",
    "memset": "computation",
    # OTF2
    "artificial": "runtime",
    "file_io": "input/output",
    "allocate": "set-up",
    **dict.fromkeys(("barrier", "wait", "sync"), "wait"),
    LAUNCHED: "launch",
}
_COMPUTING = frozenset((
    *("computation", "compute", "computing", "task", "tasks", "work", "user", "function", "region", "app"),
    *("application", "cpu", "loop", "kernels", "numeric", "solver"),
))  # fmt: skip
"""Categories that people give to what computes."""
_COMMUNICATING = frozenset((
    *("communication", "comm", "comms", "message", "messages", "mpi", "collective", "collectives", "network"),
    *("coll", "p2p"),  # NCCL's example profiler
    *("nccl", "rccl", "gloo", "shmem", "nvshmem", "ucx", "gaspi"),
))  # fmt: skip
_ACCELERATOR = re.compile(
    r"(^|_)(gpu|xpu|hpu|npu|tpu|ipu|mlu|mtia|musa|gaudi|ascend|neuron|privateuse(one|1)|rocm|hip|cuda|sycl"
    r"|device|accelerator)\d*(_|$)"
)
_RUNTIME = re.compile(r"(^|_)(runtime|driver|api|launch|launches|queue)(_|$)")
_SYNC = re.compile(r"(^|_)(sync|synchronization|synchronize|wait|waiting|idle|barrier)(_|$)")
_ANNOTATION = re.compile(r"(^|_)(annotation|range|marker|python|trace|instant|counter|insight)(_|$)")
_COPY = re.compile(r"(^|_)(mem)?cpy|copy|dma")


@lru_cache(maxsize=4096)
def meaning(category: str) -> str:
    """`computation`, `communication`, `operation` of the host, `device` (work of one), `copy`, `wait`,
    `launch`, `annotation`, `runtime`, `set-up`, `input/output`, `omp`; empty: no category is given;
    `unknown`. Of several, separated by commas, the first that is known.
    """
    words = [word.strip().lower() for word in category.split(",")]
    meanings = [_meaning(word) for word in words if word]
    return next((one for one in meanings if one != "unknown"), "unknown" if meanings else "")


def _meaning(word: str) -> str:
    if word in _MEANINGS:
        return _MEANINGS[word]
    if word in KERNELS:
        return "device"
    if word in COPIES:
        return "copy"
    if word in HOST:
        return "operation"
    if word == "omp":
        return word
    if word in _COMPUTING:
        return "computation"
    if word in _COMMUNICATING:
        return "communication"
    for pattern, kind in ((_RUNTIME, "launch"), (_SYNC, "wait"), (_ANNOTATION, "annotation")):
        if pattern.search(word):
            return kind
    if _ACCELERATOR.search(word):
        return "copy" if _COPY.search(word) else "device"
    return "unknown"


def on_device(category: str) -> bool | None:
    """Whether events of this category are on a device; None if their lane must say it."""
    kind = meaning(category)
    if kind in ("device", "copy") or category in ("gpu_memset", "memset", "gpu_user_annotation"):
        return True
    return None if kind in ("", "unknown", "wait") else False
