"""The law of an accelerator: what a victim keeps, and what a mover reaches, alone and beside it.

Said exactly, so that another language computes the same (lib/predict): + - * / min max, floor, powers.
Parameters (PARAMETERS) are in capitals; S is the number of SMs. Of a case: k SMs, T tiles of the victim's
product (0: not known), pace (0: none), g what the victim moves to and from HBM alone if each array moves
once (MB/s).

SMs. The victim has n = S - k of them where it was planned so, n = max(1, S - HOLD k) where they are held
(by a mover that started first; HOLD LATE k where the victim did), else S. Its work takes
W(n) = QUANT whole(T / n) + (1 - QUANT) T / n waves, whole(x) = floor(x) + min(1, 10 (x - floor(x))): a last
wave of few tiles takes less than a whole one. Without tiles W(n) = 1 / n. The SMs leave it q = W(S) / W(n).

Mover, alone: a = min(pace, cap). cap = ENGINE of copies inside the device by an engine, LINK_direction_node
of copies between host and device, min(k SM_HBM, HBM / 2) of SMs that copy inside HBM, min(k SM_HOST, STORE)
of SMs that store to host memory. A byte takes c of HBM: 2 inside the device, else 1.

HBM. The victim asks for u = ISSUE (triad), u = TRAFFIC g / HBM (gemm), 0 (chain) times HBM; P = CORNER rounds
the corner between both limits, x0 = (1 + u^P)^(-1 / P). The mover gets

    m = min(c a / HBM, max(1 - u x0, w / (1 + w))),   w = ENGINE_WEIGHT, or SM_WEIGHT k / (S - k) of SMs,

so that m HBM / c is its rate together; x = (q^-P + (u / max(1 - m, 0.001))^P)^(-1 / P).

Stall. Stores of SMs to host memory, faster than its link takes them, fill queues that the victim's requests
wait in, each SM its own: o = k min(1, 10 max(0, d / STORE - 1)) with d = min(pace, k SM_HOST);
B = 1 + STALL_victim o^STALL_POWER.

Kept. Of gemm and triad x / (x0 B); of chain 1 / (1 + LAUNCH_ENGINE) beside copy engines, 1 / (1 + LAUNCH_SM)
beside movers on SMs, and that over B. Triad alone moves u HBM x0.

Sources: waves of tiles: NVIDIA, Deep Learning Performance, matrix multiplication background; SMs that are
held, and what a copied byte takes of HBM: the published table that docs/reference/gpu-models.md names; the
rest is of this project.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.flow.law import Array, Meaning
from elbowroom.models.gpu.case import LINKS, DeviceCase

LEAST_ROOM = 1e-3
"""Part of HBM that is left to the victim at least."""

RAMP = 10.0
"""A last wave takes its whole time from a tenth of its tiles on, and queues are full at a tenth more than the
link takes: without a ramp no slope leads over steps.
"""

PARAMETERS = (
    Meaning("hbm", "MB/s", "what the device's memory carries"),
    Meaning("issue", "1", "what a triad on all SMs asks for, over that"),
    Meaning("corner", "1", "how sharp the corner between SMs and memory is"),
    Meaning("traffic", "1", "bytes that a product moves over those of its matrices"),
    Meaning("quant", "1", "part of a product's time that is whole waves of tiles"),
    Meaning("hold", "1", "SMs that a victim loses for each one that is held"),
    Meaning("late", "1", "part of these that it loses where it started first"),
    Meaning("engine", "MB/s", "a copy engine inside the device"),
    Meaning("sm_hbm", "MB/s", "one SM that copies inside the device"),
    Meaning("sm_host", "MB/s", "one SM that stores to host memory"),
    Meaning("store", "MB/s", "all SMs that store to host memory"),
    Meaning("engine_weight", "1", "share of HBM of copies by an engine, over a victim's"),
    Meaning("sm_weight", "1", "share of HBM of an SM that copies, over an SM of the victim"),
    Meaning("stall_gemm", "1", "how stores of an SM that wait for their link slow down a product"),
    Meaning("stall_triad", "1", "how they slow down a triad"),
    Meaning("stall_chain", "1", "how they slow down launches"),
    Meaning("stall_power", "1", "power of the number of SMs whose stores wait"),
    Meaning("launch_engine", "1", "how much longer a launch takes beside copy engines"),
    Meaning("launch_sm", "1", "how much longer it takes beside movers on SMs"),
)
"""Beside these `link_DIRECTION_NODE` (MB/s): a copy between host and device, buffer pinned on that node."""


def link_name(direction: str, node: int) -> str:
    """The parameter of copies of that direction with a buffer on that node (-1: not known)."""
    return f"link_{direction}_{max(node, -1)}"


def meaning(name: str) -> Meaning:
    """Unit and text of a parameter."""
    for item in PARAMETERS:
        if item.name == name:
            return item
    _, direction, node = name.split("_")
    where = f", buffer on node {node}" if node != "-1" else ""
    return Meaning(name, "MB/s", f"copies {direction} alone{where}")


class Cases(msgspec.Struct, frozen=True, kw_only=True):
    """N cases as arrays (N,), of a device with `sms` SMs. `tiles`: 0 where not known; `traffic`: g; `link`:
    the name of each case's link, empty where it has none.
    """

    sms: int
    victim: tuple[str, ...]
    held: Array
    left: Array
    late: NDArray[np.bool_]
    count: Array
    tiles: Array
    traffic: Array
    pace: Array
    cost: Array
    kind: tuple[str, ...]
    link: tuple[str, ...]


def arrays(sms: int, cases: Sequence[DeviceCase], tiles: Sequence[float], traffic: Sequence[float]) -> Cases:
    """The cases as the law takes them."""
    held = [case.sms if case.mover in ("sm_copy", "sm_idle") else 0 for case in cases]
    kinds = [_kind(case) for case in cases]
    return Cases(
        sms=sms,
        victim=tuple(case.victim for case in cases),
        held=np.array(held, dtype=float),
        left=np.array([case.sms if case.planned else 0 for case in cases], dtype=float),
        late=np.array([case.first == "victim" for case in cases], dtype=bool),
        count=np.array(held, dtype=float),
        tiles=np.array(tiles, dtype=float),
        traffic=np.array(traffic, dtype=float),
        pace=np.array([case.pace_mb_s or math.inf for case in cases], dtype=float),
        cost=np.array([2.0 if kind in ("engine", "sm_hbm") else 1.0 for kind in kinds]),
        kind=tuple(kinds),
        link=tuple(
            link_name(case.direction, case.node) if kind == "link" else ""
            for case, kind in zip(cases, kinds, strict=True)
        ),
    )


def _kind(case: DeviceCase) -> str:
    """Which capacity limits the mover alone; empty where nothing moves."""
    if case.mover == "copy":
        return "link" if case.direction in LINKS else "engine"
    if case.mover == "sm_copy":
        return "sm_hbm" if case.direction == "hbm" else "sm_host"
    return "sm_idle" if case.mover == "sm_idle" else ""


class Rates(msgspec.Struct, frozen=True):
    """(D, N): what the victim keeps, MB/s of the mover alone and together (0 where nothing moves), and MB/s
    of a triad alone (0 of other victims).
    """

    kept: Array
    mover_alone: Array
    mover_together: Array
    triad_alone: Array


def rates(values: Mapping[str, Array], cases: Cases) -> Rates:
    """The law for D sets of parameters, each (D, 1) in `values`."""
    victim = np.array(cases.victim)
    kind = np.array(cases.kind)
    left = _sms_left(values, cases)
    alone, waiting = _mover(values, cases, kind)
    hbm, corner = values["hbm"], values["corner"]
    demand = np.where(victim == "triad", values["issue"], values["traffic"] * cases.traffic / hbm)
    demand = np.where(victim == "chain", 0.0, demand)
    full = (1 + demand**corner) ** (-1 / corner)
    of_sms = values["sm_weight"] * cases.count / np.maximum(cases.sms - cases.count, 1.0)
    weight = np.where(np.isin(kind, ("sm_hbm", "sm_host")), of_sms, values["engine_weight"])
    wanted = cases.cost * alone / hbm
    moved = np.minimum(wanted, np.maximum(1 - demand * full, weight / (1 + weight)))
    room = np.maximum(1 - moved, LEAST_ROOM)
    reached = (left**-corner + (demand / room) ** corner) ** (-1 / corner)
    on_sms = np.isin(kind, ("sm_hbm", "sm_host", "sm_idle"))
    launch = np.where(on_sms, values["launch_sm"], np.where(kind == "", 0.0, values["launch_engine"]))
    kept = np.where(victim == "chain", 1 / (1 + launch), reached / full)
    return Rates(
        kept=kept / _stall(values, victim, waiting),
        mover_alone=alone,
        mover_together=moved * hbm / cases.cost,
        triad_alone=np.where(victim == "triad", demand * hbm * full, 0.0),
    )


def _sms_left(values: Mapping[str, Array], cases: Cases) -> Array:
    """q: what its SMs leave to the victim."""
    lost = values["hold"] * cases.held * np.where(cases.late, values["late"], 1.0)
    remaining = np.maximum(cases.sms - cases.left - lost, 1.0)
    known = cases.tiles > 0
    tiles = np.where(known, cases.tiles, 1.0)

    def waves(sms: Array | float) -> Array:
        rounds = tiles / sms
        below = np.floor(rounds)
        whole = below + np.minimum(RAMP * (rounds - below), 1.0)
        some = values["quant"] * whole + (1 - values["quant"]) * rounds
        return np.where(known, some, 1 / np.asarray(sms, dtype=float))

    left: Array = waves(float(cases.sms)) / waves(remaining)
    return left


def _mover(values: Mapping[str, Array], cases: Cases, kind: NDArray[np.str_]) -> tuple[Array, Array]:
    """a, and o: SMs whose stores to host memory wait."""
    cap = np.zeros((len(values["hbm"]), len(kind)))
    cap = np.where(kind == "engine", values["engine"], cap)
    cap = np.where(kind == "sm_hbm", np.minimum(cases.count * values["sm_hbm"], values["hbm"] / 2), cap)
    stores = cases.count * values["sm_host"]
    cap = np.where(kind == "sm_host", np.minimum(stores, values["store"]), cap)
    for name in {name for name in cases.link if name}:
        cap = np.where(np.array([item == name for item in cases.link]), values[name], cap)
    beyond = np.maximum(np.minimum(cases.pace, stores) / values["store"] - 1, 0.0)
    waiting = cases.count * np.minimum(RAMP * beyond, 1.0)
    return np.minimum(cases.pace, cap), np.where(kind == "sm_host", waiting, 0.0)


def _stall(values: Mapping[str, Array], victim: NDArray[np.str_], waiting: Array) -> Array:
    """B: how much longer everything takes."""
    stall = np.where(
        victim == "gemm",
        values["stall_gemm"],
        np.where(victim == "triad", values["stall_triad"], values["stall_chain"]),
    )
    powers = np.where(waiting > 0, np.maximum(waiting, 1e-12) ** values["stall_power"], 0.0)
    slower: Array = 1 + stall * powers
    return slower
