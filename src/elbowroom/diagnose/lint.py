"""What is wrong with a launch line on a machine, without running it.

Each rule compares what the line asks for (ranks, threads, binding) with what there is (cores that may be
used, a cgroup's quota, an allocation), and says what it would type instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from elbowroom.diagnose.candidates import BOUND_TO_CORES, bound, ranks_of, unbound
from elbowroom.launch.launch_options import LaunchLine
from elbowroom.machine.topology import Machine
from elbowroom.quantities import parse_cores, plural

Binding = Literal["none", "core", "wide"]
"""How ranks are bound: not at all, each to one core, or each to several cores (sockets, NUMA nodes)."""

Rule = Literal[
    "too-many", "quota", "allocation", "threads-unset", "threads-share-core", "threads-wider-than-ranks",
    "unbound", "pinned", "cpus-per-task",
]  # fmt: skip


class LintFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and the line that is right in this (empty: none is known)."""

    rule: Rule
    sentence: str
    line: str = ""


class LintReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose --lint --json` prints. `ranks`: on one host; `threads`: of each, None where that is not
    set; `cores`: that may be used; `not_read`: why the line was not understood, empty if it was.
    """

    schema: str = "elbowroom/diagnose-lint"
    version: int = 1
    command: str
    findings: tuple[LintFinding, ...] = ()
    ranks: int | None = None
    threads: int | None = None
    cores: int | None = None
    not_read: str = ""


class LaunchPlace(NamedTuple):
    """Where a line starts its ranks: the machine, CPUs that its cgroup gives (None: no limit), and the
    environment with its allocation. `openmp`: whether the program has OpenMP threads.
    """

    machine: Machine
    env: Mapping[str, str]
    quota: float | None = None
    openmp: bool = False


class _LineRequest(NamedTuple):
    """What a line asks for on one host."""

    line: LaunchLine
    place: LaunchPlace
    ranks: int
    threads: int | None
    cores: int

    @property
    def wanted(self) -> int:
        """Threads that compute."""
        return self.ranks * (self.threads or 1)


def lint(line: LaunchLine, place: LaunchPlace) -> LintReport:
    """What is wrong with a line at a place."""
    ranks, threads = ranks_of(line, place.env), _threads(line, place.env)
    cores = len(place.machine.allowed)
    if place.quota is not None:
        cores = max(1, min(cores, math.floor(place.quota + 1e-6)))
    per_host = None if ranks is None else math.ceil(ranks / _hosts(line, place.env))
    findings: tuple[LintFinding, ...] = ()
    if per_host is not None:
        given = _LineRequest(line, place, per_host, threads, cores)
        findings = tuple(finding for rule in _RULES for finding in rule(given))
    return LintReport(command=line.typed(), findings=findings, ranks=per_host, threads=threads, cores=cores)


def _threads(line: LaunchLine, env: Mapping[str, str]) -> int | None:
    first = (line.variable("OMP_NUM_THREADS", env) or "").split(",")[0]
    return int(first) if first.isdecimal() and int(first) > 0 else None


def _hosts(line: LaunchLine, env: Mapping[str, str]) -> int:
    """Hosts that the ranks are spread over, as far as the line or the allocation says."""
    named = line.value("H", "hosts", "nodelist")
    if named is not None and "[" not in named:
        return len({host.partition(":")[0] for host in named.split(",")})
    nodes = line.value("nodes") or env.get("SLURM_NNODES") or env.get("SLURM_JOB_NUM_NODES")
    return int(nodes) if nodes is not None and nodes.isdecimal() and int(nodes) > 0 else 1


def binding(line: LaunchLine, ranks: int, cores: int) -> Binding:
    """How a line binds its ranks, by its options or by the default of its launcher."""
    if line.family.startswith("openmpi"):
        chosen = (line.value("bind-to") or "").partition(":")[0].lower()
        if line.has("bind-to-none") or chosen == "none":
            return "none"
        if "pe=" in (line.value("map-by") or "").lower() or line.has("cpus-per-proc"):
            return "wide"
        if line.has("bind-to-core") or chosen in ("core", "hwthread"):
            return "core"
        if chosen:
            return "wide"
        if ranks > cores:
            return "none"
        return "core" if ranks <= BOUND_TO_CORES else "wide"
    if line.family == "mpich":
        chosen = (line.value("bind-to") or "none").lower()
        return "none" if chosen == "none" else "core" if chosen in ("core", "hwthread", "rr") else "wide"
    if line.family == "srun":
        chosen = (line.value("cpu-bind") or "").lower().removeprefix("verbose,")
        return "none" if chosen in ("none", "no") else "wide"
    return "none" if any(option.values == ("cpu-affinity=off",) for option in line.options) else "wide"


def _too_many(given: _LineRequest) -> Iterator[LintFinding]:
    if given.wanted <= given.cores:
        return
    count = f"{plural(given.ranks, 'rank')} x {plural(given.threads or 1, 'thread')}"
    sentence = f"{count} share {plural(given.cores, 'core')}: they wait for each other"
    if given.ranks <= given.cores:
        threads = given.cores // given.ranks
        repaired = given.line.having_variable("OMP_NUM_THREADS", str(threads))
        yield LintFinding(rule="too-many", sentence=f"{sentence}.", line=repaired.typed())
    elif given.line.family.startswith("openmpi"):
        repaired = unbound(given.line).having("--bind-to", "none").having_mca("mpi_yield_when_idle", "1")
        if "oversubscribe" not in given.line.typed().lower():
            sentence += ", and Open MPI refuses more ranks than slots unless it may oversubscribe"
            mapping = repaired.value("map-by") or ""
            repaired = repaired.having("--map-by", f"{mapping}:OVERSUBSCRIBE")
        sentence += "; fewer ranks, or ranks that give up their core while they wait"
        yield LintFinding(rule="too-many", sentence=f"{sentence}.", line=repaired.typed())
    else:
        yield LintFinding(rule="too-many", sentence=f"{sentence}; start fewer.")


def _quota(given: _LineRequest) -> Iterator[LintFinding]:
    quota, allowed = given.place.quota, len(given.place.machine.allowed)
    if quota is not None and quota < min(given.wanted, allowed):
        yield LintFinding(
            rule="quota",
            sentence=f"The cgroup gives {quota:g} CPUs, and {given.wanted} threads are started: they are "
            "stopped for a part of each period (cpu.max).",
        )


_ALLOCATED = ("SLURM_CPUS_ON_NODE", "NCPUS", "PBS_NCPUS")


def _allocation(given: _LineRequest) -> Iterator[LintFinding]:
    env, machine = given.place.env, given.place.machine
    units = sum(len(core.pus) for core in machine.cores if core.number in machine.allowed)
    for name in _ALLOCATED:
        cpus = env.get(name, "")
        if cpus.isdecimal() and int(cpus) > units:
            yield LintFinding(
                rule="allocation",
                sentence=f"The allocation has {cpus} CPUs on a node ({name}), and "
                f"{plural(len(machine.allowed), 'core')} may be used here: start the line inside the "
                "allocation, or by srun.",
            )
    tasks = env.get("SLURM_NTASKS", "")
    if tasks.isdecimal() and (ranks_of(given.line, env) or 0) > int(tasks):
        yield LintFinding(
            rule="allocation",
            sentence=f"More ranks are started than the allocation has tasks ({tasks}, SLURM_NTASKS).",
        )


def _threads_unset(given: _LineRequest) -> Iterator[LintFinding]:
    if given.place.openmp and given.threads is None:
        threads = max(1, given.cores // given.ranks)
        line = given.line.having_variable("OMP_NUM_THREADS", str(threads))
        yield LintFinding(
            rule="threads-unset",
            sentence="OMP_NUM_THREADS is not set: each rank starts as many threads as it sees cores.",
            line=line.typed(),
        )


def _threads_share_core(given: _LineRequest) -> Iterator[LintFinding]:
    threads = given.threads or 1
    if threads < 2 or given.wanted > given.cores:
        return
    if binding(given.line, given.ranks, given.cores) == "core":
        who = "Each rank is bound to one core"
        if given.line == unbound(given.line):
            who = f"By default, {plural(given.ranks, 'rank')} are bound to a core each"
        yield LintFinding(
            rule="threads-share-core",
            sentence=f"{who}: its {threads} threads share it.",
            line=bound(given.line, threads).typed(),
        )


def _threads_wider(given: _LineRequest) -> Iterator[LintFinding]:
    places = (given.line.variable("OMP_PLACES", given.place.env) or "").lower()
    wide = places.startswith(("sockets", "numa_domains", "ll_caches"))
    if wide and binding(given.line, given.ranks, given.cores) == "core":
        line = bound(given.line, given.threads or 1).having_variable("OMP_PLACES", "cores")
        yield LintFinding(
            rule="threads-wider-than-ranks",
            sentence=f"Ranks are bound to cores, and threads to {places}: the threads stay on the core.",
            line=line.typed(),
        )


def _unbound(given: _LineRequest) -> Iterator[LintFinding]:
    if given.wanted > given.cores or given.cores < 2 or given.ranks * (given.threads or 1) < 2:
        return
    if binding(given.line, given.ranks, given.cores) == "none" and not _pinned_to(given.line):
        default = given.line.family == "mpich" and not given.line.has("bind-to")
        who = "MPICH binds no ranks by default" if default else "The ranks are not bound"
        yield LintFinding(
            rule="unbound",
            sentence=f"{who}: the kernel may move them from core to core, and away from their memory.",
            line=bound(given.line, given.threads or 1).typed(),
        )


_PIN_OPTIONS = ("-c", "--cpu-list", "-C", "--physcpubind")
_MASK = re.compile(r"(0x)?[0-9a-fA-F]+")


def _pinned_to(line: LaunchLine) -> int | None:
    """How many cores the line's own words leave to all its ranks; None if they leave all."""
    masks: list[int] = []
    listed = [line.value("cpu-set", "cpu-list", "slot-list")]
    for words in (line.before, line.program):
        for at, word in enumerate(words[:-1]):
            pinning = {"taskset", "numactl"} & {one.rsplit("/", 1)[-1] for one in words[:at]}
            if pinning and word in _PIN_OPTIONS:
                listed.append(words[at + 1])
            elif pinning and word.startswith(("--physcpubind=", "--cpu-list=")):
                listed.append(word.partition("=")[2])
            if word.rsplit("/", 1)[-1] == "taskset" and _MASK.fullmatch(words[at + 1]):
                masks.append(int(words[at + 1], 16).bit_count())
    counts = masks
    for text in listed:
        if text is not None and text[:1].isdecimal():
            counts.append(len(parse_cores(text, "cores")))
    return min(counts, default=None)


def _pinned(given: _LineRequest) -> Iterator[LintFinding]:
    count = _pinned_to(given.line)
    if count is not None and count < given.wanted and count < given.cores:
        threads = given.threads or 1
        crowded = given.wanted > given.cores
        yield LintFinding(
            rule="pinned",
            sentence=f"The line leaves {plural(count, 'core')} to {plural(given.wanted, 'thread')}.",
            line="" if crowded else bound(given.line, threads).typed(),
        )


def _cpus_per_task(given: _LineRequest) -> Iterator[LintFinding]:
    threads = given.threads or 1
    name = {"srun": "cpus-per-task", "flux": "cores-per-task"}.get(given.line.family)
    if name is None or threads < 2 or given.line.has(name) or given.wanted > given.cores:
        return
    since = " (since 22.05 srun does not take --cpus-per-task from sbatch)" if name == "cpus-per-task" else ""
    yield LintFinding(
        rule="cpus-per-task",
        sentence=f"Each rank gets one core for its {threads} threads{since}.",
        line=given.line.having(f"--{name}={threads}").typed(),
    )


_RULES: tuple[Callable[[_LineRequest], Iterator[LintFinding]], ...] = (
    _pinned, _too_many, _quota, _allocation, _threads_unset, _threads_share_core, _threads_wider, _unbound,
    _cpus_per_task,
)  # fmt: skip
