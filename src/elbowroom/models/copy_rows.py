"""Copies between host and device beside computing cores or messages, as rows of loads: a stream of FLOW."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.models.gpu.case import LINKS
from elbowroom.models.gpu.samples import GpuWorkload
from elbowroom.models.load import Copy, Load, LoadRow, Messages
from elbowroom.models.run_data import Base, Layout, Setting, bus_scale, computing_groups, side_bandwidths
from elbowroom.plan.kernels import find
from elbowroom.points.streams import stream_of
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Side


def copy_rows(
    results: Sequence[PointResult], cores: Mapping[str, Sequence[int]], base: Base
) -> tuple[tuple[LoadRow, ...], dict[str, int]]:
    """Rows of the cases in which cores compute beside copies, or copies are beside messages, and how many
    could not be rows, by reason; cases whose victim computes on the accelerator are neither.

    `cores`: the computing cores of each point by its id.
    """
    rows, left_out = [], Counter[str]()
    for item in results:
        workload: Any = item.workload
        if not isinstance(workload, GpuWorkload) or workload.victim not in ("cores", "copy"):
            continue
        reason = _why_not(item, workload, base)
        if reason:
            left_out[reason] += 1
        elif workload.victim == "cores":
            pair = _beside_cores(item, workload, cores[item.id], base)
            rows += [pair, *_all_three(item, pair, base)]
        else:
            rows.append(_beside_messages(item, workload, base))
    return tuple(rows), dict(left_out)


def base_of(kernel: str, size: int, layout: Layout) -> Base:
    """What rows of copies are told relative to, of a model that was calibrated with that kernel and size."""
    setting = Setting(
        kernel=kernel,
        size=size,
        pattern="receive",
        cursor=1,
        comm_core=-1,
        comm_threads=1,
        processes="node",
        reuse="same",
        core_khz=None,
        uncore_khz=None,
    )
    return Base(setting=setting, layout=layout)


def _why_not(item: PointResult, workload: GpuWorkload, base: Base) -> str:
    if item.role != "point":
        return "control"
    if item.status != "ok":
        return f"status {item.status}"
    mover = "copy" if workload.victim == "cores" else "messages"
    if workload.mover != mover or workload.direction not in LINKS:
        return "no copy between host and device beside cores or messages"
    if _node(workload, base) is None:
        return "copies whose buffer is on no known node"
    if workload.victim == "cores":
        kernel = find(item.kernel)
        if kernel is not None and not kernel.moves_memory:
            return f"{item.kernel} moves no memory"
        if item.comp_node not in base.layout.nodes:
            return "a node that the machine does not have"
    elif item.comm_node not in base.layout.nodes:
        return "a node that the machine does not have"
    copies = item.comm if workload.victim == "cores" else item.comp
    if not all(side_bandwidths(copies, item.size)):
        return "no values"
    return ""


def _node(workload: GpuWorkload, base: Base) -> int | None:
    """The model's number of the buffer's node; on a machine with one it need not be named."""
    nodes = base.layout.nodes
    if workload.node in nodes:
        return nodes.index(workload.node)
    return 0 if workload.node == -1 and len(nodes) == 1 else None


def _copy(side: Side, workload: GpuWorkload, base: Base) -> tuple[Copy, float]:
    """The copy as it would be alone, and its rate beside the other side, MB/s."""
    alone, together = side_bandwidths(side, 0)
    node = _node(workload, base)
    assert alone is not None
    assert together is not None
    assert node is not None
    return Copy(node=node, demand=alone), together


def _beside_cores(item: PointResult, workload: GpuWorkload, cores: Sequence[int], base: Base) -> LoadRow:
    scale = bus_scale(item, base)
    comp = [None if value is None else value / scale for value in side_bandwidths(item.comp, item.size)]
    copy, together = _copy(item.comm, workload, base)
    return LoadRow(
        load=Load(computing=computing_groups(item, cores, base, scale), copies=(copy,)),
        comp_alone=comp[0],
        comp_together=comp[1],
        copies_together=(together,),
        kernel="" if item.kernel == base.setting.kernel else item.kernel,
        source=item.id,
    )


def _all_three(item: PointResult, pair: LoadRow, base: Base) -> list[LoadRow]:
    """The row of cores, copies and messages at once, where a point has them as streams."""
    streams = []
    for name in ("cores", "copies", "messages"):
        stream = stream_of(item.payload, name)
        beside = next((side for side in stream.beside if side.phase == "ABC"), None) if stream else None
        if stream is None or beside is None or item.comm_node not in base.layout.nodes:
            return []
        streams.append(side_bandwidths(Side(alone=stream.alone, together=beside.together), item.size))
    (_, comp), (_, copies), (alone, comm) = streams
    scale = bus_scale(item, base)
    size = None if item.size == base.setting.size else item.size
    messages = Messages(node=base.layout.nodes.index(item.comm_node), size=size)
    return [
        msgspec.structs.replace(
            pair,
            load=msgspec.structs.replace(pair.load, messages=messages),
            comp_together=None if comp is None else comp / scale,
            comm_alone=alone,
            comm_together=comm,
            copies_together=(copies,),
            source=f"{item.id} (all three)",
        )
    ]


def _beside_messages(item: PointResult, workload: GpuWorkload, base: Base) -> LoadRow:
    alone, comm = side_bandwidths(item.comm, item.size)
    copy, together = _copy(item.comp, workload, base)
    size = None if item.size == base.setting.size else item.size
    return LoadRow(
        load=Load(messages=Messages(node=base.layout.nodes.index(item.comm_node), size=size), copies=(copy,)),
        comm_alone=alone,
        comm_together=comm,
        copies_together=(together,),
        source=item.id,
    )
