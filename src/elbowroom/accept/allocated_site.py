"""An allocation whose nodes are measured: rounds of all nodes, and again those that are suspected."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from elbowroom import heartbeat
from elbowroom.accept.journal import (
    SiteJournal,
    SiteLine,
    known_names,
    readings_of,
)
from elbowroom.accept.judgement import SIGNS, Suspicion
from elbowroom.accept.node_jobs import Ask, NodeJobs, Shard
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import FEWEST, SiteReadings
from elbowroom.accept.rounds import draw_rounds, random_pairs
from elbowroom.accept.virtual_site import AGAIN, ROUNDS
from elbowroom.errors import MachineError, UsageError
from elbowroom.quantities import number as shown
from elbowroom.quantities import plural

FEWEST_ROUNDS = 5
FIRST_SHARE = 0.5
"""Part of the budget that the first rounds may take."""
BUDGET = 300.0
LONGEST, SHORTEST = 0.1, 0.02
"""Seconds of a window; a budget above BUDGET makes it longer."""
WINDOWS = 20
"""Windows of a round, with what lies between them."""
BARRIERS = 20
OTHERS = 3
"""Nodes that say how much faster or slower a round was than the first ones."""

Pairs = list[tuple[int, int]]


class SitePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How an allocation is measured: `nodes` as the launcher calls them; `switches`, `features`: of each, as
    Slurm knows them; `budget`, `window`: seconds; `size`: bytes of a large message; `shard`: nodes of a job,
    1 where the launcher joins no nodes to a job, so that there are no messages between them.
    """

    nodes: tuple[str, ...]
    seed: int = 1
    budget: float = BUDGET
    size: int = 1 << 20
    shard: int = 256
    switches: tuple[int, ...] | None = None
    features: tuple[str, ...] = ()

    @property
    def window(self) -> float:
        """Seconds of each window, so that all rounds fit into the budget."""
        longest = LONGEST * max(1.0, self.budget / BUDGET)
        return float(np.clip(self.budget / (ROUNDS + AGAIN) / WINDOWS, SHORTEST, longest))


class AllocatedSite:
    """The nodes of a plan, by the jobs that run on them. What the journal holds is not measured again."""

    def __init__(
        self,
        plan: SitePlan,
        jobs: NodeJobs,
        journal: SiteJournal,
        tell: Callable[[str], object],
        check: Callable[[Sequence[str]], object] = lambda _names: None,
    ) -> None:
        """`check`: gets the names of all nodes once they are known."""
        self.plan = plan
        self.notes: list[str] = []
        self._jobs = jobs
        self._journal = journal
        self._tell = tell
        self._check = check
        self._start_time = time.monotonic()
        self._features = dict(zip(plan.nodes, plan.features, strict=False))
        self._switches = None if plan.switches is None else np.array(plan.switches, dtype=np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, as they call themselves, where they were reached."""
        known = known_names(self._journal.lines)
        return tuple(known.get(node, node) for node in self.plan.nodes)

    @property
    def lost(self) -> dict[str, str]:
        """Why, by name, nodes could not be measured to the end."""
        names = dict(zip(self.plan.nodes, self.names, strict=True))
        return {names[node]: why for node, why in self._jobs.lost.items()}

    @property
    def bytes_of_a_node(self) -> int:
        """Bytes that one node sent to rank 0, the mean."""
        return round(sum(line.bytes for line in self._journal.lines) / max(len(self.plan.nodes) - 1, 1))

    def measure(self) -> SiteReadings:
        """ROUNDS rounds of all nodes, or as many as half of the budget allows, and all pairs at once."""
        rounds = draw_rounds(self._switches, len(self.plan.nodes), ROUNDS, self._random("pairs"))
        for number, pairs in enumerate(rounds):
            if self._late("first", number, FEWEST_ROUNDS, FIRST_SHARE):
                break
            self._round("first", number, ROUNDS, [(int(a), int(b)) for a, b in pairs])
        self._bisect()
        return self._readings("first")

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        """AGAIN rounds of all nodes, in which those that are suspected have partners that are not. Only their
        values are returned, corrected by what the others show of each round.
        """
        self._tell(f"measuring again: {plural(len(suspicion.nodes), 'node')} may be slow")
        for number in range(AGAIN):
            if self._late("again", number, SIGNS + 1, 1.0):
                break
            pairs = self._pairs_again(suspicion, number)
            self._round("again", number, AGAIN, pairs)
        site = self._readings("again", self._corrector(suspicion))
        return _only(site, suspicion)

    def _random(self, what: str, number: int = 0) -> np.random.Generator:
        """Random numbers that are the same when a run is resumed."""
        return np.random.default_rng((self.plan.seed, len(self.plan.nodes), number, *what.encode()))

    def _late(self, stage: str, number: int, fewest: int, share: float) -> bool:
        """Whether the budget is used up before this round; then a note says what is missing."""
        spent = time.monotonic() - self._start_time
        if number < fewest or spent * (number + 1) / max(number, 1) < share * self.plan.budget:
            return False
        what = "the first rounds" if stage == "first" else "the rounds of suspects"
        self.notes.append(f"The budget of {self.plan.budget:g} s ended {what} after {number}")
        return True

    def _alive(self) -> list[int]:
        alive = [at for at, node in enumerate(self.plan.nodes) if node not in self._jobs.lost]
        if len(alive) < FEWEST:
            why = "; ".join(f"{node}: {text}" for node, text in list(self.lost.items())[:3])
            raise MachineError(
                f"{plural(len(alive), 'node')} of {len(self.plan.nodes)} can be reached, and a node is "
                f"judged by others ({why})",
                field="hosts",
                hint=f"give at least {FEWEST} nodes on which the launcher starts programs",
            )
        return alive

    def _pairs_again(self, suspicion: Suspicion, number: int) -> Pairs:
        """Disjoint pairs: suspects with others, both ends of suspected paths, and what is left."""
        random = self._random("again", number)
        alive = self._alive()
        suspected = set(suspicion.nodes)
        suspects = [int(one) for one in random.permutation([at for at in alive if at in suspected])]
        good = [int(one) for one in random.permutation([at for at in alive if at not in suspected])]
        pairs: Pairs = []
        for path in suspicion.paths if self._switches is not None else ():
            assert self._switches is not None
            ends = [next((at for at in good if self._switches[at] == switch), None) for switch in path]
            if ends[0] is not None and ends[1] is not None:
                pairs.append((ends[0], ends[1]))
                good = [at for at in good if at not in ends]
        with_good = min(len(suspects), len(good))
        pairs += zip(suspects[:with_good], good[:with_good], strict=True)
        rest = np.array([*suspects[with_good:], *good[with_good:]], dtype=np.int64)
        return [*pairs, *((int(a), int(b)) for a, b in random_pairs(rest, random))]

    def _round(self, stage: str, number: int, rounds: int, drawn: Pairs) -> None:
        """All parts of a round, of the nodes that have not answered yet."""
        with heartbeat.Wait(f"round {number + 1} of {rounds}"):
            pairs = self._open_pairs(stage, number, drawn)
            groups = self._shards(pairs, number)
            window = self.plan.window
            self._part(
                stage,
                number,
                "alone",
                groups,
                lambda ranks: {"op": "alone", "ranks": ranks, "seconds": window},
            )
            self._pairs(stage, number, pairs, groups)
            self._part(stage, number, "train", groups, lambda _ranks: {"op": "train", "barriers": BARRIERS})
        self._tell(f"round {number + 1} of {rounds} of {plural(len(self._alive()), 'node')}")

    def _open_pairs(self, stage: str, number: int, drawn: Pairs) -> Pairs:
        """The drawn pairs in which a node has not answered; nodes whose partner is lost are paired anew."""
        alive = set(self._alive())
        answered = self._journal.answered(stage, number, "pairs")
        open_nodes = {at for at in alive if self.plan.nodes[at] not in answered}
        kept, alone = Pairs(), list[int]()
        for pair in drawn:
            left = [at for at in pair if at in alive]
            if len(left) == 2 and open_nodes & {*pair}:
                kept.append(pair)
            elif len(left) == 1 and left[0] in open_nodes:
                alone += left
        return [*kept, *zip(alone[::2], alone[1::2], strict=False)]

    def _shards(self, pairs: Pairs, number: int) -> list[Shard]:
        """The nodes of each job: pairs are in one, drawn anew for each round."""
        alive = self._alive()
        nodes = self.plan.nodes
        if self.plan.shard == 1:
            return [(nodes[at],) for at in alive]
        if len(alive) <= self.plan.shard:
            return [tuple(nodes[at] for at in alive)]
        paired = {at for pair in pairs for at in pair}
        units: list[tuple[int, ...]] = [*pairs, *((at,) for at in alive if at not in paired)]
        order = self._random("shards", number).permutation(len(units))
        count = -(-len(alive) // (self.plan.shard - 1))
        shards: list[list[int]] = [[] for _ in range(count)]
        for at in order:
            min(shards, key=len).extend(units[at])
        return [tuple(nodes[at] for at in sorted(shard)) for shard in shards]

    def _pairs(self, stage: str, number: int, pairs: Pairs, groups: Sequence[Shard]) -> None:
        nodes = self.plan.nodes
        partners = {nodes[a]: nodes[b] for one, two in pairs for a, b in ((one, two), (two, one))}

        def request(job: Shard) -> dict[str, Any] | None:
            rank = {node: at for at, node in enumerate(job)}
            chosen = [
                [rank[node], rank[partner]]
                for node, partner in partners.items()
                if node in rank and partner in rank and rank[node] < rank[partner]
            ]
            size, window = self.plan.size, self.plan.window
            return {"op": "pairs", "pairs": chosen, "size": size, "seconds": window} if chosen else None

        self._ask(stage, number, "pairs", groups, request, partners)

    def _part(
        self,
        stage: str,
        number: int,
        part: str,
        groups: Sequence[Shard],
        request: Callable[[list[int]], dict[str, Any]],
    ) -> None:
        answered = self._journal.answered(stage, number, part)

        def of_job(job: Shard) -> dict[str, Any] | None:
            ranks = [rank for rank, node in enumerate(job) if node not in answered]
            return request(ranks) if ranks else None

        self._ask(stage, number, part, groups, of_job, {})

    def _ask(
        self,
        stage: str,
        number: int,
        part: str,
        groups: Sequence[Shard],
        request: Ask,
        partners: Mapping[str, str],
    ) -> None:
        """Asks, and writes down what came: values, what was learned of the nodes, and which were lost."""
        before, lost, start_time = set(self._jobs.names), set(self._jobs.lost), time.monotonic()
        bytes_before = self._jobs.facts_bytes
        answered = self._jobs.ask([one for one in groups if request(one) is not None], request)
        new = {node: name for node, name in self._jobs.names.items() if node not in before}
        if new:
            facts = {node: self._with_feature(node, self._jobs.facts[node]) for node in new}
            start = round(max(self._jobs.starts, default=0.0), 3)
            size = self._jobs.facts_bytes - bytes_before
            self._journal.add(SiteLine(number=0, names=new, facts=facts, start=start, bytes=size))
            self._check_names()
            self._check(self.names)
        gone = {node: why for node, why in self._jobs.lost.items() if node not in lost}
        if gone:
            self._journal.add(SiteLine(number=0, lost=gone))
            for node, why in gone.items():
                self._tell(f"lost: {self._jobs.names.get(node, node)}: {why}; the others go on")
        for node, text in answered.errors.items():
            self._tell(f"{self._jobs.names.get(node, node)}: {part}: {text}")
        if answered.values or answered.errors:
            self._journal.add(
                SiteLine(
                    number=0,
                    stage=stage,
                    round=number,
                    part=part,
                    values={node: tuple(values) for node, values in answered.values.items()},
                    partners={node: partners[node] for node in answered.values if node in partners},
                    errors=answered.errors,
                    bytes=answered.bytes,
                    seconds=round(time.monotonic() - start_time, 3),
                )
            )

    def _with_feature(self, node: str, facts: dict[str, str]) -> dict[str, str]:
        if not self.plan.features:
            return facts
        return {**facts, "feature": self._features[node]}

    def _check_names(self) -> None:
        """UsageError where two nodes say that they have one name."""
        names = Counter(known_names(self._journal.lines).values())
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise UsageError(
                "names two nodes", field="hosts", value=twice[0], hint="give each node a host name of its own"
            )

    def _bisect(self) -> None:
        """All pairs of both halves at once, both ways: what the whole machine moves."""
        if self.plan.shard == 1:
            self.notes.append("n/a: messages between nodes: the launcher starts no MPI job of several nodes")
            return
        alive = self._alive()
        half = len(alive) // 2
        pairs = list(zip(alive[:half], alive[half : 2 * half], strict=True))
        pairs = self._open_pairs("whole", 0, pairs)
        if pairs:
            with heartbeat.Wait("all pairs at once"):
                self._pairs("whole", 0, pairs, self._shards(pairs, ROUNDS))
        total = sum(
            values[2] or 0.0
            for line in self._journal.lines
            if line.stage == "whole"
            for values in line.values.values()
        )
        within = f" inside jobs of {self.plan.shard} nodes" if len(alive) > self.plan.shard else ""
        self.notes.append(f"All pairs of both halves at once move {shown(total)} MB/s{within}")

    def _corrector(
        self, suspicion: Suspicion
    ) -> Callable[[str, SiteLine, Mapping[str, float]], Mapping[str, float]]:
        """Removes from each round by what the nodes that are not suspected differ from the first rounds: the
        network or the power may be used otherwise meanwhile.
        """
        suspects = {self.plan.nodes[at] for at in suspicion.nodes}
        usual = {one.quantity.name: float(np.median(one.values)) for one in self._readings("first").readings}

        def correct(name: str, _line: SiteLine, values: Mapping[str, float]) -> Mapping[str, float]:
            others = [value for node, value in values.items() if node not in suspects]
            if len(others) < OTHERS or name not in usual:
                return values
            now = float(np.median(others))
            if QUANTITIES[name].additive:
                return {node: max(0.0, value - now + usual[name]) for node, value in values.items()}
            return {node: value * usual[name] / now for node, value in values.items()} if now > 0 else values

        return correct

    def _readings(self, stage: str, correct: Any = lambda _name, _line, values: values) -> SiteReadings:
        site = readings_of(self._journal.lines, self.plan.nodes, self.names, stage, correct=correct)
        return msgspec.structs.replace(site, switches=self._switches)


def _only(site: SiteReadings, suspicion: Suspicion) -> SiteReadings:
    """The values of suspects, and those between the switches of suspected paths."""
    readings = []
    for one in site.readings:
        keep = np.isin(one.nodes, np.array(suspicion.nodes, dtype=np.int64))
        if one.partners is not None and site.switches is not None:
            for first, second in suspicion.paths:
                ends = np.stack([site.switches[one.nodes], site.switches[one.partners]])
                keep |= (ends.min(axis=0) == min(first, second)) & (ends.max(axis=0) == max(first, second))
        partners = None if one.partners is None else one.partners[keep]
        readings.append(
            msgspec.structs.replace(one, nodes=one.nodes[keep], values=one.values[keep], partners=partners)
        )
    return msgspec.structs.replace(site, readings=tuple(readings))
