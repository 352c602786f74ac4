"""Threads and ranks that share cores: they slow each other down, which looks like slow computation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.profile.rank_file import RankFile
from elbowroom.profile.rank_tables import ThreadPlace
from elbowroom.quantities import plural

BUSY = 0.1
"""A thread computes if it has this share of the CPU time of its process' busiest thread; helpers of MPI
libraries have less.
"""
MOST = 4
"""Sentences on shared cores; of more, the last one has the sum."""


class _AllowedCores(NamedTuple):
    """Cores of a host that some threads may run on: how many, and the first and the last of them."""

    host: str
    cpus: int
    first: int
    last: int
    mask: int

    def named(self, hosts: int) -> str:
        where = f" of {self.host}" if hosts > 1 else ""
        if self.cpus == 1:
            return f"core {self.first}{where}"
        together = self.last - self.first + 1 == self.cpus
        range_ = f"{self.first}-{self.last}" if together else f"between {self.first} and {self.last}"
        return f"{self.cpus} cores ({range_}){where}"


def sharing(ranks: Sequence[RankFile]) -> list[str]:
    """One sentence for each set of cores that has fewer cores than computing threads; of threads with the
    same cores.
    """
    threads: dict[_AllowedCores, list[int]] = defaultdict(list)
    for rank in ranks:
        for place in computing(rank.threads):
            threads[_AllowedCores(rank.host, place.cpus, place.first, place.last, place.mask)].append(
                rank.rank
            )
    crowded = sorted(
        ((cores, those) for cores, those in threads.items() if len(those) > cores.cpus),
        key=lambda one: (-len(one[1]) / one[0].cpus, one[0]),
    )
    hosts = len({rank.host for rank in ranks})
    sentences = [
        f"{_counted(those)} share {cores.named(hosts)}"
        for cores, those in crowded[: MOST if len(crowded) > MOST else None]
    ]
    if len(crowded) > MOST:
        rest = crowded[MOST:]
        everyone = [rank for _, those in rest for rank in those]
        sentences.append(f"{_counted(everyone)} share {sum(cores.cpus for cores, _ in rest)} more cores")
    return sentences


def computing(threads: Sequence[ThreadPlace]) -> list[ThreadPlace]:
    """The threads of a process that use CPU time."""
    most = max((place.cpu_ns for place in threads), default=0)
    return [place for place in threads if place.cpus and place.cpu_ns >= max(BUSY * most, 1)]


def _counted(ranks: Sequence[int]) -> str:
    processes = len(set(ranks))
    return f"{len(ranks)} threads of {plural(processes, 'rank')}"
