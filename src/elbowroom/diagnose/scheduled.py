"""What the scheduler's samples say of a span of time: how long the rank waited for a core, and slept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.bins import count_until
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
        """(M,) ns: the amount of each sample, shared by the spans whose middles `time`, in order, are in it,
        in proportion to `most`, and no more than that.
        """
        return self.samples_at(time).shared(amount, most)

    def waited_until(self, time: Ints) -> Floats:
        """(M,) ns that the rank waited for a core until each time, counted from its first sample."""
        edges = np.concatenate([self.begin[:1], self.end])
        return np.asarray(np.interp(time, edges, np.concatenate([[0.0], np.cumsum(self.waited)])))

    def samples_at(self, time: Ints) -> SamplesOfSpans:
        """The samples that the spans with these middles, in order, are in."""
        at = np.maximum(count_until(self.begin, time) - 1, 0)
        inside = (self.begin[at] <= time) & (time <= self.end[at])
        return SamplesOfSpans(at=np.where(inside, at, len(self.begin)), samples=len(self.begin))


class SamplesOfSpans(NamedTuple):
    """(M,) the sample of each span, of so many `samples`; `samples` itself where it is in none."""

    at: Ints
    samples: int

    def and_of(self, others: SamplesOfSpans) -> SamplesOfSpans:
        """Of these spans, and then of others."""
        return self._replace(at=np.concatenate([self.at, others.at]))

    def total(self, amount: Ints) -> Floats:
        """(samples,) the amounts (M,) of the spans in each sample."""
        return np.bincount(self.at, weights=amount, minlength=self.samples + 1)[:-1].astype(np.float64)

    def shared(self, amount: Floats, most: Ints) -> Ints:
        """(M,) the amount of each sample, shared by its spans in proportion to `most`, which is the most."""
        return self.at_rate(amount / np.maximum(self.total(most), 1.0), most)

    def at_rate(self, rate: Floats, most: Ints) -> Ints:
        """(M,) a part of `most` of each span: the `rate` of its sample, 1 at most."""
        part: Ints = (most * np.append(np.minimum(rate, 1.0), 0.0)[self.at]).astype(np.int64)
        return part


def waits_for_core(
    scheduled: Scheduled, samples: SamplesOfSpans, length: Ints, excess: Ints, free: Bools
) -> Ints:
    """ns that each of M spans waited for a core. A sample is longer than most spans: what it waited is in
    those that are longer than like ones, by their `excess`; what is left, evenly in all of its time. Of that,
    what is in `free` spans (long computation) counts: the rest is in waits for other ranks.
    """
    first = samples.shared(scheduled.waited, excess)
    taken = samples.total(first)
    left, rest = scheduled.waited - taken, scheduled.end - scheduled.begin - taken
    return first + samples.at_rate(left / np.maximum(rest, 1.0), np.where(free, length - first, 0))


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
