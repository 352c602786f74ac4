"""Nodes that answer as the probe does, with values that a test knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elbowroom.accept.allocated_site import AllocatedSite, SitePlan
from elbowroom.accept.journal import PARTS, SiteJournal, SiteLine
from elbowroom.accept.node_jobs import Ask, NodeAnswers, Shard
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.virtual_site import LEVELS

USUAL = {
    **{name: level.usual for name, level in LEVELS.items()},
    "bandwidth-both": 11_000.0,
    "latency-beside": 1.3,
    "late": 0.01,
    "memory-numa": 90_000.0,
    "waiting": 0.001,
    "throttled": 0.0,
    "steal": 0.0,
}


class AnsweringNodes:
    """In the place of NodeJobs. `slow`: the part that a node loses of each quantity, by node; `dying`: the
    request, counted from 0, at which a node is lost.
    """

    def __init__(
        self,
        slow: Mapping[str, Mapping[str, float]] | None = None,
        dying: Mapping[str, int] | None = None,
        noise: float = 0.005,
    ) -> None:
        self.lost: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.facts: dict[str, dict[str, str]] = {}
        self.facts_bytes = 0
        self.starts: list[float] = []
        self.requests: list[tuple[Shard, dict[str, Any]]] = []
        self._slow = slow or {}
        self._dying = dying or {}
        self._noise = noise
        self._random = np.random.default_rng(1)

    def ask(self, shards: Sequence[Shard], request: Ask) -> NodeAnswers:
        answered = NodeAnswers()
        for shard in shards:
            for node, at in self._dying.items():
                if node in shard and len(self.requests) >= at and node not in self.lost:
                    self.lost[node] = "it started no program"
            job = tuple(node for node in shard if node not in self.lost)
            self.names |= dict.fromkeys(job, "") | {node: node for node in job}
            self.facts |= {node: {"kernel": "6.1"} for node in job}
            wanted = request(job)
            if wanted is None:
                continue
            self.requests.append((job, wanted))
            ranks = (
                wanted.get("ranks")
                or [rank for pair in wanted.get("pairs", ()) for rank in pair]
                or range(len(job))
            )
            for rank in ranks:
                answered.values[job[rank]] = self._values(job[rank], str(wanted["op"]))
            answered.bytes += 50 * len(list(ranks))
        return answered

    def close(self) -> None:
        """Nothing runs."""

    def _values(self, node: str, op: str) -> list[float | None]:
        values: list[float | None] = []
        for name in PARTS[op]:
            loss = self._slow.get(node, {}).get(name, 0.0)
            noise = float(np.exp(self._random.normal(0.0, self._noise)))
            rate = QUANTITIES[name].more_is_better
            if QUANTITIES[name].additive:
                values.append(USUAL[name] + loss)
            else:
                values.append(USUAL[name] * noise * ((1 - loss) if rate else 1 / (1 - loss)))
        return values


def measured(
    folder: Path,
    nodes: AnsweringNodes,
    plan: SitePlan,
    *,
    tell: Callable[[str], object] = lambda _text: None,
) -> tuple[AllocatedSite, SiteJournal]:
    """The site of a plan on these nodes, with a journal in the folder, which may be there already."""
    folder.mkdir(exist_ok=True)
    new = not (folder / "journal.jsonl").exists()
    journal = SiteJournal(folder, create=new)
    if new:
        journal.add(SiteLine(number=0, nodes=plan.nodes, seed=plan.seed))
    return AllocatedSite(plan, nodes, journal, tell), journal  # type: ignore[arg-type]
