"""What the scheduler did with the threads that call MPI: CPU time, waits in the run queue, cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile.rank_file import OPEN, RAN, WAITED, RankFile

Ints = npt.NDArray[np.int64]


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


def samples_of_ranks(ranks: Sequence[RankFile], start: Mapping[int, int]) -> SchedulerSamples | None:
    """The samples of all ranks, whose times begin at `start` (ns); None where no file has any."""
    parts = [_samples(rank, start[rank.rank]) for rank in ranks if rank.sites is not None]
    if not any(len(part["rank"]) for part in parts):
        return None
    columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if (columns["waited_ns"] < 0).all():
        columns["waited_ns"] = None
    return SchedulerSamples(**columns)


def _samples(rank: RankFile, start: int) -> dict[str, Ints]:
    """The records RAN of a rank, each with the wait in the record WAITED of its thread and end."""
    records = rank.kept[rank.is_sample]
    ran, waited = (records[records["kind"] == kind] for kind in (RAN, WAITED))
    ran = ran[np.lexsort((ran["end"], ran["call"]))]
    wait = np.where((ran["flags"] & OPEN) > 0, -1, 0)
    for thread in np.unique(waited["call"]):
        first, last = np.searchsorted(ran["call"], (thread, thread + 1))
        ends = ran["end"][first:last]
        waits = waited[waited["call"] == thread]
        waits = waits[np.isin(waits["end"], ends)]
        wait[first + np.searchsorted(ends, waits["end"])] = waits["bytes"]
    thread = ran["call"].astype(np.int64)
    order = np.argsort(ran["begin"], kind="stable")
    columns = {
        "rank": np.full(len(ran), rank.rank),
        "thread": np.where(thread < len(rank.threads), thread, -1),
        "begin": ran["begin"].astype(np.int64) - start,
        "end": ran["end"].astype(np.int64) - start,
        "cpu_ns": ran["bytes"].astype(np.int64),
        "waited_ns": wait,
        "cpu": ran["peer"].astype(np.int64),
    }
    return {name: column[order] for name, column in columns.items()}
