"""A site that exists in numbers only, with faults that are planted: what `accept --virtual` examines.

Each value is the usual one, times what its node is better or worse for ever (normal, 0.2 to 1 %), times noise
of the round (normal), and sometimes a loss as by other traffic (exponential, in some of a hundred values).
The sizes are those of public tables of all pairs (`elbowroom help accept-method`). Nothing is measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec
import numpy as np

from elbowroom.accept.judgement import Suspicion
from elbowroom.accept.losses import as_loss
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import Floats, Ints, Readings, SiteReadings
from elbowroom.accept.rounds import draw_rounds
from elbowroom.errors import UsageError, closest
from elbowroom.quantities import parse_percent

PlantKind = Literal["memory-channel", "link", "governor", "neighbour", "bios", "cable", "half", "site"]
PLANTS: tuple[PlantKind, ...] = get_args(PlantKind)
MOST_NODES = 100_000
ROUNDS = 10
AGAIN = 24
"""Rounds of the first examination, and of what is measured again."""
WORST = 0.9


class PlantedFault(msgspec.Struct, frozen=True):
    """A fault: its kind, the node that has it (of a cable: a node of the first of its switches; of a half:
    any node of it), and what is lost, as a share; None: drawn.
    """

    kind: PlantKind
    node: int
    share: float | None = None


class _Level(msgspec.Struct, frozen=True):
    """Usual value of a quantity; deviations of nodes and of rounds; how often a value is disturbed, and the
    mean loss then.
    """

    usual: float
    nodes: float
    rounds: float
    often: float
    mean: float


LEVELS = {
    "memory": _Level(186_000.0, 0.003, 0.004, 0.02, 0.02),
    "memory-latency": _Level(96.0, 0.004, 0.006, 0.03, 0.03),
    "core": _Level(41_600.0, 0.002, 0.002, 0.01, 0.02),
    "cache": _Level(1_450_000.0, 0.004, 0.005, 0.02, 0.02),
    "message-rate": _Level(3.1, 0.006, 0.008, 0.03, 0.04),
    "slow-moments": _Level(0.004, 0.001, 0.002, 0.03, 0.02),
    "memory-beside": _Level(171_000.0, 0.004, 0.007, 0.04, 0.03),
    "latency": _Level(1.02, 0.01, 0.012, 0.06, 0.05),
    "bandwidth": _Level(12_060.0, 0.001, 0.004, 0.03, 0.02),
    "bandwidth-beside": _Level(10_150.0, 0.003, 0.008, 0.05, 0.03),
}
"""Of a site of two-socket nodes with one NIC of 100 Gbit/s."""

FACTS = {
    "processor": ("virtual, 2 x 32 cores", "virtual, 2 x 48 cores"),
    "memory": ("512 GiB", "768 GiB"),
    "governor": ("performance", "performance"),
    "bios": ("2.4", "2.4"),
    "kernel": ("6.1.0-28", "6.1.0-28"),
    "link": ("x16, 100 Gbit/s", "x16, 100 Gbit/s"),
}
"""Of the first kind of nodes, and of the second one."""
SECOND_KIND = {"memory": 0.86, "memory-beside": 0.86, "core": 1.0, "cache": 0.8, "memory-latency": 1.12}
"""Values of the second kind as a factor of the first one."""

_SPELLED = "write KIND:NODE or KIND:NODE:PERCENT, as link:12 or governor:5:7%"


def parse_plant(text: str, field: str = "plant") -> PlantedFault:
    """The fault of `memory-channel:37` or `governor:5:7%`."""
    kind, _, rest = text.partition(":")
    node, _, share = rest.partition(":")
    if kind not in PLANTS:
        raise UsageError("unknown fault", field=field, value=text, hint=closest(kind, PLANTS))
    if not re.fullmatch(r"[0-9]{1,6}", node):
        raise UsageError("names no node", field=field, value=text, hint=_SPELLED)
    size = parse_percent(share, field) if share else None
    if size is not None and not 0 < size <= WORST:
        raise UsageError("has an impossible size", field=field, value=text, hint="give 1 to 90 %")
    return PlantedFault(PLANTS[PLANTS.index(kind)], int(node), size)


class VirtualSite:
    """`count` nodes with these faults; `kinds`: 2 has every second rack with other processors and memory."""

    def __init__(
        self, count: int, plants: Sequence[PlantedFault] = (), *, seed: int = 1, kinds: int = 1
    ) -> None:
        if not 1 <= count <= MOST_NODES:
            hint = f"give 3 to {MOST_NODES} nodes"
            raise UsageError("is not a number of nodes", field="virtual", value=count, hint=hint)
        for plant in plants:
            if plant.node >= count:
                raise UsageError(
                    f"there is no node {plant.node}",
                    field="plant",
                    value=f"{plant.kind}:{plant.node}",
                    hint=f"nodes are numbered from 0 to {count - 1}",
                )
        self.count = count
        self._random = np.random.default_rng((seed, count))
        per_switch = int(np.clip(count // 4, 2, 32))
        self.switches: Ints = np.arange(count) // per_switch
        if count - int(self.switches[-1]) * per_switch < 2:
            self.switches[-1] = self.switches[-2] if count > 1 else 0
        self._kind: Ints = self.switches % 2 if kinds > 1 else np.zeros(count, dtype=np.int64)
        self._facts = {name: [values[kind] for kind in self._kind] for name, values in FACTS.items()}
        self._own = {
            name: self._random.normal(0.0, level.nodes, (2, count)) for name, level in LEVELS.items()
        }
        self._busy = np.zeros(count)
        self._paths: dict[tuple[int, int], float] = {}
        for name, factor in SECOND_KIND.items() if kinds > 1 else ():
            loss = -np.log(factor) if QUANTITIES[name].more_is_better else np.log(factor)
            self._own[name] += np.where(self._kind == 1, loss, 0.0)
        for plant in plants:
            self._plant(plant)

    def _plant(self, plant: PlantedFault) -> None:
        draw, node, share = self._random.uniform, plant.node, plant.share
        match plant.kind:
            case "memory-channel":
                channels = int(self._random.choice([4, 6, 8]))
                size = share or 1 / channels
                self._lose(node, size, "memory", "memory-beside")
                if draw() < 0.5:
                    self._facts["memory"][node] = f"{round(512 * (1 - size))} GiB"
            case "link":
                size = share or 0.5
                self._lose(node, size, "bandwidth", "bandwidth-beside")
                self._facts["link"][node] = "x8, 100 Gbit/s"
            case "governor":
                size = share or draw(0.15, 0.45)
                self._lose(node, size, "core", "cache")
                self._lose(node, 0.8 * size, "message-rate")
                self._lose(node, 0.4 * size, "latency", "memory-latency")
                self._lose(node, 0.2 * size, "memory", "memory-beside")
                self._facts["governor"][node] = "powersave"
            case "neighbour":
                self._busy[node] = share or draw(0.2, 0.5)
            case "bios":
                size = share or draw(0.05, 0.1)
                self._lose(node, size, "memory-latency", "memory", "memory-beside")
                self._lose(node, size / 2, "core")
                self._facts["bios"][node] = "1.9"
            case "cable":
                first = int(self.switches[node])
                others = [int(one) for one in np.unique(self.switches) if one != first]
                if not others:
                    hint = "give more nodes: 4 are on two switches"
                    raise UsageError("all nodes are on one switch", field="plant", value="cable", hint=hint)
                second = others[int(self._random.integers(len(others)))]
                path = min(first, second), max(first, second)
                self._paths[path] = as_loss(QUANTITIES["bandwidth"], share or draw(0.1, 0.5))
            case "half":
                half = np.arange(self.count) // ((self.count + 1) // 2)
                members = np.flatnonzero(half == half[node])
                self._lose(members, share or draw(0.05, 0.15), "memory", "memory-beside")
            case "site":
                self._lose(np.arange(self.count), share or draw(0.05, 0.1), "memory", "memory-beside")

    def _lose(self, nodes: int | Ints, share: float, *names: str) -> None:
        for name in names:
            self._own[name][:, nodes] += as_loss(QUANTITIES[name], share)

    def measure(self) -> SiteReadings:
        """ROUNDS rounds of all nodes, alone and in disjoint pairs."""
        pairs = np.concatenate(draw_rounds(self.switches, self.count, ROUNDS, self._random))
        return self._readings(np.tile(np.arange(self.count), ROUNDS), pairs)

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        """AGAIN rounds of what is suspected, with partners that are not."""
        nodes = np.array(suspicion.nodes, dtype=np.int64)
        good = np.setdiff1d(np.arange(self.count), nodes)
        if not len(good):
            good = np.arange(self.count)
        partners = self._random.choice(good, (AGAIN, len(nodes)))
        pairs = [np.stack([np.broadcast_to(nodes, partners.shape).ravel(), partners.ravel()], axis=1)]
        for first, second in suspicion.paths:
            sides = [np.setdiff1d(np.flatnonzero(self.switches == one), nodes) for one in (first, second)]
            if all(map(len, sides)):
                ends = [self._random.choice(side, AGAIN // 2) for side in sides]
                pairs.append(np.stack(ends, axis=1))
        drawn = np.concatenate(pairs)
        return self._readings(np.tile(nodes, AGAIN), drawn[drawn[:, 0] != drawn[:, 1]])

    def _readings(self, nodes: Ints, pairs: Ints) -> SiteReadings:
        """Values of the nodes, shape (m,), and both ways of the pairs, shape (p, 2)."""
        senders, receivers = np.concatenate([pairs, pairs[:, ::-1]]).T
        readings = []
        for name, level in LEVELS.items():
            quantity = QUANTITIES[name]
            if quantity.between:
                losses = self._own[name][0, senders] + self._own[name][1, receivers]
                losses += self._noise(level, len(senders))
                losses += self._of_paths(name, senders, receivers)
                losses += self._neighbours(senders) + self._neighbours(receivers)
                index, partners = np.ascontiguousarray(senders), np.ascontiguousarray(receivers)
            else:
                index, partners = nodes, None
                losses = self._own[name][0, nodes] + self._noise(level, len(nodes))
                if quantity.additive:
                    busy = np.where(self._busy[nodes] > 0, 0.1, 0.0)
                    losses += busy * self._random.normal(1.0, 0.2, len(nodes))
                else:
                    losses += 0.1 * self._busy[nodes] * self._random.uniform(0.5, 1.5, len(nodes))
            if quantity.additive:
                values = np.clip(level.usual + losses, 0.0, 1.0)
            else:
                values = level.usual * np.exp(-losses if quantity.more_is_better else losses)
            readings.append(Readings(quantity=quantity, nodes=index, values=values, partners=partners))
        # Views of the same index arrays are laid out once.
        pairs_of = [one for one in readings if one.partners is not None]
        shared = [
            msgspec.structs.replace(one, nodes=pairs_of[0].nodes, partners=pairs_of[0].partners)
            if one.partners is not None
            else one
            for one in readings
        ]
        return SiteReadings(
            nodes=tuple(f"n{number}" for number in range(self.count)),
            readings=tuple(shared),
            switches=self.switches,
            facts={name: tuple(values) for name, values in self._facts.items()},
        )

    def _noise(self, level: _Level, size: int) -> Floats:
        noise = self._random.normal(0.0, level.rounds, size)
        disturbed = np.flatnonzero(self._random.random(size) < level.often)
        noise[disturbed] += self._random.exponential(level.mean, len(disturbed))
        return noise

    def _of_paths(self, name: str, senders: Ints, receivers: Ints) -> Floats:
        losses = np.zeros(len(senders))
        if name == "latency":
            return losses
        first, second = self.switches[senders], self.switches[receivers]
        for (one, other), loss in self._paths.items():
            losses[((first == one) & (second == other)) | ((first == other) & (second == one))] += loss
        return losses

    def _neighbours(self, nodes: Ints) -> Floats | float:
        if not self._busy.any():
            return 0.0
        return np.where(self._random.random(len(nodes)) < 0.1, self._busy[nodes], 0.0)
