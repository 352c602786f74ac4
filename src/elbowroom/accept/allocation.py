"""The examination of the nodes of an allocation, in a folder that it can be resumed from."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from elbowroom.accept.acceptance import examine, with_missing
from elbowroom.accept.allocated_site import AllocatedSite, SitePlan
from elbowroom.accept.clocks import clock_notes, clocks_of
from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.history import write_values
from elbowroom.accept.journal import SiteJournal, SiteLine
from elbowroom.accept.node_jobs import NodeJobs, NodeLaunch
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import FEWEST
from elbowroom.accept.slurm import features_of, switches_of
from elbowroom.errors import UsageError
from elbowroom.launch.build import probe
from elbowroom.launch.launchers import check_program, detect, get, host_names
from elbowroom.launch.mpi import find_mpi
from elbowroom.quantities import plural
from elbowroom.store.folder import create_folder

FOLDER_FILES = ("journal.jsonl", "nodes.parquet", "site.json")
"""Of a run, in its folder."""


class AllocationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is examined, and how. `launcher`: None is that of the allocation, or mpiexec where hosts are
    given; `patience`: seconds after which a node that does not answer is lost; others as of SitePlan and
    NodeLaunch.
    """

    launcher: str | None = None
    mpi: str | None = None
    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    working_set: int = 0
    size: int = 1 << 20
    budget: float = 300.0
    seed: int = 1
    shard: int = 256
    patience: float = 60.0
    by_feature: str | None = None

    def launcher_name(self) -> str:
        """The launcher that starts the jobs."""
        here = detect(os.environ)
        return self.launcher or ("mpiexec" if here == "local" and (self.hosts or self.hostfile) else here)

    def nodes(self) -> tuple[str, ...]:
        """The nodes to examine. UsageError outside of an allocation, for a name that is there twice, and for
        fewer nodes than a judgement needs.
        """
        name = self.launcher_name()
        nodes = host_names(name, self.hosts, self.hostfile, os.environ)
        if not nodes:
            raise UsageError(
                "there is no allocation here",
                field="hosts",
                value=None,
                hint="try `salloc -N 64 elbowroom accept`, --hosts a,b,c, or --virtual 1000 to try it",
            )
        twice = [node for node, count in Counter(nodes).items() if count > 1]
        if twice:
            raise UsageError("names two nodes", field="hosts", value=twice[0], hint="name each node once")
        if len(nodes) < FEWEST:
            raise UsageError(
                f"{plural(len(nodes), 'node')}, and a node is judged by others",
                field="hosts",
                value=",".join(nodes),
                hint=f"give at least {FEWEST} nodes, or compare this one with a baseline: accept --node",
            )
        return nodes

    def place(self) -> NodeLaunch:
        """How its jobs are started. MachineError where the launcher is not there."""
        mpi = find_mpi(self.mpi)
        check_program(self.launcher_name(), mpi)
        return NodeLaunch(
            launcher=self.launcher_name(), mpi=mpi, probe=str(probe(mpi)), working_set=self.working_set
        )

    def plan(self) -> SitePlan:
        """The nodes with what Slurm knows of them."""
        nodes = self.nodes()
        slurm = self.launcher_name() == "srun"
        return SitePlan(
            nodes=nodes,
            seed=self.seed,
            budget=self.budget,
            size=self.size,
            shard=self.shard if get(self.launcher_name()).joins_ranks else 1,
            switches=switches_of(nodes) if slurm else None,
            features=() if self.by_feature is None else features_of(nodes, self.by_feature),
        )


def examine_allocation(
    request: AllocationRequest,
    folder: Path,
    *,
    resume: bool,
    tell: Callable[[str], object],
    check: Callable[[Sequence[str]], object] = lambda _names: None,
) -> AcceptanceDocument:
    """Measures and judges the nodes; the folder gets the journal and the values of all nodes. `resume`: it
    has a journal, and what is in it is not measured again; `check`: as of AllocatedSite. UsageError for nodes
    that cannot be judged, MachineError where too few can be reached.
    """
    plan = request.plan()
    place = request.place()
    if not resume:
        create_folder(folder, {})
    journal = SiteJournal(folder, create=not resume)
    jobs = NodeJobs(place, request.patience)
    try:
        if resume:
            plan = _resumed(plan, journal, folder)
        else:
            journal.add(SiteLine(number=0, nodes=plan.nodes, seed=plan.seed, size=plan.size))
        site = AllocatedSite(plan, jobs, journal, tell, check)
        name = f"{plural(len(plan.nodes), 'node')}, {datetime.datetime.now():%Y-%m-%d %H:%M}"
        document = examine(site, name=name)
        names = dict(zip(plan.nodes, site.names, strict=True))
        disturbed, one_job = bool(document.disturbed), len(plan.nodes) <= plan.shard
        clocks = clocks_of(journal.lines, names, disturbed=disturbed) if one_job else ()
        document = msgspec.structs.replace(document, clocks=clocks)
        of_clocks = clock_notes(clocks, disturbed=disturbed)
        notes = [*site.notes, *of_clocks, *_absent(document), *_cost(site, jobs)]
        document = with_missing(document, site.lost, notes)
        write_values(folder / "nodes.parquet", journal.lines, plan.nodes, site.names)
    finally:
        jobs.close()
        journal.close()
    return document


def _resumed(plan: SitePlan, journal: SiteJournal, folder: Path) -> SitePlan:
    """The plan with the nodes, the seed and the size of messages of the run that is continued."""
    first = journal.lines[0]
    if set(first.nodes) != set(plan.nodes):
        missing = [node for node in first.nodes if node not in plan.nodes]
        raise UsageError(
            f"is of {plural(len(first.nodes), 'node')}, and {plural(len(missing), 'node')} of them are not "
            f"in this allocation",
            field="resume",
            value=str(folder),
            hint=f"allocate the same nodes: {','.join(first.nodes)[:200]}",
        )
    order = [plan.nodes.index(node) for node in first.nodes]
    return msgspec.structs.replace(
        plan,
        nodes=first.nodes,
        seed=first.seed,
        size=first.size,
        switches=None if plan.switches is None else tuple(plan.switches[at] for at in order),
        features=tuple(plan.features[at] for at in order) if plan.features else (),
    )


def _absent(document: AcceptanceDocument) -> Iterator[str]:
    """What no node has a value of, and why."""
    known = {level.quantity for level in document.levels}
    for one in QUANTITIES.values():
        if one.absent and one.name not in known:
            yield f"n/a: {one.name}: {one.absent}"
    if not document.clocks:
        yield "n/a: clocks of nodes: no barrier of all nodes was timed"


def _cost(site: AllocatedSite, jobs: NodeJobs) -> Iterator[str]:
    if jobs.starts:
        sent = "" if site.plan.shard == 1 else f"; {site.bytes_of_a_node} B of a node to rank 0"
        yield f"{plural(len(jobs.starts), 'job')} started, the slowest in {max(jobs.starts):.1f} s{sent}"
