"""How busy a host was meanwhile, which of its CPUs belong together, and what the environment sets for MPI."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

_SETTINGS = (
    "OMP_", "KMP_", "GOMP_", "MPICH_", "MPIR_", "I_MPI_", "OMPI_MCA_", "PRTE_MCA_", "UCX_", "FI_",
    "SLURM_CPU_BIND",
)  # fmt: skip
_MOST_SETTINGS = 64


class HostUse(msgspec.Struct, frozen=True, kw_only=True):
    """A host while a program ran, `wall_s`. `busy_s`, `stolen_s`: CPU seconds of all processes (None: not
    known), and that the hypervisor took; `own_s`: of the program, where its processes are descendants;
    `siblings`: CPUs that share a core, by core; `nodes`: CPUs by NUMA node; `settings`: variables of the
    environment for MPI and OpenMP.
    """

    wall_s: float = 0.0
    busy_s: float | None = None
    stolen_s: float = 0.0
    own_s: float = 0.0
    siblings: tuple[tuple[int, ...], ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()
    settings: dict[str, str] = {}


class HostTimes(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of a host since its start: of all processes, and that the hypervisor took."""

    busy_s: float
    stolen_s: float


def cpu_times(root: Path = Path("/")) -> HostTimes | None:
    """The times of now; None where the kernel does not give them."""
    try:
        words = (root / "proc/stat").read_text(encoding="ascii").split(None, 10)
        user, nice, system, _, _, irq, soft, stolen = (int(word) for word in words[1:9])
    except (OSError, ValueError):
        return None
    tick = os.sysconf("SC_CLK_TCK")
    return HostTimes(busy_s=(user + nice + system + irq + soft) / tick, stolen_s=stolen / tick)


def shared_cores(root: Path = Path("/")) -> tuple[tuple[int, ...], ...]:
    """CPUs that are threads of one core (SMT), by core."""
    return _sets(root / "sys/devices/system/cpu", "cpu[0-9]*", "topology/thread_siblings_list")


def node_cpus(root: Path = Path("/")) -> tuple[tuple[int, ...], ...]:
    """CPUs of each NUMA node that has some."""
    return _sets(root / "sys/devices/system/node", "node[0-9]*", "cpulist")


def _sets(folder: Path, pattern: str, file: str) -> tuple[tuple[int, ...], ...]:
    sets = set()
    for each in folder.glob(pattern):
        try:
            sets.add(_listed((each / file).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return tuple(sorted(cpus for cpus in sets if cpus))


def _listed(text: str) -> tuple[int, ...]:
    """The numbers of `0-3,8`."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def host_use(
    before: HostTimes | None, wall_s: float, own_s: float, environment: Mapping[str, str] = os.environ
) -> HostUse:
    """This host since `before`, `wall_s` ago, in which the program took `own_s` CPU seconds."""
    now = cpu_times()
    spent = (
        None
        if before is None or now is None
        else (now.busy_s - before.busy_s, now.stolen_s - before.stolen_s)
    )
    settings = {name: value for name, value in sorted(environment.items()) if name.startswith(_SETTINGS)}
    return HostUse(
        wall_s=wall_s,
        busy_s=None if spent is None else spent[0],
        stolen_s=0.0 if spent is None else spent[1],
        own_s=own_s,
        siblings=shared_cores(),
        nodes=node_cpus(),
        settings=dict(list(settings.items())[:_MOST_SETTINGS]),
    )
