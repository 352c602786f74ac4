"""Which operation of the host launched each event of a device, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elbowroom.trace.overlap.categories import HOST, LAUNCHED, meaning, on_device
from elbowroom.trace.overlap.events import NONE, EventClass, Flags, Ints, Small

_SPARSE = 8
"""Keys that are in a table by number: so many times their number, at most."""


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Of each event: the class of the `operation` that launched it (NONE: not known), when it was `issued`
    (ns; its own begin where that is not known), and the launch itself (`call`, an index of an event, or
    NONE).
    """

    operation: Small
    issued: Ints
    call: Small

    def served(self, lane: Ints | Small, owners: Sequence[Any]) -> dict[Any, Any]:
        """For each process that launches on one device only, the process that stands for that device.
        `owners`: the process of each lane.
        """
        known = np.flatnonzero(self.call != NONE)
        pairs = np.unique(lane[self.call[known]] * np.int64(len(owners)) + lane[known])
        devices_of: dict[Any, set[Any]] = {}
        for host, device in zip(
            *(one.tolist() for one in np.divmod(pairs, max(len(owners), 1))), strict=True
        ):
            devices_of.setdefault(owners[host], set()).add(owners[device])
        return {host: next(iter(devices)) for host, devices in devices_of.items() if len(devices) == 1}


def find_launches(
    classes: Sequence[EventClass],
    kind: Ints | Small,
    lane: Ints | Small,
    start: Ints,
    duration: Ints,
    correlation: Ints,
    external: Ints,
) -> Launches:
    """The operation is the one with the event's external id, or the one around the launch with its
    correlation. A number that several launches have says nothing of the time.
    """
    of_event = np.array([0, *map(_role, classes)], dtype=np.int8)[kind + 1]
    operations, calls, device = (np.flatnonzero(of_event == number) for number in (1, 2, 3))
    operation, call = np.full((2, len(kind)), NONE, dtype=np.int32)
    issued = start.copy()
    if not len(device):
        return Launches(operation=operation, issued=issued, call=call)
    by_external, alone_external = _ByKey(external, operations).find(external[device])
    by_correlation, alone = _ByKey(correlation, calls).find(correlation[device])
    operation[device] = np.where(by_external != NONE, kind[by_external], NONE)
    known = (by_correlation != NONE) & (by_external == NONE)
    if len(operations) and known.any():
        outer = _around(lane, start, duration, by_correlation[known], operations)
        operation[device[known]] = np.where(outer != NONE, kind[outer], NONE)
    call[device] = np.where(alone, by_correlation, NONE)
    timed = np.where(alone, by_correlation, by_external)
    issued[device] = np.where(alone | alone_external, np.minimum(start[timed], start[device]), start[device])
    return Launches(operation=operation, issued=issued, call=call)


def _role(one: EventClass) -> int:
    """1: an operation of the host, 2: a call of a runtime, 3: an event of a device; 0: anything else."""
    if one.category in (*HOST, LAUNCHED, "user_annotation"):
        return 1
    if meaning(one.category) in ("launch", "wait") and not on_device(one.category):
        return 2
    return 3 if on_device(one.category) else 0


class _ByKey:
    """The events `to` by their keys."""

    def __init__(self, key: Ints, to: Ints) -> None:
        to = to[key[to] != NONE]
        keys = key[to]
        self._low = int(keys.min()) if len(keys) else 0
        self._keys: Ints | None = None
        slots = int(keys.max()) - self._low + 1 if len(keys) else 0
        if slots > _SPARSE * (len(to) + _SPARSE):
            self._keys = np.unique(keys)
            slots = len(self._keys)
        self._first = np.full(slots + 1, NONE, dtype=np.int64)
        slot = self._slot(keys)
        self._first[slot[::-1]] = to[::-1]
        self._single = np.bincount(slot, minlength=slots + 1) == 1

    def _slot(self, keys: Ints) -> Ints:
        """Where each key is, as long as it is there; the last slot is that of all others."""
        others = len(self._first) - 1
        if self._keys is None:
            at: Ints = keys - self._low
            return np.where((at >= 0) & (at < others), at, others)
        at = np.minimum(np.searchsorted(self._keys, keys), others - 1)
        return np.where(self._keys[at] == keys, at, others)

    def find(self, keys: Ints) -> tuple[Ints, Flags]:
        """The first event with each key, NONE without one, and whether it is the only one."""
        slot = self._slot(keys)
        event = self._first[slot]
        return event, self._single[slot] & (event != NONE)


def _around(lane: Ints | Small, start: Ints, duration: Ints, inner: Ints, outer: Ints) -> Ints:
    """For each event `inner` the event `outer` of the same thread that begins last before it and has not
    ended, or the one before that; NONE without one.
    """
    order = outer[np.lexsort((start[outer], lane[outer]))]
    # One number that sorts by thread, then time.
    span = int(start.max() - start.min()) + 1
    first = int(start.min())
    key, wanted = (lane[one] * np.int64(span) + start[one] - first for one in (order, inner))
    at = np.searchsorted(key, wanted, side="right") - 1
    innermost = np.full(len(inner), NONE, dtype=np.int64)
    for _ in range(16):
        there = (at >= 0) & (innermost == NONE)
        place = order[np.maximum(at, 0)]
        inside = there & (lane[place] == lane[inner]) & (start[place] + duration[place] >= start[inner])
        innermost[inside] = place[inside]
        at = at - 1
    return innermost
