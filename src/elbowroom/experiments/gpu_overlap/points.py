"""The points of `gpu-overlap`: kernels of the device beside everything that moves bytes, or holds SMs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from elbowroom.experiments.common.accelerators import control, device_point, device_seats
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import node_pairs
from elbowroom.plan.file import Plan, Positive, Size
from elbowroom.points.gpu import GEMM, LAUNCHES, TRIAD_BYTES, Direction, GpuCase, Holders, Planned
from elbowroom.points.point import Expansion, Note, Point

Kernel = Literal["gemm", "triad", "chain"]
MoverName = Literal["h2d", "d2h", "both", "d2d", "sm_hbm", "sm_host", "sm_idle", "sm_target"]
Order = Literal["victim", "mover"]
Pace = Annotated[float, Meta(ge=0)]
Sms = Annotated[int, Meta(ge=1, le=1024)]

NODE_MOVERS = ("h2d", "d2h", "both", "sm_host")
"""Those with a pinned buffer."""


class OverlapKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`victims`: kernels of the device; `movers`: copies by copy engines (h2d, d2h, both, d2d), by SMs
    (sm_hbm, sm_host), SMs that are idle, and a product planned for all but k SMs; `sms`: k; `paces_mb_s` of
    copies by SMs, 0 as fast as they can; `orders`: which starts first. `holders`: SMs are held one by one
    (single), or in pairs; `plan_for`: a product beside them is planned for all SMs, or for the others.
    `copy_size` of a copy, `triad_bytes` of the triad's arrays, `gemm`: m, n and k of the
    product, `launches` of a chain.
    """

    victims: Annotated[tuple[Kernel, ...], Meta(min_length=1)] = ("gemm", "triad", "chain")
    movers: Annotated[tuple[MoverName, ...], Meta(min_length=1)] = (
        "h2d", "d2h", "both", "d2d", "sm_hbm", "sm_host", "sm_idle", "sm_target",
    )  # fmt: skip
    sms: Annotated[tuple[Sms, ...], Meta(min_length=1)] = (4, 8, 16, 20, 32)
    paces_mb_s: Annotated[tuple[Pace, ...], Meta(min_length=1)] = (0, 50000)
    orders: Annotated[tuple[Order, ...], Meta(min_length=1)] = ("victim", "mover")
    holders: Annotated[tuple[Holders, ...], Meta(min_length=1)] = ("single",)
    plan_for: Annotated[tuple[Planned, ...], Meta(min_length=1)] = ("all",)
    copy_size: Size = 64 << 20
    triad_bytes: Size = TRIAD_BYTES
    gemm: tuple[Positive, Positive, Positive] = GEMM
    launches: Positive = LAUNCHES


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Each victim beside each mover, for each k where it has SMs, in both orders of their start. A product
    planned for fewer SMs has no mover that could start first.
    """
    seats = device_seats(plan, machine, False)
    pairs, notes = node_pairs(plan, machine)
    comp_node = pairs[0][0]
    points: list[Point] = []
    for victim, mover in product(plan.keys.victims, plan.keys.movers):
        if mover == "sm_target" and victim != "gemm":
            continue
        nodes = tuple(dict.fromkeys(node for _, node in pairs)) if mover in NODE_MOVERS else (-1,)
        for node, case in product(nodes, _cases(plan.keys, victim, mover)):
            placed = msgspec.structs.replace(case, node=node, submit_core=seats.submit)
            points.append(device_point(plan, machine, placed, seats, comp_node=comp_node, size=placed.bytes))
    ends = control(plan, machine, seats, comp_node, plan.keys.copy_size)
    if not ends and plan.control:
        reason = "no computing core is left for prime counting"
        notes.append(Note(what="control on a core of the host", reason=reason))
    return Expansion(points=(*points, *ends), notes=tuple(notes))


def _cases(keys: OverlapKeys, victim: Kernel, mover: MoverName) -> Iterator[GpuCase]:
    for case in _movers(keys, victim, mover):
        for first in keys.orders if mover != "sm_target" else ("victim",):
            sizes = {"shape": keys.gemm, "victim_bytes": keys.triad_bytes, "launches": keys.launches}
            yield msgspec.structs.replace(case, first=first, **sizes)


def _movers(keys: OverlapKeys, victim: Kernel, mover: MoverName) -> Iterator[GpuCase]:
    if mover in ("h2d", "d2h", "both", "d2d"):
        yield GpuCase(victim=victim, mover="copy", direction=mover, bytes=keys.copy_size)
        return
    if mover == "sm_target":
        yield from (GpuCase(victim=victim, mover=mover, sms=k) for k in dict.fromkeys(keys.sms))
        return
    planned: tuple[Planned, ...] = keys.plan_for if victim == "gemm" else ("all",)
    ways = product(dict.fromkeys(keys.holders), dict.fromkeys(planned))
    for (holders, plan_for), k in product(ways, dict.fromkeys(keys.sms)):
        case = GpuCase(victim=victim, mover="sm_idle", sms=k, holders=holders, plan_for=plan_for)
        if mover == "sm_idle":
            yield case
            continue
        direction: Direction = "hbm" if mover == "sm_hbm" else "host"
        for pace in dict.fromkeys(keys.paces_mb_s):
            copies = {"mover": "sm_copy", "direction": direction, "bytes": keys.copy_size}
            yield msgspec.structs.replace(case, pace_mb_s=pace, **copies)
