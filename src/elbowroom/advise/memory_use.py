"""Memory and last-level cache in forecasts of co-location: what each job does there, by counters or as the
user states it, and what that costs by the machine's FLOW model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from elbowroom.errors import UsageError, closest
from elbowroom.machine.identity import MachineDifference, check_same
from elbowroom.models.demand import demand_of_profile
from elbowroom.models.document import Document
from elbowroom.models.node_sharing import NodeUse, SharedCache, Sharing, check_flow, check_use, share_node
from elbowroom.profile.analysis import Analysis, summarise
from elbowroom.profile.forecast import Contended, Contention, Factor
from elbowroom.quantities import format_size, parse_bandwidth, parse_size

_ZERO = re.compile(r"\s*0+(\.0*)?\s*")
_MEMORY = "write JOB=RATE, for instance cg=6.2GB/s"
_CACHE = "write JOB=SIZE@RATE, for instance cg=20MiB@30GB/s"
DEFAULT_WAYS = 16


class StatedUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a user states of a job on one of its nodes while it computes: B/s of memory traffic; bytes that it
    passes over again and again, and B/s that it reads and writes of them. None: not stated.
    """

    memory: float | None = None
    working_set: float | None = None
    reuse: float | None = None


class _KnownUse(msgspec.Struct, frozen=True, kw_only=True):
    use: NodeUse
    source: str


def parse_rate(text: str, field: str, hint: str) -> float:
    """B/s of `6.2GB/s` (GB = 1e9 B); 0 is a rate, too."""
    return 0.0 if _ZERO.fullmatch(text) else parse_bandwidth(text, field, hint)


def parse_uses(memory: Sequence[str], cache: Sequence[str], jobs: Sequence[str]) -> dict[str, StatedUse]:
    """What `--memory JOB=RATE` and `--cache JOB=SIZE@RATE` state; UsageError for what is neither, for other
    jobs and for a job that is named twice.
    """
    uses: dict[str, StatedUse] = {}
    for name, text in _named(memory, "memory", _MEMORY, jobs):
        uses[name] = StatedUse(memory=parse_rate(text, "memory", _MEMORY))
    for name, text in _named(cache, "cache", _CACHE, jobs):
        size, at, rate = text.partition("@")
        if not at:
            raise UsageError("has no rate", field="cache", value=f"{name}={text}", hint=_CACHE)
        uses[name] = msgspec.structs.replace(
            uses.get(name, StatedUse()),
            working_set=float(parse_size(size, "cache")),
            reuse=parse_rate(rate, "cache", _CACHE),
        )
    return uses


def _named(texts: Sequence[str], field: str, hint: str, jobs: Sequence[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise UsageError("names no job", field=field, value=text, hint=hint)
        if name not in jobs:
            raise UsageError("is none of the jobs", field=field, value=name, hint=closest(name, tuple(jobs)))
        if name in dict(pairs):
            raise UsageError(
                "names the same job twice", field=field, value=name, hint="give one value for each job"
            )
        pairs.append((name, value))
    return pairs


def contention_of(
    document: Document,
    jobs: dict[str, Analysis],
    *,
    memory: Sequence[str] = (),
    cache: Sequence[str] = (),
    llc: int | str | None = None,
    half: bool = False,
) -> Contention:
    """What memory and last-level cache cost two of these jobs beside each other, by the FLOW part of a model.

    `llc`: bytes of the last-level cache that they share; default: that of the profiled host. `half`: each job
    has half of its ranks on a node. UsageError for another machine's model, and for jobs that do not fit it.
    """
    stated = parse_uses(memory, cache, tuple(jobs))
    shared = _cache(jobs, llc)
    check_flow(document)
    uses: dict[str, _KnownUse | str] = {}
    for name, job in jobs.items():
        _check_machine(document, name, job)
        uses[name] = _use(document, name, job, stated.get(name, StatedUse()), half)
    names = {id(job): name for name, job in jobs.items()}

    def contention(a: Analysis, b: Analysis) -> Contended:
        return _contended(document, names[id(a)], names[id(b)], uses, shared)

    return contention


def _check_machine(document: Document, name: str, job: Analysis) -> None:
    """Cores and sockets are those of the profile's host, where that is known."""
    manifest, shape = job.profile.manifest, document.machine
    host = manifest.machine if manifest is not None else {}
    known = {"cores": shape.cores, "sockets": shape.sockets}
    for field, value in known.items():
        there = host.get(field)
        if there and there != value:
            check_same(
                MachineDifference(field, value, there),
                field="model",
                value=shape.name,
                hint="give a model that was fitted on the profiled machine",
                places=("there", f"in the profile of {name}"),
            )


def _use(document: Document, name: str, job: Analysis, stated: StatedUse, half: bool) -> _KnownUse | str:
    """What the job does on a node, or why that is not known."""
    cores = -(-job.profile.size // job.profile.nodes)
    rate, source = (stated.memory, "stated") if stated.memory is not None else _counted(job)
    if rate is None and (demand := demand_of_profile(job.profile.folder)) is not None:
        rate = demand.traffic
        source = "as much as that of a known load" if rate is not None else demand.pressure[0].unresolved
    if rate is None:
        return source
    use = NodeUse(cores=cores, memory=rate, working_set=stated.working_set, reuse=stated.reuse)
    check_use(document, use, field="memory", name=name)
    if half:
        use = NodeUse(
            cores=-(-cores // 2),
            memory=rate / 2,
            working_set=None if use.working_set is None else use.working_set / 2,
            reuse=None if use.reuse is None else use.reuse / 2,
        )
    return _KnownUse(use=use, source=source)


def _counted(job: Analysis) -> tuple[float | None, str]:
    """B/s on one node by the profile's counters, and which these are, or why there are none."""
    memory = summarise(job).memory
    if memory.rate is None:
        return None, memory.reason or "the profile has no samples"
    hosts = [rank.node for rank in job.profile.ranks if rank.host == memory.host]
    what = "everything on" if memory.scope == "host" else "its processes on"
    return memory.rate / len(set(hosts)), f"counters: {memory.source}, {what} {memory.host}"


def _cache(jobs: dict[str, Analysis], llc: int | str | None) -> SharedCache | None:
    hosts = [job.profile.manifest.machine for job in jobs.values() if job.profile.manifest is not None]
    ways = next((int(host["ways"]) for host in hosts if host.get("ways")), DEFAULT_WAYS)
    if llc is not None:
        return SharedCache(size=parse_size(llc, "llc"), ways=ways)
    # A node's caches hold as much as all of them: jobs that are spread over the node use each of them.
    sizes = [int(host["cache"]) * max(1, int(host.get("caches", 1))) for host in hosts if host.get("cache")]
    return SharedCache(size=sizes[0], ways=ways) if sizes else None


def _contended(
    document: Document, a: str, b: str, uses: dict[str, _KnownUse | str], cache: SharedCache | None
) -> Contended:
    notes = []
    for name in (a, b):
        use = uses[name]
        if isinstance(use, str):
            notes.append(
                f"memory and cache are left out for {name} and beside it: its memory traffic is not known "
                f"({use}); state it: --memory {name}=RATE"
            )
    first, second = uses[a], uses[b]
    if isinstance(first, str) or isinstance(second, str):
        return Contended(notes=tuple(dict.fromkeys(notes)))
    _check_room(document, a, b, first.use, second.use)
    sharing = share_node(document, first.use, second.use, cache)
    notes += [_source(name, use) for name, use in ((a, first), (b, second))]
    notes += _cache_notes(a, b, first.use, second.use, cache, sharing)
    return Contended(
        a=Factor(value=sharing.slower[0].value, low=sharing.slower[0].low, high=sharing.slower[0].high),
        b=Factor(value=sharing.slower[1].value, low=sharing.slower[1].low, high=sharing.slower[1].high),
        notes=tuple(dict.fromkeys(notes)),
    )


def _check_room(document: Document, a: str, b: str, first: NodeUse, second: NodeUse) -> None:
    shape, ranks = document.machine, first.cores + second.cores
    cores = shape.cores
    if ranks > cores:
        raise UsageError(
            f"{a} and {b} have {ranks} ranks on a node together, and {shape.name} has {cores} cores",
            field="model",
            value=shape.name,
            hint="add --half, or profile jobs with fewer ranks on a node",
        )


def _source(name: str, known: _KnownUse) -> str:
    use = known.use
    sentence = f"{name}: {use.memory / 1e9:.3g} GB/s of memory traffic on a node ({known.source})"
    if use.working_set is not None and use.reuse is not None:
        size = format_size(round(use.working_set))
        sentence += f", {use.reuse / 1e9:.3g} GB/s on {size} that it reuses (stated)"
    return sentence


def _cache_notes(
    a: str, b: str, first: NodeUse, second: NodeUse, cache: SharedCache | None, sharing: Sharing
) -> list[str]:
    if cache is None:
        return ["the last-level cache is left out: its size is not known (--llc SIZE)"]
    if sharing.cache is None:
        missing = [name for name, use in ((a, first), (b, second)) if use.reuse is None]
        return [
            f"the last-level cache is left out for {a} and {b}: what {' and '.join(dict.fromkeys(missing))} "
            "reuses is not known (--cache JOB=SIZE@RATE)"
        ]
    return [
        f"the last-level cache ({format_size(cache.size)}) serves {100 * alone:.0f} % of what {name} reuses "
        f"alone, {100 * beside:.0f} % beside {other} (the middle of two ways to replace lines)"
        for name, other, use, (alone, beside) in (
            (a, b, first, sharing.cache[0]),
            (b, a, second, sharing.cache[1]),
        )
        if use.reuse
    ]
