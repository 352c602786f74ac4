"""Who competes for the cores of a program: its own threads, and what else ran on the host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.machine.host_use import HostUse
from elbowroom.profile.cores import computing
from elbowroom.profile.profile import Profile
from elbowroom.profile.rank_file import RankFile
from elbowroom.profile.rank_tables import ThreadPlace
from elbowroom.quantities import plural

OPENMP = ("OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "GOMP_CPU_AFFINITY")
"""Settings of programs whose other threads compute."""


class Crowd(NamedTuple):
    """Computing threads with fewer cores than they are. `helpers`: threads of them that never call MPI, by
    rank; `helper_share`: their part of the CPU time that a rank's first thread competes with; `text`: as in
    `4 threads of 4 ranks on 2 cores`.
    """

    ranks: tuple[int, ...]
    threads: int
    cores: float
    helpers: tuple[int, ...]
    helper_share: float
    text: str


def crowd_of(profile: Profile) -> Crowd | None:
    """The crowded cores of a job: by the affinity of its threads, or by the limits of control groups."""
    hosts: dict[str, list[RankFile]] = defaultdict(list)
    for rank in profile.ranks:
        hosts[rank.host].append(rank)
    crowded: list[_ThreadUse] = []
    cores, limited = 0.0, False
    for ranks in hosts.values():
        threads, own, by_group = _of_host(ranks)
        crowded += threads
        cores += own
        limited = limited or by_group
    return _crowd(crowded, cores, limited) if crowded else None


class _ThreadUse(NamedTuple):
    rank: int
    place: ThreadPlace
    helps: bool


def _of_host(ranks: Sequence[RankFile]) -> tuple[list[_ThreadUse], float, bool]:
    """The crowded threads of a host, their cores, and whether a control group's limit is what is short."""
    threads = [
        _ThreadUse(rank.rank, place, place.thread != rank.pid)
        for rank in ranks
        for place in computing(rank.threads)
    ]
    limits = [rank.limits.cpus for rank in ranks if rank.limits is not None and rank.limits.cpus is not None]
    if limits and len(threads) > min(limits):
        return threads, min(limits), True
    crowded: set[int] = set()
    cores: set[int] = set()
    for first, last, cpus in {(one.place.first, one.place.last, one.place.cpus) for one in threads}:
        # Of cores that are not together only threads with the same ones are known to share them.
        together = last - first + 1 == cpus
        inside = [
            at
            for at, thread in enumerate(threads)
            if (first <= thread.place.first and thread.place.last <= last and together)
            or (thread.place.first, thread.place.last, thread.place.cpus) == (first, last, cpus)
        ]
        if len(inside) > cpus:
            crowded |= {*inside}
            cores |= {*range(first, last + 1)} if together else {*range(first, first + cpus)}
    return [threads[at] for at in sorted(crowded)], len(cores), False


def _crowd(threads: Sequence[_ThreadUse], cores: float, limited: bool) -> Crowd:
    ranks = tuple(sorted({thread.rank for thread in threads}))
    helpers = tuple(sorted({thread.rank for thread in threads if thread.helps}))
    helping = competing = 0
    for own in threads:
        if own.helps:
            continue
        others = [other for other in threads if other is not own and _overlap(own.place, other.place)]
        competing += sum(other.place.cpu_ns for other in others)
        helping += sum(other.place.cpu_ns for other in others if other.helps)
    group = " that the control group allows" if limited else ""
    return Crowd(
        ranks=ranks,
        threads=len(threads),
        cores=cores,
        helpers=helpers,
        helper_share=helping / max(competing, 1),
        text=f"{plural(len(threads), 'thread')} of {plural(len(ranks), 'rank')} on {cores:g} "
        f"{'core' if cores == 1 else 'cores'}{group}",
    )


def _overlap(one: ThreadPlace, other: ThreadPlace) -> bool:
    return one.first <= other.last and other.first <= one.last


def use_of(profile: Profile) -> HostUse:
    """The host's use while the program ran; empty where the manifest does not have it."""
    manifest = profile.manifest
    return HostUse() if manifest is None or manifest.use is None else manifest.use


def has_openmp(profile: Profile) -> bool:
    """Whether settings say that other threads of a rank compute."""
    return any(name in use_of(profile).settings for name in OPENMP)


def others_cores(profile: Profile) -> float | None:
    """Cores' worth of CPU time that other processes of the host took, the hypervisor included; None where it
    is not known.
    """
    use = use_of(profile)
    if use.busy_s is None or use.wall_s <= 0:
        return None
    threads = sum(place.cpu_ns for rank in profile.ranks for place in rank.threads) / 1e9
    return max(0.0, use.busy_s - max(use.own_s, threads) + use.stolen_s) / use.wall_s


def sampled_cores(profile: Profile, rank: int) -> npt.NDArray[np.int64]:
    """The core of a rank's first thread at each of its samples."""
    samples = profile.scheduled
    if samples is None:
        return np.zeros(0, dtype=np.int64)
    own = (samples.rank == rank) & (samples.thread == 0)
    return np.asarray(samples.cpu[own])


def siblings_used(profile: Profile) -> tuple[int, int] | None:
    """Two ranks whose first threads ran on SMT siblings of one core, while the job used fewer threads than
    the host has cores; None where there are none.
    """
    use = use_of(profile)
    pairs = [set(core) for core in use.siblings if len(core) > 1]
    last = {
        rank.rank: rank.threads[0].cpu
        for rank in profile.ranks
        if rank.threads and rank.threads[0].cpu is not None
    }
    busy = sum(len(computing(rank.threads)) for rank in profile.ranks)
    if not pairs or busy > len(use.siblings):
        return None
    for core in pairs:
        together = [rank for rank, cpu in last.items() if cpu in core]
        if len(together) > 1:
            return together[0], together[1]
    return None


def nodes_used(profile: Profile, rank: int) -> float:
    """The share of a rank's samples on other NUMA nodes than the one that it was on most."""
    nodes = use_of(profile).nodes
    cores = sampled_cores(profile, rank)
    if len(nodes) < 2 or not len(cores):
        return 0.0
    counts = np.array([np.isin(cores, node).sum() for node in nodes])
    return float(1 - counts.max() / max(counts.sum(), 1))
