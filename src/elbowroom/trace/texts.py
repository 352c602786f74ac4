"""Descriptive records found by the events they belong to: of the same process, with the same key."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from elbowroom.trace.columns import RECEIVE, SEND, Block, TracedJob

_MIX = np.uint64(0x9E3779B97F4A7C15)


class Texts:
    """Finds texts of events. A text of a task belongs to events of all types of tasks: it may be told by
    another type than the task's own, and by the thread that made the task.
    """

    def __init__(self, job: TracedJob) -> None:
        self.texts = [text.text for text in job.texts]
        kinds = np.arange(len(job.types), dtype=np.uint64)
        for index, kind in enumerate(job.types):
            if job.category(kind) == "task" and kind.name != "dependency":
                kinds[index] = len(job.types)
        self._kinds = kinds
        self._ranks = np.array([thread.rank for thread in job.threads], dtype=np.uint64)
        owners = self._owners(
            np.array([text.thread for text in job.texts], dtype=np.intp),
            np.array([text.type for text in job.texts], dtype=np.intp),
        )
        keys = np.array([text.key for text in job.texts], dtype=np.uint64)
        # Told twice, the last one counts.
        order = np.lexsort((np.arange(len(keys))[::-1], keys, owners))
        owners, keys = owners[order], keys[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1])
        owners, keys, order = owners[first], keys[first], order[first]
        mixed = _mixed(owners, keys)
        by_mix = np.argsort(mixed, kind="stable")
        self._mixed, self._numbers = mixed[by_mix], order[by_mix]
        self._owner, self._key = owners[by_mix], keys[by_mix]

    def of(self, events: Block) -> npt.NDArray[np.int64]:
        """For each event the number of its text in the job, -1 without one."""
        numbers = np.full(len(events), -1, dtype=np.int64)
        if not len(self._mixed) or not len(events):
            return numbers
        owners = self._owners(events["thread"], events["type"])
        mixed = _mixed(owners, events["first"])
        # Different keys may mix alike: the few that do stand beside each other.
        at = np.searchsorted(self._mixed, mixed)
        open_ = (events["kind"] != SEND) & (events["kind"] != RECEIVE)
        while open_.any():
            open_ &= at < len(self._mixed)
            place = np.minimum(at, len(self._mixed) - 1)
            open_ &= self._mixed[place] == mixed
            here = open_ & (self._owner[place] == owners) & (self._key[place] == events["first"])
            numbers[here] = self._numbers[place[here]]
            open_ &= ~here
            at = at + 1
        return numbers

    def _owners(
        self, threads: npt.NDArray[np.integer], types: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.uint64]:
        size = np.uint64(len(self._kinds) + 1)
        owners: npt.NDArray[np.uint64] = self._ranks[threads] * size + self._kinds[types]
        return owners


def _mixed(owners: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed: npt.NDArray[np.uint64] = owners * _MIX ^ keys
    return mixed
