"""Messages of any size, direction and number of threads, from what large ones keep: part of
models/flow/loads.py.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elbowroom.models.curves import Shape
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import INDEX, Array
from elbowroom.models.load import Messages

WAYS = {"receive": 0, "send": 1, "both": 2}
DIRECTIONS = (1.0, 1.0, 2.0)
"""q of each of WAYS."""

LEAST_MOVING = 0.01
"""Part of a calibrated message's time that moves data, at least."""

LEAST_KEPT = 1e-9


def part_of_nic(threads: Array, apart: Array, queueing: Array) -> Array:
    """Y(k, A): the part of the NIC that k threads use, each of which alone would use 1/A."""
    total = apart + threads - 1
    root = np.sqrt(np.maximum(total**2 - 4 * (threads - 1) * (apart - queueing), 0.0))
    part: Array = np.minimum(2 * threads / (total + root), 1.0)
    return part


def by_way(extension: Extension, suffix: str, way: NDArray[np.intp]) -> Array:
    """1 of receiving, else the parameter of sending or of both with that suffix, (D, R)."""
    send, both = (extension.get(word + suffix) for word in ("send", "both"))
    return np.where(way == WAYS["send"], send, np.where(way == WAYS["both"], both, 1.0))


def gain(extension: Extension, way: NDArray[np.intp], threads: Array) -> Array:
    """COMM' / COMM, (D, R), of large messages."""
    most = extension.get("thread_gain")
    of_threads = most * part_of_nic(threads, most, extension.get("queueing"))
    return by_way(extension, "", way) * np.where(threads > 1, of_threads, 1.0)


def of_size(
    parameters: Array, extension: Extension, shape: Shape, messages: Sequence[Messages], kept: Array
) -> tuple[Array, Array, Array]:
    """B, and what messages of their sizes reach alone and together (MB/s), (D, M) each, where large ones keep
    `kept`; for FLOW's parameters (D, P).
    """
    size = np.array([item.size for item in messages], dtype=float)
    threads = np.array([item.threads for item in messages], dtype=float)
    way = np.array([WAYS[item.direction] for item in messages], dtype=int)
    second = np.array([not shape.local(item.node) for item in messages], dtype=bool)
    comm = np.where(second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    most_gain, queueing = extension.get("thread_gain"), extension.get("queueing")
    speed, large = by_way(extension, "", way), np.maximum(kept, LEAST_KEPT)
    latency, unit = _regimes(extension, comm, size)
    moving = size * unit * np.array(DIRECTIONS)[way] / speed
    most = part_of_nic(threads, most_gain, queueing)
    apart = part_of_nic(threads, most_gain * (1 + latency / moving), queueing)
    idle = 1 - np.minimum(apart / most, 1.0)
    moves = large + extension.get("relief") * idle * (1 - large)
    waits = latency * (1 + extension.get("latency_load") * (1 / large - 1))
    beside = part_of_nic(threads, most_gain * (1 + moves * waits / moving), queueing)
    nic = speed * most_gain / unit
    return np.minimum(beside / most, 1.0), nic * apart, nic * moves * beside


def _regimes(extension: Extension, comm: Array, size: Array) -> tuple[Array, Array]:
    """LATENCY (us) of each message and U (us/B), (D, M)."""
    latencies, speeds = (
        np.concatenate([extension.get(f"{name}_{r}") for r in range(len(extension.switches) + 1)], axis=1)
        for name in ("latency", "speed")
    )
    regime = np.searchsorted(extension.switches, size, side="right")
    calibrated = bisect.bisect_right(extension.switches, extension.size)
    rest = np.maximum(1 - latencies[:, [calibrated]] * comm / extension.size, LEAST_MOVING)
    return latencies[:, regime], rest / (comm * speeds[:, regime])
