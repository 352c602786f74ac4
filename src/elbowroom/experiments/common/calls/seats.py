"""Where ranks are that communicate from a core on which they compute, and their progress threads."""

from __future__ import annotations

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.points.point import Note
from elbowroom.quantities import format_cores


class RankCores(msgspec.Struct, frozen=True, kw_only=True):
    """The cores of each rank, the first one communicating; `per_host` ranks on each host, in order of rank.
    `shared`: ranks of a host take turns on a core.
    """

    of_rank: tuple[tuple[int, ...], ...]
    per_host: int
    shared: bool = False

    @property
    def ranks(self) -> int:
        """How many."""
        return len(self.of_rank)

    @property
    def used(self) -> frozenset[int]:
        """All cores of a host that ranks use."""
        return frozenset(core for own in self.of_rank[: self.per_host] for core in own)


def rank_cores(machine: Machine, ranks: int, n: int, named: tuple[int, ...], scheduling: bool) -> RankCores:
    """`n` cores (at least one) for each rank, in logical order, or of those that are `named`.

    UsageError for more ranks than cores, unless `scheduling`: then ranks take turns.
    """
    cores = named or tuple(core.number for core in placement.usable(machine))
    per_host = -(-ranks // machine.hosts)
    each = max(1, n)
    shared = per_host * each > len(cores)
    if not cores or (shared and not scheduling):
        raise UsageError(
            f"{per_host} ranks on a host need {per_host * each} cores, and there are {len(cores)}: "
            "ranks without a core of their own take turns",
            field="ranks",
            value=ranks,
            hint="give fewer ranks, or --set scheduling=true to measure the scheduler on purpose",
        )
    local = [tuple(cores[(rank * each + i) % len(cores)] for i in range(each)) for rank in range(per_host)]
    return RankCores(
        of_rank=tuple(local[rank % per_host] for rank in range(ranks)), per_host=per_host, shared=shared
    )


def progress_cores(machine: Machine, cores: RankCores, named: tuple[int, ...]) -> tuple[int, ...] | Note:
    """A core for the progress thread of each rank; ranks of a host share them if there are fewer. A note
    where none is left. UsageError for a named core that computes or does not exist.
    """
    usable = [core.number for core in placement.usable(machine)]
    for core in named:
        if core not in usable:
            hint = f"cores here: {format_cores(sorted(usable))}"
            raise UsageError(
                f"core {core} does not exist here", field="progress_cores", value=core, hint=hint
            )
        if core in cores.used:
            raise UsageError(
                f"progress core {core} is among the computing cores",
                field="progress_cores",
                value=core,
                hint="name a core that nothing computes on, or leave computing cores free: --comp-cores",
            )
    free = named or tuple(core for core in usable if core not in cores.used)
    if not free:
        ranks = (
            f"{cores.per_host} ranks compute on {'both' if len(usable) == 2 else f'all {len(usable)}'} cores"
        )
        return Note(what="progress thread", reason=f"{ranks}, so no core is left for it")
    return tuple(free[rank % cores.per_host % len(free)] for rank in range(cores.ranks))
