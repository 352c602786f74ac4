"""Which operation of the host launched each event of a device, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elbowroom.trace.overlap.categories import HOST, LAUNCHED, meaning, on_device
from elbowroom.trace.overlap.events import NONE, EventClass, Flags, Ints


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Of each event: the class of the `operation` that launched it (NONE: not known), when it was `issued`
    (ns; its own begin where that is not known), and the launch itself (`call`, an index of an event, or
    NONE).
    """

    operation: Ints
    issued: Ints
    call: Ints

    def served(self, lane: Ints, owners: Sequence[Any]) -> dict[Any, Any]:
        """For each process that launches on one device only, the process that stands for that device.
        `owners`: the process of each lane.
        """
        known = np.flatnonzero(self.call != NONE)
        pairs = (
            np.unique(np.stack([lane[self.call[known]], lane[known]]), axis=1)
            if len(known)
            else np.zeros((2, 0))
        )
        devices_of: dict[Any, set[Any]] = {}
        for host, device in pairs.T.astype(int).tolist():
            devices_of.setdefault(owners[host], set()).add(owners[device])
        return {host: next(iter(devices)) for host, devices in devices_of.items() if len(devices) == 1}


def find_launches(
    classes: Sequence[EventClass],
    kind: Ints,
    lane: Ints,
    start: Ints,
    duration: Ints,
    correlation: Ints,
    external: Ints,
) -> Launches:
    """The operation is the one with the event's external id, or the one around the launch with its
    correlation. A number that several launches have says nothing of the time.
    """
    of_event = np.array([_role(one) for one in classes], dtype=np.int64)
    of_event = of_event[kind] if len(kind) else kind
    operations, calls, device = (np.flatnonzero(of_event == number) for number in (1, 2, 3))
    operation, issued = np.full(len(kind), NONE, dtype=np.int64), start.copy()
    call = np.full(len(kind), NONE, dtype=np.int64)
    if not len(device):
        return Launches(operation=operation, issued=issued, call=call)
    by_external = _joined(external, device, operations)
    by_correlation = _joined(correlation, device, calls)
    operation[device] = np.where(by_external != NONE, kind[by_external], NONE)
    if len(operations):
        around = _around(lane, start, duration, calls, operations)
        known = (by_correlation != NONE) & (by_external == NONE)
        outer = around[np.searchsorted(calls, by_correlation[known])]
        operation[device[known]] = np.where(outer != NONE, kind[outer], NONE)
    call[device] = np.where(_alone(correlation, by_correlation, calls), by_correlation, NONE)
    timed = np.where(call[device] != NONE, call[device], by_external)
    alone = (call[device] != NONE) | _alone(external, by_external, operations)
    issued[device] = np.where(alone, np.minimum(start[timed], start[device]), start[device])
    return Launches(operation=operation, issued=issued, call=call)


def _role(one: EventClass) -> int:
    """1: an operation of the host, 2: a call of a runtime, 3: an event of a device; 0: anything else."""
    if one.category in (*HOST, LAUNCHED, "user_annotation"):
        return 1
    if meaning(one.category) in ("launch", "wait") and not on_device(one.category):
        return 2
    return 3 if on_device(one.category) else 0


def _alone(key: Ints, partner: Ints, to: Ints) -> Flags:
    """Whether the event that was found is the only one with its key."""
    values, counts = np.unique(key[to], return_counts=True)
    if not len(values):
        return np.zeros(len(partner), dtype=bool)
    at = np.minimum(np.searchsorted(values, key[partner]), len(values) - 1)
    alone: Flags = (partner != NONE) & (counts[at] == 1)
    return alone


def _joined(key: Ints, of: Ints, to: Ints) -> Ints:
    """For each event `of` the event among `to` with the same key, NONE without one."""
    to = to[key[to] != NONE]
    if not len(to):
        return np.full(len(of), NONE, dtype=np.int64)
    order = to[np.argsort(key[to], kind="stable")]
    at = np.minimum(np.searchsorted(key[order], key[of]), len(order) - 1)
    return np.where(key[order[at]] == key[of], order[at], NONE)


def _around(lane: Ints, start: Ints, duration: Ints, inner: Ints, outer: Ints) -> Ints:
    """For each event `inner` the event `outer` of the same thread that begins last before it and has not
    ended, or the one before that; NONE without one.
    """
    order = outer[np.lexsort((start[outer], lane[outer]))]
    # One number that sorts by thread, then time.
    span = int(start.max() - start.min()) + 1
    first = int(start.min())
    key, wanted = lane[order] * span + start[order] - first, lane[inner] * span + start[inner] - first
    at = np.searchsorted(key, wanted, side="right") - 1
    innermost = np.full(len(inner), NONE, dtype=np.int64)
    for _ in range(16):
        there = (at >= 0) & (innermost == NONE)
        place = order[np.maximum(at, 0)]
        inside = there & (lane[place] == lane[inner]) & (start[place] + duration[place] >= start[inner])
        innermost[inside] = place[inside]
        at = at - 1
    return innermost
