"""What the scheduler's samples say of a span of time: how long the rank waited for a core, and slept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Scheduled(NamedTuple):
    """A rank's samples, summed up: (N,) `times`, ns; `waited`, `slept`: until then, ns."""

    times: Floats
    waited: Floats
    slept: Floats

    def waited_in(self, begin: Ints, end: Ints) -> Ints:
        """ns in the run queue in each span: what a sample has is spread evenly over its time."""
        return self._between(self.waited, begin, end)

    def slept_in(self, begin: Ints, end: Ints) -> Ints:
        """ns asleep in each span."""
        return self._between(self.slept, begin, end)

    def _between(self, total: Floats, begin: Ints, end: Ints) -> Ints:
        between = np.interp(end, self.times, total) - np.interp(begin, self.times, total)
        result: Ints = np.maximum(between, 0.0).astype(np.int64)
        return result


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
    times = np.stack([begin, end], axis=1).ravel()
    return Scheduled(np.maximum.accumulate(times), _until(waited), _until(slept))


def _until(amount: Floats) -> Floats:
    """The sum before and after each sample."""
    after = np.cumsum(amount)
    return np.stack([after - amount, after], axis=1).ravel()
