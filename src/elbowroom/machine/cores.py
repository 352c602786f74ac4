"""Which cores a program gets, and which a load beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from elbowroom.errors import UsageError
from elbowroom.quantities import format_cores, parse_cores

CPUS = Path("/sys/devices/system/cpu")


def load_split(
    allowed: Collection[int], load_cores: Sequence[int] | None = None, cpus: Path = CPUS
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cores of a program and those of a load, by their first processing units: of the cores that share a
    last-level cache, the load has the second half. `load_cores`: those that are given instead.

    UsageError for cores that are not allowed, and if none is left for the program.
    """
    cores = sorted({_of(cpus, unit, "topology/thread_siblings_list", allowed)[0] for unit in allowed})
    if load_cores is not None:
        wrong = sorted(set(load_cores) - set(allowed))
        if wrong:
            raise UsageError(
                "are not cores of this process",
                field="load_cores",
                value=format_cores(wrong),
                hint=f"choose of {format_cores(cores)}",
            )
        taken = {_of(cpus, unit, "topology/thread_siblings_list", allowed)[0] for unit in load_cores}
        left = tuple(core for core in cores if core not in taken)
        if not left:
            raise UsageError(
                "leaves no core for the program",
                field="load_cores",
                value=format_cores(sorted(load_cores)),
                hint=f"choose some of {format_cores(cores)}",
            )
        return left, tuple(sorted(taken))
    groups: dict[tuple[int, ...], list[int]] = {}
    for core in cores:
        groups.setdefault(_of(cpus, core, "cache/index3/shared_cpu_list", allowed), []).append(core)
    if all(len(group) == 1 for group in groups.values()):
        groups = {(): cores}
    program, load = [], []
    for group in groups.values():
        half = (len(group) + 1) // 2
        program += group[:half]
        load += group[half:]
    return tuple(sorted(program)), tuple(sorted(load))


def _of(cpus: Path, unit: int, file: str, allowed: Collection[int]) -> tuple[int, ...]:
    """The allowed units of a list in a file about a unit; the unit itself where there is none."""
    try:
        listed = parse_cores((cpus / f"cpu{unit}" / file).read_text().strip())
    except (OSError, UsageError):
        return (unit,)
    return tuple(sorted(set(listed) & set(allowed))) or (unit,)
