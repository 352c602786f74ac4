"""Jobs to schedule and the cluster they run on, as TOML (docs/guide/colocate.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elbowroom.documents import check_keys, convert, parse_toml
from elbowroom.errors import UsageError, closest
from elbowroom.quantities import format_size, parse_size

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Positive = Annotated[float, Meta(gt=0)]

PAGE = "`elbowroom help colocate`"

MOST_JOBS = 4000
"""The costs of all pairs of more jobs do not fit into memory."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equal nodes; `memory`: bytes of one node, None where it is no constraint."""

    nodes: Count
    cores: Count
    memory: int | None = None


class ScheduledJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job that takes `hours` exclusively on all cores of `nodes` nodes; on half of them it has twice the
    nodes.

    `application`: its name in the matrix. `ranks`: None where there is one on each core. `memory`,
    `memory_half`: bytes on each node with all and with half of the cores. `deadline`: hours from the start of
    the plan. `share`: false where it runs without a companion, or the applications and jobs that it may share
    with. `cores`: what it may run on; `half`: percent of its runtime on half of the cores, with no companion.
    `after`: jobs that must end before.
    """

    name: str
    application: str
    nodes: Count
    hours: Positive
    ranks: Count | None = None
    memory: int | None = None
    memory_half: int | None = None
    deadline: Positive | None = None
    share: bool | tuple[str, ...] = True
    cores: Literal["any", "all", "half"] = "any"
    half: Positive | None = None
    after: tuple[str, ...] = ()
    command: str | None = None

    @property
    def node_hours(self) -> float:
        """Node-hours of the exclusive run on all cores."""
        return self.nodes * self.hours

    def may_share_with(self, other: ScheduledJob) -> bool:
        """Whether this job accepts the other one."""
        if isinstance(self.share, bool):
            return self.share
        return other.name in self.share or other.application in self.share


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be scheduled."""

    cluster: Cluster
    jobs: tuple[ScheduledJob, ...]


_WRITTEN = {*ScheduledJob.__struct_fields__, "node_hours"}


def parse_jobs(text: str, where: str) -> Jobs:
    """Jobs from TOML; UsageError for what no plan can meet."""
    data = parse_toml(text, field="jobs", where=where)
    check_keys(data, {"cluster", "jobs"}, of="a file of jobs", where=where)
    for table in ("cluster", "jobs"):
        if table not in data:
            raise UsageError(f"is missing in {where}", field=table, hint=f"add it, see {PAGE}")
    cluster = _cluster(data["cluster"], where)
    listed = data["jobs"]
    if not isinstance(listed, list) or not listed or not all(isinstance(job, dict) for job in listed):
        raise UsageError("is not a list of jobs", field="jobs", value=where, hint="write [[jobs]] tables")
    if len(listed) > MOST_JOBS:
        raise UsageError(
            f"are more than {MOST_JOBS}", field="jobs", value=len(listed), hint="schedule them in parts"
        )
    jobs = tuple(_job(job, cluster, where) for job in listed)
    check_jobs(cluster, jobs)
    return Jobs(cluster=cluster, jobs=jobs)


def check_jobs(cluster: Cluster, jobs: Sequence[ScheduledJob]) -> None:
    """UsageError for jobs that no plan can run."""
    names: set[str] = set()
    for job in jobs:
        if job.name in names:
            raise UsageError("is the name of two jobs", field="jobs.name", value=job.name, hint="rename one")
        names.add(job.name)
        _check_fits(job, cluster)
    for job in jobs:
        for name in job.after:
            if name not in names:
                raise UsageError("is not a job", field="jobs.after", value=name, hint=closest(name, names))
    order_by_dependencies(jobs)


def order_by_dependencies(jobs: Sequence[ScheduledJob]) -> list[ScheduledJob]:
    """The jobs, each behind those that must end before; UsageError for dependencies in a circle."""
    by_name = {job.name: job for job in jobs}
    try:
        order = list(TopologicalSorter({job.name: job.after for job in jobs}).static_order())
    except CycleError as error:
        circle = error.args[1][:0:-1]
        first = min(range(len(circle)), key=lambda place: list(by_name).index(circle[place]))
        circle = [*circle[first:], *circle[: first + 1]]
        raise UsageError(
            f"waits for itself ({' after '.join(circle)})",
            field="jobs.after",
            value=circle[0],
            hint="remove one of these dependencies",
        ) from error
    return [by_name[name] for name in order]


def ancestors(jobs: Sequence[ScheduledJob]) -> tuple[frozenset[int], ...]:
    """For each job the indices of all that must end before it starts."""
    at = {job.name: index for index, job in enumerate(jobs)}
    before: dict[str, frozenset[int]] = {}
    for job in order_by_dependencies(jobs):
        before[job.name] = frozenset(at[name] for name in job.after).union(
            *(before[name] for name in job.after)
        )
    return tuple(before[job.name] for job in jobs)


def _cluster(data: Any, where: str) -> Cluster:
    if not isinstance(data, dict):
        raise UsageError("is not a table", field="cluster", value=where, hint="write [cluster]")
    check_keys(data, Cluster.__struct_fields__, of="a cluster", where=where, prefix="cluster.")
    normal = _with_bytes(data, ("memory",), "cluster.")
    return convert(normal, Cluster, subject="cluster", where=where, page=PAGE, prefix="cluster.")


def _job(data: Mapping[str, Any], cluster: Cluster, where: str) -> ScheduledJob:
    check_keys(data, _WRITTEN, of="a job", where=where, prefix="jobs.")
    normal = _with_bytes(data, ("memory", "memory_half"), "jobs.")
    name = normal.get("name")
    named = f"{where}, job {name!r}" if isinstance(name, str) else where
    normal.setdefault("application", name)
    ranks = normal.get("ranks")
    if "nodes" not in normal and isinstance(ranks, int) and ranks > 0:
        normal["nodes"] = math.ceil(ranks / cluster.cores)
    node_hours = _node_hours(normal, named)
    if node_hours is not None and isinstance(normal.get("nodes"), int) and normal["nodes"] > 0:
        normal["hours"] = node_hours / normal["nodes"]
    words = {"cores": "any, all, half", "share": "true, false, a list of names"}
    job = convert(normal, ScheduledJob, subject="jobs", where=named, page=PAGE, prefix="jobs.", words=words)
    for field in ("name", "application"):
        text = getattr(job, field)
        if not text.strip() or not text.isprintable():
            raise UsageError("is not a name", field=f"jobs.{field}", value=text, hint="name the job")
    if job.command is not None and (not job.command.strip() or not job.command.isprintable()):
        raise UsageError(
            f"is not one line in {named}", field="jobs.command", value=job.command, hint="name a script"
        )
    if job.ranks is not None and not job.ranks <= job.nodes * cluster.cores:
        raise UsageError(
            f"are more than the cores of {job.nodes} nodes in {named}",
            field="jobs.ranks",
            value=job.ranks,
            hint="give more nodes",
        )
    for field in ("hours", "deadline", "half"):
        if not math.isfinite(getattr(job, field) or 0.0):
            raise UsageError(
                f"is not a number in {named}", field=f"jobs.{field}", hint="give a positive number"
            )
    return job


def _node_hours(data: dict[str, Any], where: str) -> float | None:
    """What stands in place of hours; it is taken out of the data."""
    if "node_hours" not in data:
        return None
    value = data.pop("node_hours")
    field = "jobs.node_hours"
    if "hours" in data:
        raise UsageError(
            f"cannot be combined with hours in {where}", field=field, value=value, hint="leave one out"
        )
    right = isinstance(value, int | float) and not isinstance(value, bool)
    if not right or not 0 < value < 1e12:
        raise UsageError(
            f"is not an amount in {where}", field=field, value=str(value), hint="give a positive one"
        )
    return float(value)


def _with_bytes(data: Mapping[str, Any], keys: Iterable[str], prefix: str) -> dict[str, Any]:
    normal = dict(data)
    for key in keys:
        if key in normal:
            normal[key] = parse_size(normal[key], f"{prefix}{key}")
    return normal


def _check_fits(job: ScheduledJob, cluster: Cluster) -> None:
    width = job.nodes if job.cores != "half" else 2 * job.nodes
    if width > cluster.nodes:
        raise UsageError(
            f"needs {width} nodes, and the cluster has {cluster.nodes}",
            field="jobs.nodes",
            value=job.name,
            hint="give it fewer nodes",
        )
    if cluster.memory is not None and not any(fits_memory(job, cluster, mode) for mode in modes(job)):
        need = format_size(memory_of(job, "all" if job.cores == "all" else "half"))
        raise UsageError(
            f"needs {need} on each node, and a node has {format_size(cluster.memory)}",
            field="jobs.memory",
            value=job.name,
            hint="run it on more nodes",
        )
    if not any(
        fits_memory(job, cluster, mode) and width_of(job, mode) <= cluster.nodes for mode in modes(job)
    ):
        raise UsageError(
            f"needs half of the cores for its memory, and then {2 * job.nodes} nodes of {cluster.nodes}",
            field="jobs.memory",
            value=job.name,
            hint="run it on more nodes",
        )


Mode = Literal["all", "half"]


def modes(job: ScheduledJob) -> tuple[Mode, ...]:
    """What of a node's cores the job may run on."""
    return ("all", "half") if job.cores == "any" else (job.cores,)


def width_of(job: ScheduledJob, mode: Mode) -> int:
    """Nodes of the job."""
    return job.nodes if mode == "all" else 2 * job.nodes


def memory_of(job: ScheduledJob, mode: Mode) -> int:
    """Bytes on each node; with half of the cores half as much, where nothing else is given."""
    if mode == "all":
        return job.memory or 0
    return (job.memory or 0) // 2 if job.memory_half is None else job.memory_half


def fits_memory(job: ScheduledJob, cluster: Cluster, mode: Mode) -> bool:
    """Whether a node has enough memory for the job without a companion."""
    return cluster.memory is None or memory_of(job, mode) <= cluster.memory
