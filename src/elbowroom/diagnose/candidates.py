"""Launch lines and settings that may gain, by the cause that they treat.

Only the launch line and the environment change, so every candidate is the same program with the same input.
A candidate that changes how many threads compute changes results, and is made only on request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from elbowroom.launch.launch_options import LaunchLine
from elbowroom.machine.topology import Machine

BOUND_TO_CORES = 2
"""Open MPI binds the ranks of jobs up to this size to cores, those of larger ones to sockets or NUMA nodes,
and none where there are more ranks than slots.
"""
EAGER_BYTES = 64 << 10
"""The eager limit that is tried where the sizes of messages are not known."""
MOST_EAGER = 4 << 20
"""Larger messages are not sent eagerly: each needs a buffer of that size."""
HEADER_BYTES = 256
"""A message is sent with a header, which counts."""
BUFFERS = 64
"""Eager buffers that a process has room for."""

ALWAYS = "shared-core", "placement"
"""Treated after the causes that are known: a wait for a core may look like a wait for a rank."""
NOTHING_TO_TRY: Mapping[str, str] = {
    "late-rank": "no launch line makes a slow rank faster",
    "computation": "communication is not the problem",
}
"""Causes for which no launch line is tried, and why."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A launch line to try: its words, the variables that are typed before it, the cause that it treats, and
    what it does. `changes_results`: another number of threads computes.
    """

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    cause: str
    what: str
    changes_results: bool = False
    typed: str

    @classmethod
    def of(cls, line: LaunchLine, cause: str, what: str, *, changes_results: bool = False) -> Candidate:
        """A line as a candidate."""
        return cls(
            command=line.command,
            environment=line.environment,
            cause=cause,
            what=what,
            changes_results=changes_results,
            typed=line.typed(),
        )


class LineSituation(NamedTuple):
    """What the candidates for a line depend on. `settings`: the library's control variables and their values,
    None where they are not known; `sizes`: bytes of the messages that a cause is about; `threads`: of each
    rank, None if unknown.
    """

    line: LaunchLine
    machine: Machine
    env: Mapping[str, str]
    settings: Mapping[str, str] | None
    threads: int | None
    ranks: int | None
    message_bytes: int | None = None

    @property
    def cores(self) -> int:
        """Cores that ranks may use on this host."""
        return len(self.machine.allowed)

    @property
    def crowded(self) -> bool:
        """Whether ranks and their threads are more than the cores."""
        return self.ranks is not None and self.ranks * (self.threads or 1) > self.cores

    def knows(self, name: str) -> bool:
        """Whether the library has a control variable of this name."""
        return self.settings is not None and name in self.settings


def situation_of(
    line: LaunchLine,
    machine: Machine,
    *,
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    ranks: int | None = None,
    message_bytes: int | None = None,
) -> LineSituation:
    """What is known of a line on this host; `ranks`: on this host, where a profile says it."""
    env = os.environ if env is None else env
    threads = line.variable("OMP_NUM_THREADS", env)
    number = (threads or "").split(",")[0]
    return LineSituation(
        line=line,
        machine=machine,
        env=env,
        settings=settings,
        threads=int(number) if number.isdecimal() and int(number) > 0 else None,
        ranks=ranks_of(line, env) if ranks is None else ranks,
        message_bytes=message_bytes,
    )


def ranks_of(line: LaunchLine, env: Mapping[str, str]) -> int | None:
    """The number of ranks that a line starts; None if neither it nor the allocation says."""
    given = line.value("ntasks", "n")
    if given is None and line.family in ("srun",):
        given = env.get("SLURM_NTASKS")
    return int(given) if given is not None and given.isdecimal() else None


def candidates(
    situation: LineSituation, causes: Sequence[str] = (), *, may_change_results: bool = False
) -> tuple[Candidate, ...]:
    """The lines to try for these causes, most important first; without causes, for all that a line can treat.

    Lines that do the same are one candidate; the unchanged line is none.
    """
    order = [cause for cause in causes if cause in _TREATMENTS] if causes else list(_TREATMENTS)
    order += [cause for cause in ALWAYS if cause not in order]
    by_line: dict[str, Candidate] = {}
    for cause in order:
        for treatment in _TREATMENTS[cause]:
            for line, what, changes in treatment(situation):
                one = Candidate.of(line, cause, what, changes_results=changes)
                if one.typed != situation.line.typed() and (may_change_results or not changes):
                    by_line.setdefault(one.typed, one)
    return tuple(by_line.values())


Treated = Iterator[tuple[LaunchLine, str, bool]]
Treatment = Callable[[LineSituation], Treated]

_PINNING = ("taskset", "numactl")
_OPENMPI_BINDING = (
    "bind-to", "bind-to-core", "bind-to-socket", "bind-to-board", "bind-to-none", "cpu-set", "cpu-list",
    "slot-list", "cpus-per-proc",
)  # fmt: skip
_OPENMPI_MAPPING = ("map-by", "rank-by", "bycore", "bysocket", "byslot", "bynode")


def unbound(line: LaunchLine) -> LaunchLine:
    """The line without the options and programs that place its ranks; how many go to a host stays."""
    line = line.without_wrappers(_PINNING)
    if line.family.startswith("openmpi"):
        line = line.without(_OPENMPI_BINDING).without(("mca",), "hwloc_base_binding_policy")
        mapping = (line.value("map-by") or "").lower()
        if mapping.startswith("ppr"):
            parts = [part for part in mapping.split(":") if not part.startswith("pe")]
            return line.having("--map-by", ":".join(parts))
        return (
            line.without(_OPENMPI_MAPPING)
            if "oversubscribe" not in mapping
            else line.without(set(_OPENMPI_MAPPING) - {"map-by"}).having("--map-by", ":OVERSUBSCRIBE")
        )
    if line.family == "mpich":
        return line.without(("bind-to", "map-by", "membind"))
    if line.family == "srun":
        return line.without(("cpu-bind", "distribution", "hint", "mem-bind"))
    return line.without(("setopt",), _affinity(line))


def _affinity(line: LaunchLine) -> str | None:
    """The value of flux's option that binds, as typed."""
    settings = [option.values[0] for option in line.options if option.name == "setopt"]
    return next((value for value in settings if value.startswith("cpu-affinity")), "cpu-affinity")


def bound(line: LaunchLine, threads: int, spread: str | None = None) -> LaunchLine:
    """The line with each rank on cores of its own, one for each of its threads. `spread`: what ranks are
    dealt out over, `numa` or `socket`; else they are next to each other.
    """
    line = unbound(line)
    if line.family.startswith("openmpi"):
        where = line.value("map-by")
        wide = f":PE={threads}" if threads > 1 else ""
        if where is None or not where.startswith("ppr"):
            named = {"socket": "package"}.get(spread or "", spread) if line.family == "openmpi5" else spread
            over = ":OVERSUBSCRIBE" if where is not None else ""
            where = (named or ("slot" if threads > 1 else "core")) + wide + over
        else:
            where += wide
        return line.having("--bind-to", "core").having("--map-by", where)
    if line.family == "mpich":
        line = line.having("-bind-to", f"core:{threads}" if threads > 1 else "core")
        return line if spread is None else line.having("-map-by", spread)
    if line.family == "srun":
        line = line.having(f"--cpus-per-task={threads}") if threads > 1 else line
        line = line.having("--cpu-bind=cores")
        return line.having(f"--distribution=block:{'block' if spread is None else 'cyclic'}")
    line = line.having(f"--cores-per-task={threads}") if threads > 1 else line
    return line.having("-o", "cpu-affinity=per-task")


def free(line: LaunchLine) -> LaunchLine:
    """The line whose ranks the kernel may move over all cores."""
    line = unbound(line)
    if line.family.startswith("openmpi"):
        return line.having("--bind-to", "none")
    if line.family == "mpich":
        return line.having("-bind-to", "none")
    return line.having("--cpu-bind=none") if line.family == "srun" else line.having("-o", "cpu-affinity=off")


def _own_cores(situation: LineSituation) -> Treated:
    threads = situation.threads or 1
    if situation.crowded or situation.ranks is None:
        return
    plain = threads == 1 and situation.line == unbound(situation.line)
    if plain and situation.line.family.startswith("openmpi") and situation.ranks <= BOUND_TO_CORES:
        return
    cores = "a core of its own" if threads == 1 else f"{threads} cores of its own"
    line = bound(situation.line, threads)
    yield (_threads_placed(line, "close") if threads > 1 else line), f"binds each rank to {cores}", False


def _spread(situation: LineSituation) -> Treated:
    machine, threads = situation.machine, situation.threads or 1
    nodes = len(machine.ordinary_nodes)
    if situation.crowded or situation.ranks is None or max(nodes, machine.packages) < 2:
        return
    over = "numa" if nodes >= machine.packages else "socket"
    line = bound(situation.line, threads, over)
    what = f"deals the ranks out over {'NUMA nodes' if over == 'numa' else 'sockets'}, each on its own cores"
    if line.family != "flux":
        yield (_threads_placed(line, "close") if threads > 1 else line), what, False


def _free(situation: LineSituation) -> Treated:
    yield free(situation.line), "lets the kernel place the ranks on all cores", False


def _threads_placed(line: LaunchLine, how: str) -> LaunchLine:
    return line.having_variable("OMP_PLACES", "cores").having_variable("OMP_PROC_BIND", how)


def _threads(situation: LineSituation) -> Treated:
    """Threads of a rank on cores of their own, where there are several."""
    if situation.threads == 1 or (situation.threads is None and not _omp_is_set(situation)):
        return
    for how in ("close", "spread"):
        yield _threads_placed(situation.line, how), f"binds the threads of a rank to cores, {how}", False


def _omp_is_set(situation: LineSituation) -> bool:
    names = ("OMP_PROC_BIND", "OMP_PLACES")
    return any(situation.line.variable(name, situation.env) is not None for name in names)


def _fewer_threads(situation: LineSituation) -> Treated:
    """As many threads as there are cores; results may change."""
    if not situation.ranks or not situation.crowded or (situation.threads or 1) < 2:
        return
    threads = max(1, situation.cores // situation.ranks)
    line = situation.line.having_variable("OMP_NUM_THREADS", str(threads))
    yield line, f"starts {threads} thread{'s' if threads > 1 else ''} a rank", True


def _yields(situation: LineSituation) -> Treated:
    """Ranks that wait give up their core."""
    line, what = situation.line, "gives up the core while waiting for messages"
    if line.family.startswith("openmpi") and situation.knows("mpi_yield_when_idle"):
        if line.mca("mpi_yield_when_idle", situation.env) not in ("1", "true"):
            yield line.having_mca("mpi_yield_when_idle", "1"), what, False
        return
    name = "MPIR_CVAR_POLLS_BEFORE_YIELD"
    if situation.knows(name) and line.variable(name, situation.env) != "1":
        yield line.having_variable(name, "1"), what, False


def _crowded_yields(situation: LineSituation) -> Treated:
    if situation.crowded:
        yield from _yields(situation)


def _free_and_yields(situation: LineSituation) -> Treated:
    if situation.crowded:
        unplaced = situation._replace(line=free(situation.line))
        for line, what, changes in _yields(unplaced):
            yield line, f"lets the kernel place the ranks, and {what}", changes


_PROGRESS = ("MPICH_ASYNC_PROGRESS", "MPIR_CVAR_ASYNC_PROGRESS", "MPIR_CVAR_CH4_ASYNC_PROGRESS")


def _progress_thread(situation: LineSituation) -> Treated:
    """The library's own thread moves messages between calls."""
    line, what = situation.line, "starts the library's progress thread"
    if situation.knows("MPIR_CVAR_ASYNC_PROGRESS"):
        set_by = _progress_variable(situation)
        if set_by is None or line.variable(set_by, situation.env) in ("0", "no", "false"):
            yield line.having_variable(set_by or "MPICH_ASYNC_PROGRESS", "1"), what, False
    elif situation.knows("btl_tcp_progress_thread") and "tcp" in (line.mca("btl", situation.env) or ""):
        yield line.having_mca("btl_tcp_progress_thread", "1"), what, False


def _progress_variable(situation: LineSituation) -> str | None:
    known = (name for name in _PROGRESS if situation.line.variable(name, situation.env) is not None)
    return next(known, None)


def _no_progress_thread(situation: LineSituation) -> Treated:
    """No progress thread, where one polls on a core that computes."""
    name = _progress_variable(situation)
    if name is not None and situation.line.variable(name, situation.env) not in ("0", "no", "false"):
        line = situation.line.having_variable(name, "0")
        yield line, "stops the library's progress thread", False
    for parameter in ("btl_tcp_progress_thread",):
        if situation.line.mca(parameter, situation.env) not in (None, "0"):
            line = situation.line.having_mca(parameter, "0")
            yield line, "stops the library's progress thread", False


def _eager(situation: LineSituation) -> Treated:
    """Messages of the size at hand are sent at once, without waiting for the receiver."""
    wanted = situation.message_bytes or EAGER_BYTES
    if wanted > MOST_EAGER:
        return
    wanted = 1 << max(12, (wanted + HEADER_BYTES - 1).bit_length())
    line, what = situation.line, f"sends messages up to {wanted} B without waiting for the receiver"
    if line.family.startswith("openmpi"):
        shared = "btl_vader" if line.family == "openmpi4" else "btl_sm"
        tcp = "tcp" in (line.mca("btl", situation.env) or "")
        for transport in (shared, "btl_tcp") if tcp else (shared,):
            if situation.knows(f"{transport}_eager_limit"):
                yield from _eager_by(situation, transport, wanted, what)
    elif situation.knows(_CELLS):
        cell = _number(situation, "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE") or EAGER_BYTES
        cells = 2 * (_number(situation, _CELLS) or BUFFERS)
        while cells * cell < 4 * wanted:
            cells *= 2
        yield line.having_variable(_CELLS, str(cells)), f"buffers up to {cells} parts of messages", False
    elif situation.knows(_CH3_EAGER) and _number(situation, _CH3_EAGER) < wanted:
        yield line.having_variable(_CH3_EAGER, str(wanted)), what, False
    if _uses_ucx(situation):
        yield line.having_variable("UCX_RNDV_THRESH", str(wanted)), what, False


_CELLS, _CH3_EAGER = "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE"


def _eager_by(situation: LineSituation, transport: str, wanted: int, what: str) -> Treated:
    """Open MPI's eager limit of a transport, and what has to grow with it."""
    line = situation.line
    sizes = {"eager_limit": wanted, "max_send_size": 2 * wanted, "segment_size": BUFFERS * wanted}
    if _number(situation, f"{transport}_eager_limit") >= wanted:
        return
    for setting, least in sizes.items():
        name = f"{transport}_{setting}"
        if situation.knows(name) and _number(situation, name) < least:
            line = line.having_mca(name, str(least))
    yield line, what, False


def _number(situation: LineSituation, name: str) -> int:
    """The value that a numeric setting has: by the line, the environment, or the library's default."""
    given = situation.line.mca(name, situation.env) or situation.line.variable(name, situation.env)
    text = given or (situation.settings or {}).get(name) or ""
    return int(text) if text.lstrip("-").isdecimal() else 0


def _uses_ucx(situation: LineSituation) -> bool:
    """Whether messages may go through UCX: it is asked for, or there is a fast network."""
    requested = situation.line.mca("pml", situation.env) == "ucx" or any(
        name.startswith("UCX_") for name in situation.env
    )
    fast = any(nic.kind in ("infiniband", "ib") for nic in situation.machine.nics)
    return situation.knows("pml_ucx_tls") and (requested or fast)


_CHOICES = ("btl", "pml", "mtl")
_TRANSPORTS = (
    "UCX_TLS", "UCX_NET_DEVICES", "FI_PROVIDER", "MPIR_CVAR_NOLOCAL", "MPICH_NOLOCAL", "MPIR_CVAR_CH4_SHM",
    "MPIR_CVAR_OFI_USE_PROVIDER", "MPIR_CVAR_CH4_NETMOD", "MPICH_CH4_NETMOD",
)  # fmt: skip


def _library_transport(situation: LineSituation) -> Treated:
    """The library chooses its transports, where the line or the environment does."""
    line, dropped = situation.line, []
    for name in _CHOICES if line.family.startswith("openmpi") else ():
        if line.mca(name, situation.env) is not None:
            line = line.without(("mca", "gmca", "omca"), name)
            line = line.without_variable(f"OMPI_MCA_{name}", situation.env)
            dropped.append(name)
    for name in _TRANSPORTS:
        if line.variable(name, situation.env) is not None:
            line = line.without_variable(name, situation.env)
            dropped.append(name)
    if dropped:
        yield line, f"lets the library choose its transport, without {', '.join(dropped)}", False


def _single_copy(situation: LineSituation) -> Treated:
    """Messages inside the host are copied once, by the kernel, not twice through shared memory."""
    line = situation.line
    if line.family == "openmpi4" and situation.knows("btl_vader_single_copy_mechanism"):
        name = "btl_vader_single_copy_mechanism"
        given = line.mca(name, situation.env)
        if given in ("none", "emulated"):
            yield line.having_mca(name, "cma"), "copies large messages once (CMA)", False
        elif given is None:
            yield line.having_mca(name, "none"), "copies large messages through shared memory", False
    elif line.family == "openmpi5":
        if line.mca("smsc", situation.env) is None:
            changed = line.having_mca("smsc", "^cma,xpmem,knem")
            yield changed, "copies large messages through shared memory", False
        else:
            dropped = line.without(("mca", "gmca", "omca"), "smsc")
            dropped = dropped.without_variable("OMPI_MCA_smsc", situation.env)
            yield dropped, "copies large messages once", False


def _shared_memory(situation: LineSituation) -> Treated:
    """Ranks of one host talk through shared memory."""
    line = situation.line
    if line.family.startswith("openmpi") and not line.has("H", "hostfile", "default-hostfile"):
        shared = "vader" if line.family == "openmpi4" else "sm"
        named = line.mca("btl", situation.env)
        if named is not None and shared not in named:
            changed = line.having_mca("pml", "ob1").having_mca("btl", f"self,{shared}")
            yield changed, "sends messages inside the host through shared memory", False


_TREATMENTS: dict[str, tuple[Treatment, ...]] = {
    "shared-core": (
        _own_cores,
        _free_and_yields,
        _crowded_yields,
        _free,
        _no_progress_thread,
        _fewer_threads,
    ),
    "placement": (_own_cores, _spread, _threads, _free),
    "polling-thread": (_no_progress_thread, _crowded_yields, _own_cores),
    "no-progress": (_progress_thread, _eager, _single_copy),
    "transport": (_library_transport, _shared_memory, _single_copy),
    "protocol": (_eager, _single_copy),
    "memory-contention": (_spread, _own_cores),
}  # fmt: skip
"""What is tried for each cause, the most promising first."""
