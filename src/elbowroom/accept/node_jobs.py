"""Jobs of the probe with one rank on each of some nodes, which are started again without a node that dies."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from elbowroom import heartbeat
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.launcher import Launch, LaunchRequest
from elbowroom.launch.launchers import build_launch
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.processes import kill_all, start
from elbowroom.launch.session import Session, SessionLost, error_of

Shard = tuple[str, ...]
"""The nodes of one job, as the launcher calls them."""

TRIES = 6
"""Jobs that are started for one request, each without the nodes that were lost before."""
AT_ONCE = 16
"""Nodes that are tried at once, when one is lost."""
REACHED = 20.0
"""Seconds in which a node starts a program that ends at once."""
EXTRA = 15.0
"""Seconds after the time limit of the nodes, in which rank 0 says which of them are silent."""


class NodeLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is started: the launcher, and the probe with its MPI; `working_set`: bytes of TRIAD on a
    node, 0: four last-level caches.
    """

    launcher: str
    mpi: Mpi
    probe: str
    working_set: int = 0

    def launch(self, nodes: Shard, *arguments: str) -> Launch:
        """The command line that starts the probe on these nodes; the local launcher knows this one only."""
        words = arguments or ("cluster", "--working-set", f"{self.working_set}")
        request = LaunchRequest(
            ranks=len(nodes),
            ranks_per_host=1,
            probe=self.probe,
            mpi=self.mpi,
            hosts=() if self.launcher == "local" else nodes,
            arguments=words,
        )
        return build_launch(self.launcher, request)


class NodeJob(Session):
    """One running job. `nodes`: those of the ranks, in their order, once it has greeted."""

    what = "the nodes"

    def __init__(self, place: NodeLaunch, nodes: Shard) -> None:
        super().__init__(place.launch(nodes), ranks=len(nodes), mpi=place.mpi, greeted=False)
        self._mpi = place.mpi
        self.nodes = nodes
        self.names: dict[str, str] = {}
        self.facts: dict[str, dict[str, str]] = {}

    def meet(self, patience: float) -> None:
        """Waits for all ranks, and learns which node each is on. MachineError if they do not start."""
        self.greet(len(self.nodes), self._mpi, patience)
        facts = self.hello["facts"]
        hosts = [
            facts.get(str(rank), {}).get("node") or str(one["host"])
            for rank, one in enumerate(self.hello["ranks"])
        ]
        self.nodes = ranks_of(self.nodes, hosts)
        self.names = dict(zip(self.nodes, hosts, strict=True))
        for rank, node in enumerate(self.nodes):
            known = facts.get(str(rank), {})
            self.facts[node] = {name: str(text) for name, text in known.items() if name != "node"}


def ranks_of(nodes: Shard, hosts: Sequence[str]) -> Shard:
    """The node of each rank. `nodes`: as the launcher calls them; `hosts`: as each rank's own host does. They
    are the same names, or else (addresses) in the same order. UsageError for two ranks on one host.
    """
    twice = [host for host, count in Counter(hosts).items() if count > 1]
    if twice:
        raise UsageError(
            f"{hosts.count(twice[0])} ranks are on a node of this name",
            field="hosts",
            value=twice[0],
            hint="give each node its own name, and start one rank on each (--ntasks-per-node=1)",
        )
    plain = {name.partition(".")[0]: name for name in nodes}
    short = [host.partition(".")[0] for host in hosts]
    return tuple(plain[host] for host in short) if set(short) == set(plain) else nodes


class NodeAnswers(msgspec.Struct, kw_only=True):
    """What nodes answered: values by node, why there are none, and the bytes that came to rank 0."""

    values: dict[str, list[float | None]] = {}
    errors: dict[str, str] = {}
    bytes: int = 0
    jobs: int = 0


Ask = Callable[[Shard], dict[str, Any] | None]
"""Makes the request to a job of these nodes, in the order of its ranks; None: nothing is requested of it."""


class NodeJobs:
    """All jobs that run. `lost`: why, by node, of those that died, hang or were never reached; `facts_bytes`:
    what came to rank 0 for `facts`.
    """

    def __init__(self, place: NodeLaunch, patience: float) -> None:
        self.place = place
        self.patience = patience
        self.lost: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.facts: dict[str, dict[str, str]] = {}
        self.facts_bytes = 0
        self.starts: list[float] = []
        self._live: dict[Shard, NodeJob] = {}
        self._silent: Counter[str] = Counter()

    def ask(self, shards: Sequence[Shard], request: Ask) -> NodeAnswers:
        """Asks a job of each shard, all at once, and again without the nodes that were lost meanwhile.
        MachineError where a job fails again and again, though all of its nodes can be reached.
        """
        answered, waiting, why = NodeAnswers(), list(shards), ""
        for _ in range(TRIES):
            waiting = [left for shard in waiting if (left := self._alive(shard))]
            if not waiting:
                return answered
            failed: dict[Shard, str] = {}
            self._open(waiting, failed)
            for shard, text in [*failed.items(), *self._ask_all(waiting, request, answered)]:
                failed[shard] = why = text
                self._find_lost(shard, text)
            waiting = list(failed)
        raise MachineError(
            f"a job of {len(waiting[0])} nodes failed {TRIES} times: {why}",
            field="launcher",
            value=self.place.launch(waiting[0]).line()[:200],
            hint="try the same command by hand",
        )

    def close(self) -> None:
        """Ends all jobs."""
        for job in self._live.values():
            job.close()
        self._live.clear()

    def _alive(self, shard: Shard) -> Shard:
        return tuple(node for node in shard if node not in self.lost)

    def _open(self, shards: Sequence[Shard], failed: dict[Shard, str]) -> None:
        """Starts the jobs that do not run, all at once, and ends those that are not needed."""
        for shard in [one for one in self._live if one not in shards]:
            self._live.pop(shard).close()
        start_time = time.monotonic()
        new = {shard: NodeJob(self.place, shard) for shard in shards if shard not in self._live}
        self._live |= new
        for shard, job in new.items():
            try:
                job.meet(self.patience + EXTRA)
            except UsageError:
                self.close()
                raise
            except MachineError as error:
                del self._live[shard]
                failed[shard] = error.message
                continue
            self.starts.append(time.monotonic() - start_time)
            self.names |= job.names
            self.facts |= job.facts
            self.facts_bytes += int(job.hello["bytes"])

    def _ask_all(
        self, shards: Sequence[Shard], request: Ask, answered: NodeAnswers
    ) -> Iterator[tuple[Shard, str]]:
        """Asks each job that runs; the shards of those that fail, with the reason."""
        requested: list[Shard] = []
        failed: dict[Shard, str] = {}
        for shard in [one for one in shards if one in self._live]:
            job = self._live[shard]
            wanted = request(job.nodes)
            if wanted is None:
                continue
            requested.append(shard)
            try:
                job.begin({**wanted, "patience": self.patience})
            except SessionLost as lost:
                failed[shard] = str(lost)
        for shard in requested:
            text = failed.get(shard) or self._hear(shard, answered)
            if text:
                self._live.pop(shard).kill()
                yield shard, text

    def _hear(self, shard: Shard, answered: NodeAnswers) -> str:
        """The answer of a job; why it fails, "" if it does not."""
        job = self._live[shard]
        try:
            record = job.finish(self.patience + EXTRA)
        except SessionLost as lost:
            return str(lost)
        if record.get("record") == "error":
            raise error_of(record)
        for rank, values in record["values"].items():
            answered.values[job.nodes[int(rank)]] = values
        for rank, text in record["errors"].items():
            answered.errors[job.nodes[int(rank)]] = str(text)
        answered.bytes += int(record["bytes"])
        answered.jobs += 1
        silent = [job.nodes[rank] for rank in record["silent"]]
        self._silent.update(silent)
        return f"no answer within {self.patience:g} s from {', '.join(silent)}" if silent else ""

    def _find_lost(self, shard: Shard, text: str) -> None:
        """Which nodes of a job that failed cannot be reached, those first that the launcher names."""
        named = [
            node
            for node in shard
            if any(
                re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text)
                for name in {node, self.names.get(node, node)}
            )
        ]
        lost = unreachable(self.place, named)
        lost = lost or unreachable(self.place, [node for node in shard if node not in named])
        if not lost:
            again = [node for node in shard if self._silent[node] > 1]
            lost = dict.fromkeys(again, f"it was silent for {self.patience:g} s twice")
        self.lost |= lost


def unreachable(place: NodeLaunch, nodes: Collection[str], patience: float = REACHED) -> dict[str, str]:
    """Why, by node, those that start no program."""
    why: dict[str, str] = {}
    ordered = list(nodes)
    for first in range(0, len(ordered), AT_ONCE):
        why |= _tried(place, ordered[first : first + AT_ONCE], patience)
    return why


def _tried(place: NodeLaunch, nodes: Sequence[str], patience: float) -> dict[str, str]:
    running: dict[str, tuple[subprocess.Popen[bytes], Any]] = {}
    try:
        for node in nodes:
            launch = place.launch((node,), "--version")
            output = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
            process = start(
                launch.command,
                field="launcher",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **launch.env},
            )
            running[node] = process, output
        end = time.monotonic() + patience
        with heartbeat.Wait("looking for the node that was lost"):
            while any(process.poll() is None for process, _ in running.values()) and time.monotonic() < end:
                time.sleep(0.05)
        return dict(_reasons(running, patience))
    finally:
        for process, output in running.values():
            kill_all(process)
            output.close()


def _reasons(
    running: Mapping[str, tuple[subprocess.Popen[bytes], Any]], patience: float
) -> Iterator[tuple[str, str]]:
    for node, (process, output) in running.items():
        code = process.poll()
        if code is None:
            yield node, f"it started no program within {patience:g} s"
        elif code != 0:
            output.seek(0)
            lines = [line.strip(" -\t") for line in output.read().decode(errors="replace").splitlines()]
            # Launchers say more than the reason: warnings before it, and what they do about it.
            printed = [line for line in lines if line] or [f"exit code {code}"]
            reason = next((line for line in printed if "error" in line.lower()), printed[0])
            yield node, f"it started no program: {reason[:200]}"
