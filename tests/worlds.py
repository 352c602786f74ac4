"""For each paper: worlds with its numbers, worlds with the opposite, and worlds of noise.

A statement must be confirmed in one of the first, refuted in one of the second, and undecided in one of the
last. Where a paper contradicts itself (Tan and Jarvis: the averages of section 3.3 and the second
observation), where the opposites of two statements exclude each other, or where noise that hides one effect
cannot hide another one, a paper has several worlds of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

import planted
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.virtual.effects import at
from papers import World, unchanged


@dataclass(frozen=True)
class Worlds:
    """Those of a paper by kind."""

    paper: Mapping[str, World]
    opposite: Mapping[str, World]
    noise: Mapping[str, World]


# Denis et al. (2021): frequencies of sections 3.1 to 3.3 of henri, and bora of the thesis (5.2.2).
LOW = 2_000_000
"""kHz: the lower of the two constant frequencies is below it."""

BORA: planted.Effect = {
    "of": ["prime"], "metric": "bandwidth", "comm": [[1, 1.0038]],
    "comp": [[1, 1], [18, 1], [19, 0.775], [35, 0.775]],
}  # fmt: skip

TURBO_ONLY: planted.Effect = {
    "of": ["prime"], "comm": [[1, 0.8]], "comp": [[1, 1]], "comp_alone": [[4, 1.0], [20, 0.643]],
}  # fmt: skip
"""More cores compute slower, with messages and without them: no interference with computation."""


def faster(phase: str, role: str) -> float:
    """Cores that sleep are slow; those that compute make all cores faster on average (Fig. 2)."""
    return {"communication": 2500.0, "computing": 3000.0}.get(role, 1000.0)


def slower(phase: str, role: str) -> float:
    """Computation slows all cores down, the communication core as well."""
    return 1800.0 if phase == "AB" else 2500.0


DENIS = World(
    effects=[*planted.DENIS2021, BORA],
    latency=lambda core, uncore: (3.1 if core < LOW else 1.8) * (1.05 if uncore < LOW else 1.0),
    bandwidth=lambda core, uncore: 10_100.0 if uncore < LOW else 10_500.0,
    mhz={"prime": faster, "fma": faster},
)
DENIS_OPPOSITE = World(
    effects=[*planted.OPPOSITE, TURBO_ONLY],
    near=1.67,
    far=1.39,
    latency=lambda core, uncore: (1.8 if core < LOW else 3.1) * (1.4 if uncore < LOW else 1.0),
    bandwidth=lambda core, uncore: (6e3 if core < LOW else 9e3) * (1.1 if uncore < LOW else 1.0),
    mhz={"prime": slower, "fma": slower},
)
HIDDEN: list[planted.Effect] = [
    {"of": ["copy", "triad", "prime", "fma", "memset_nt"], "comm": [[1, 0.9]], "comp": [[1, 0.97]]},
    {"of": ["triad_cursor"], "comm": [[0.1, 0.6], [1, 0.9]], "over": "intensity", "comp": [[1, 0.97]]},
    {"of": ["overhead", "polling", "paused"], "added": [[1, 0]]},
    {"of": ["cg", "gemm"], "comm": [[1, 0.6]], "comp": [[1, 1]], "stalled": [[1, 0.4]]},
]
"""Small effects, the same everywhere, that noise hides."""

WILD = World(
    effects=HIDDEN, near=1.5, far=1.5, mhz={"prime": unchanged, "fma": unchanged}, complete=0.97, noise=2.0
)
DENIS_NOISE = {"wild": WILD, "wide": replace(WILD, noise=0.4)}

# Tan, Jarvis (2012). The paper's averages contradict its second observation, so that has a world of its own.
TAN = World(effects=planted.TAN2012, near=0.45, far=0.45)
HARMFUL: list[planted.Effect] = [
    {"of": ["receiver"], "over": "bytes", "spread": 0.9, "comm": [[0, 1], [4000000, 0.2]]},
    {"of": ["sender"], "over": "bytes", "spread": 0.05, "comm": [[0, 1], [4000000, 0.5]]},
]
TAN_OPPOSITES = {
    "flat": World(effects=planted.TAN2012_OPPOSITE, near=0.45, far=0.45),
    "receiver": World(effects=planted.TAN2012_OTHER_OPPOSITE, near=0.45, far=0.45),
    "sender": World(effects=planted.TAN2012, near=0.45, far=0.45),
}


def scattered(who: str, seed: int, spread: float) -> planted.Effect:
    """What a side keeps of its speed after each 20 kB more says nothing of what it keeps after others; misses
    are related to it, but not closely.
    """
    rng = np.random.default_rng(seed)
    kept = np.clip(np.exp(rng.normal(0, 0.8, 220)), 0.05, 9.0)

    def curve(values: np.ndarray) -> list[list[float]]:
        return [[20_000.0 * index, float(value)] for index, value in enumerate(values)]

    misses = {level: curve(np.exp(rng.normal(0, 0.3, 220)) / kept) for level in ("L1", "L2", "L3")}
    return {"of": [who], "over": "bytes", "spread": spread, "comm": curve(kept), "misses": misses}


TAN_NOISE = {
    "sides": World(effects=[scattered("receiver", 0, 0.5), scattered("sender", 1, 0.5)], near=0.45, far=0.45),
    "bystanders": World(effects=[scattered("bystanders", 2, 0.02)], near=0.45, far=0.45),
}

# Langguth et al. (2018): Fig. 2, and the last three rows of Table II on 2, 4 and 8 nodes; us.
TABLE_2 = {2: (7570.0, 330.0, 1.064), 4: (3480.0, 240.0, 1.102), 8: (1710.0, 200.0, 1.139)}
"""T_M, T_N and the measured step over the predicted one, on 64, 128 and 256 nodes of the paper."""

COMPUTING = 17
"""Computing cores of the solver, and of its benchmark: those of a socket less one."""


def predicted(nodes: int) -> float:
    """The step that the model predicts, from the loss ratios that are planted."""
    [effect] = planted.LANGGUTH2018
    kept = [at(tuple(map(tuple, effect[side])), COMPUTING) for side in ("comp", "comm")]  # type: ignore[arg-type, call-overload]
    t_comp, t_comm, _ = TABLE_2[nodes]
    return OverlappedStep(t_comp=t_comp, t_comm=t_comm, l_comp=1 / kept[0], l_comm=1 / kept[1]).total


def paper_step(variant: str, nodes: int, threads: int) -> float:
    """As measured in the paper: the model is off by Table II's errors, and a second thread changes little."""
    t_comp, t_comm, error = TABLE_2[nodes]
    overlapped = predicted(nodes) * error
    return {
        "none": t_comp,
        "communication": t_comm / threads,
        "apart": 1.01 * overlapped,
        "overlap": overlapped * (0.99 if threads > 1 else 1.0),
    }[variant]


def opposite_step(variant: str, nodes: int, threads: int) -> float:
    """The exchange takes longer on more nodes and costs less of a step; a second thread and overlapping make
    it much faster; the model is off by 60 %.
    """
    t_comp, _, _ = TABLE_2[nodes]
    overlapped = t_comp * (1.6 + 1.0 / nodes)
    return {
        "none": t_comp,
        "communication": 100.0 * nodes,
        "apart": 1.4 * overlapped,
        "overlap": overlapped * (0.7 if threads > 1 else 1.0),
    }[variant]


UNLIKE: planted.Effect = {"of": ["triad"], "thread": "near", "comm": [[1, 0.2]], "comp": [[1, 1.0]]}
"""One process per socket communicates from near the NIC, one per node from far away."""

ABRUPT: planted.Effect = {"of": ["triad"], "comm": [[1, 1], [20, 1], [21, 0.3], [35, 0.2]], "comp": [[1, 1]]}

LANGGUTH = World(effects=planted.LANGGUTH2018, step=paper_step)
LANGGUTH_OPPOSITES = {
    "nothing": World(effects=[*planted.LANGGUTH2018_OPPOSITE, UNLIKE], step=opposite_step),
    "abrupt": World(effects=[ABRUPT], step=paper_step),
}
LANGGUTH_NOISE = {
    name: World(
        effects=[{"of": ["triad"], "comm": [[1, comm]], "comp": [[1, comp]]}],
        step=lambda variant, nodes, threads: 300.0 if variant == "communication" else 2000.0,
        noise=noise,
    )
    for name, comm, comp, noise in (("wild", 0.7, 0.9, 2.0), ("wide", 0.55, 0.97, 0.4))
}

# Swartvagher (2022): chapters 4 and 6; chapter 5 is that of Denis et al.
WAYS = ("binomial", "binary", "two")
GAINS = {("cholesky", way): 1.3 for way in WAYS} | {
    ("qr", "binary"): 7,
    ("qr", "binomial"): 5,
    ("qr", "two"): 6,
}
BILLY: list[planted.Effect] = [{"of": ["memset_nt"], "comm_factor": 1 / 1.0953, "comp_factor": 1 / 1.0369}]
"""Errors of the model as those of billy, the thesis' worst (Table 6.1: 9.53 and 3.69 %, 6.61 % in all)."""

SWARTVAGHER = {"published": World(gains=GAINS, complete=0.98), "billy": World(effects=BILLY, gains=GAINS)}
STARVED: list[planted.Effect] = [{"of": ["memset_nt"], "comm": [[1, 1], [18, 0.02]], "comp": [[1, 0.8]]}]
ELSEWHERE: list[planted.Effect] = [
    {
        "of": ["memset_nt"],
        "comp_node": comp,
        "comm_node": comm,
        "comm": [[1, 1], [18, kept]],
        "comp": [[1, 1]],
    }
    for comp, comm, kept in ((0, 0, 0.9), (1, 1, 0.9), (0, 1, 0.3), (1, 0, 0.3))
]
SWARTVAGHER_OPPOSITES = {
    "no gain": World(complete=0.9),
    "starved": World(effects=STARVED),
    "elsewhere": World(effects=ELSEWHERE),
}

ALL = {
    "denis2021": Worlds(
        paper={"paper": DENIS},
        opposite={"opposite": DENIS_OPPOSITE, "other": World(effects=planted.OTHER_OPPOSITE)},
        noise=DENIS_NOISE,
    ),
    "tan2012": Worlds(
        paper={"averages": TAN, "observation": World(effects=HARMFUL, near=0.45, far=0.45)},
        opposite=TAN_OPPOSITES,
        noise=TAN_NOISE,
    ),
    "langguth2018": Worlds(paper={"paper": LANGGUTH}, opposite=LANGGUTH_OPPOSITES, noise=LANGGUTH_NOISE),
    "swartvagher2022": Worlds(paper=SWARTVAGHER, opposite=SWARTVAGHER_OPPOSITES, noise=DENIS_NOISE),
}
