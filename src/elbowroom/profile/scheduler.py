"""What the scheduler did with the threads that call MPI: CPU time, waits in the run queue, cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]

SAMPLE = np.dtype(
    [(name, "<i8") for name in ("begin", "end", "thread", "cpu_ns", "waited_ns", "cpu")],
)
"""`thread`: its number in RankFile.threads; `waited_ns`: -1 where it is not known."""


class SchedulerSamples(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler did with the threads that call MPI, N of each field, ordered by rank and begin;
    times in ns since the job's start.

    Between `begin` and `end` a thread was `cpu_ns` on a core and `waited_ns` in the run queue; the rest of
    the time it slept. `thread` is a number in the rank's `threads`, `cpu` the core at the end. `waited_ns` is
    None where the kernel does not count it (CONFIG_SCHED_INFO), and -1 in single samples that do not know it.
    """

    rank: Ints
    thread: Ints
    begin: Ints
    end: Ints
    cpu_ns: Ints
    waited_ns: Ints | None
    cpu: Ints


def samples_of(ran: Rows, waited: Rows, is_unknown: npt.NDArray[np.bool_], threads: int) -> Rows:
    """SAMPLE of the records RAN of a rank, ordered by begin, each with the wait in the record WAITED of its
    thread and end. `is_unknown`: of each of `ran`, whether its wait is not known; `threads`: how many the
    rank has.
    """
    samples = np.zeros(len(ran), SAMPLE)
    for field, name in (("begin", "begin"), ("end", "end"), ("thread", "call"), ("cpu_ns", "bytes")):
        samples[field] = ran[name]
    samples["cpu"] = ran["peer"]
    samples["waited_ns"] = np.where(is_unknown, -1, 0)
    samples = samples[np.lexsort((samples["end"], samples["thread"]))]
    for thread in np.unique(waited["call"]):
        first, last = np.searchsorted(samples["thread"], (thread, int(thread) + 1))
        ends = samples["end"][first:last]
        waits = waited[waited["call"] == thread]
        waits = waits[np.isin(waits["end"].astype(np.int64), ends)]
        samples["waited_ns"][first + np.searchsorted(ends, waits["end"].astype(np.int64))] = waits["bytes"]
    samples["thread"][samples["thread"] >= threads] = -1
    return samples[np.argsort(samples["begin"], kind="stable")]


def samples_of_ranks(samples: Mapping[int, Rows | None], start: Mapping[int, int]) -> SchedulerSamples | None:
    """SAMPLE of all ranks, by rank, whose times begin at `start` (ns); None where no rank has any."""
    there = {rank: own for rank, own in samples.items() if own is not None and len(own)}
    if not there:
        return None
    joined = np.concatenate(list(there.values()))
    rank = np.repeat(np.array(list(there)), [len(own) for own in there.values()])
    began = np.array([start[one] for one in there])[np.searchsorted(list(there), rank)]
    columns: dict[str, Any] = {name: joined[name] for name in SAMPLE.names or ()}
    columns |= {name: joined[name] - began for name in ("begin", "end")}
    if (joined["waited_ns"] < 0).all():
        columns["waited_ns"] = None
    return SchedulerSamples(rank=rank, **columns)
