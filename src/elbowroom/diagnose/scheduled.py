"""What the scheduler's samples say of a span of time: how long the rank waited for a core, and slept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Scheduled(NamedTuple):
    """A rank's samples (N,), in order, ns: from `begin` to `end`, it `waited` for a core, and `slept`."""

    begin: Floats
    end: Floats
    waited: Floats
    slept: Floats

    def over(self, amount: Floats, time: Ints, most: Ints) -> Ints:
        """(M,) ns: the amount of each sample, shared by the spans whose middles `time` are in it, in
        proportion to `most`, and no more than that.
        """
        at, inside = self._sample_of(time)
        total = np.bincount(at[inside], weights=most[inside], minlength=len(self.begin))
        factor = np.minimum(1.0, amount / np.maximum(total, 1.0))
        return np.where(inside, most * factor[at], 0.0).astype(np.int64)

    def evenly(self, amount: Floats, length: Floats, time: Ints, most: Ints) -> Ints:
        """(M,) ns: the amount of each sample, spread over a time of this `length` in it, of which `most` is
        the part of the span at `time`.
        """
        at, inside = self._sample_of(time)
        rate = np.minimum(1.0, amount / np.maximum(length, 1.0))
        return np.where(inside, most * rate[at], 0.0).astype(np.int64)

    def waited_until(self, time: Ints) -> Floats:
        """(M,) ns that the rank waited for a core until each time, counted from its first sample."""
        edges = np.concatenate([self.begin[:1], self.end])
        return np.asarray(np.interp(time, edges, np.concatenate([[0.0], np.cumsum(self.waited)])))

    def total(self, time: Ints, amount: Ints) -> Floats:
        """(N,) the amounts of the spans in each sample."""
        at, inside = self._sample_of(time)
        return np.bincount(at[inside], weights=amount[inside], minlength=len(self.begin)).astype(np.float64)

    def _sample_of(self, time: Ints) -> tuple[Ints, Bools]:
        at = np.maximum(np.searchsorted(self.begin, time, side="right") - 1, 0)
        return at, (self.begin[at] <= time) & (time <= self.end[at])


def waits_for_core(scheduled: Scheduled, time: Ints, length: Ints, excess: Ints, free: Bools) -> Ints:
    """ns that each of M spans waited for a core. A sample is longer than most spans: what it waited is in
    those that are longer than like ones, by their `excess`; what is left, evenly in all of its time. Of that,
    what is in `free` spans (long computation) counts: the rest is in waits for other ranks.
    """
    first = scheduled.over(scheduled.waited, time, excess)
    taken = scheduled.total(time, first)
    left, rest = scheduled.waited - taken, scheduled.end - scheduled.begin - taken
    return first + scheduled.evenly(left, rest, time, np.where(free, length - first, 0))


def scheduled_of_rank(samples: f.Records | None, start: int) -> Scheduled | None:
    """The samples of the thread of a rank that has most of them; None without samples, or where the kernel
    does not count the time in the run queue.
    """
    if samples is None or not len(samples):
        return None
    threads, counts = np.unique(samples["thread"], return_counts=True)
    own = samples[samples["thread"] == threads[np.argmax(counts)]]
    if (own["waited_ns"] < 0).any():
        return None
    own = own[np.argsort(own["begin"], kind="stable")]
    begin, end = own["begin"].astype(np.float64) - start, own["end"].astype(np.float64) - start
    waited = own["waited_ns"].astype(np.float64)
    slept = np.maximum(end - begin - own["cpu_ns"] - waited, 0.0)
    return Scheduled(begin, end, waited, slept)
