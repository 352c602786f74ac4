"""What if a profiled program ran with fewer cores, with its data near the NIC, or without overlap?

A profile gives how long a job computes, is on the network, and does both at once; a model of the machine
gives the bandwidths of both sides, alone and together, now and then. On each node
    computation C, network N, both at once B: time T = C + N - B + R,
where R is the rest: waiting and calls. What both sides do is W = (C - B) alone + B together, with the
bandwidths of now. With those of then it takes C' and N', of which B' is the same share of what could
overlap, min(C', N'), or 0 without overlap.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import msgspec
import numpy as np

from elbowroom import display
from elbowroom.advise.job import JobStep, Setup
from elbowroom.advise.setups import load_of, refuse
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS, Shape
from elbowroom.models.document import Document
from elbowroom.models.load import NORMAL_90
from elbowroom.models.predict import FittedModel
from elbowroom.profile.analysis import Analysis, Floats
from elbowroom.profile.spans import union
from elbowroom.quantities import plural
from elbowroom.stats.interval import Interval


class NodeTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the mean rank of a node: computing, with a message on the network, both, and in all."""

    computation: float
    network: float
    both: float
    total: float

    @property
    def share(self) -> float:
        """The share of what could overlap that did."""
        possible = min(self.computation, self.network)
        return self.both / possible if possible > 0 else 0.0


class PairBandwidths(msgspec.Struct, frozen=True, kw_only=True):
    """Of computation and messages, alone and together, in one unit; numbers, or (D,) of each draw."""

    comp_alone: Floats
    comm_alone: Floats
    comp_together: Floats
    comm_together: Floats


def node_times(analysis: Analysis, begin: float = 0.0, end: float | None = None) -> list[NodeTimes]:
    """The times of each node's mean rank, between two times (s): all by default."""
    profile, calls = analysis.profile, analysis.in_mpi
    end = analysis.duration if end is None else end
    spans = analysis.on_network
    spans = union(spans.group, np.clip(spans.begin, begin, end), np.clip(spans.end, begin, end))
    length = spans.end - spans.begin
    outside = length - calls.covered(spans.group, spans.begin, spans.end)
    result = []
    for node in range(profile.nodes):
        ranks = np.array([rank.rank for rank in profile.ranks if rank.node == node], dtype=np.int64)
        mine = profile.nodes_of[spans.group] == node
        count = max(1, len(ranks))
        inside = calls.covered(ranks, np.full(len(ranks), begin), np.full(len(ranks), end))
        result.append(
            NodeTimes(
                computation=max(end - begin - float(inside.sum()) / count, 0.0) if len(ranks) else 0.0,
                network=float(length[mine].sum()) / count,
                both=max(float(outside[mine].sum()), 0.0) / count,
                total=end - begin,
            )
        )
    return result


def changed_time(
    times: NodeTimes, now: PairBandwidths, then: PairBandwidths, *, overlaps: bool = True
) -> Floats:
    """The node's time (s) with the bandwidths of `then`, for each draw; `overlaps`: both sides still do.

    UsageError for a bandwidth that is not above 0.
    """
    for name in PairBandwidths.__struct_fields__:
        for values in (getattr(now, name), getattr(then, name)):
            if not (np.all(np.asarray(values) > 0) and np.all(np.isfinite(values))):
                raise UsageError(
                    "is not a bandwidth", field=name, value=float(np.min(values)), hint="give a positive one"
                )
    both = times.both
    computed = (times.computation - both) * now.comp_alone + both * now.comp_together
    moved = (times.network - both) * now.comm_alone + both * now.comm_together
    rest = times.total - (times.computation + times.network - both)
    share = times.share if overlaps else 0.0
    # All of the shorter side could overlap: first as if that were the computation, then as if the messages.
    computing = computed / ((1 - share) * then.comp_alone + share * then.comp_together)
    beside = share * computing
    network = (moved - beside * then.comm_together) / then.comm_alone + beside
    moving = moved / ((1 - share) * then.comm_alone + share * then.comm_together)
    beside_messages = share * moving
    computation = (computed - beside_messages * then.comp_together) / then.comp_alone + beside_messages
    total = np.where(
        computing <= network,
        computing + network - beside,
        computation + moving - beside_messages,
    )
    result: Floats = total + rest
    return result


class ChangeEffect(msgspec.Struct, frozen=True, kw_only=True):
    """One change: the program's time with it, s, and relative to now (-0.1: 10 % shorter), with 90 %
    intervals of the model; None, with the `reason`, where that cannot be answered.
    """

    name: str
    then_s: Interval | None = None
    change: Interval | None = None
    reason: str = ""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What `profile what-if --json` prints: the time now of all `steps` (0: none were found, and it is that
    of the program), and of the node that decides, `node`, the mean rank's times of computation, messages and
    both at once, s.
    """

    schema: str = "elbowroom/what-if"
    version: int = 1
    profile: str
    model: str
    steps: int
    now_s: float
    node: str
    computation_s: float
    network_s: float
    both_s: float
    changes: tuple[ChangeEffect, ...]

    def __repr__(self) -> str:
        return f"WhatIf(profile={self.profile!r}, model={self.model!r})"

    __str__, _repr_html_ = display.text, display.html


Key = tuple[str, Hashable]


class _Keyed(PairBandwidths, frozen=True, kw_only=True):
    """Bandwidths that know what they belong to: alone to cores or messages, together to the load."""

    keys: tuple[Key, ...] = ()


def _shifted(bandwidths: PairBandwidths, key: Key, error: float) -> PairBandwidths:
    """With that error of the bandwidth that belongs to `key`, if it has it."""
    if not isinstance(bandwidths, _Keyed) or key not in bandwidths.keys:
        return bandwidths
    return msgspec.structs.replace(bandwidths, **{key[0]: getattr(bandwidths, key[0]) * np.exp(error)})


class _ProgramOnNode(NamedTuple):
    """A program on one node of a machine."""

    model: Document
    times: NodeTimes
    now: Setup
    size: int | None

    def bandwidths(self, setup: Setup) -> tuple[_Keyed, dict[Key, float]]:
        """Of a setup: for each draw, and the relative standard deviations of what the model cannot follow, by
        what each bandwidth belongs to.
        """
        load = load_of(msgspec.structs.replace(setup, size=self.size), JobStep(comm_bytes=1.0))
        draws = FittedModel(self.model).draws([load])
        streams = {stream: getattr(draws, stream)[:, 0] for stream in STREAMS}
        discrepancy = np.asarray(draws.discrepancy, dtype=float).reshape(4, -1)[:, 0]
        keys = tuple(zip(STREAMS, (load.computing, load.messages, load, load), strict=True))
        return _Keyed(**streams, keys=keys), dict(zip(keys, discrepancy.tolist(), strict=True))


def usual_size(analysis: Analysis) -> int:
    """The message size with most bytes."""
    sent = analysis.network.bytes[analysis.network.out]
    if not len(sent) or sent.sum() == 0:
        raise UsageError(
            "has no communication",
            field="profile",
            value=analysis.profile.folder,
            hint="what changes for such a program does not depend on messages",
        )
    sizes, counts = np.unique(sent, return_counts=True)
    return int(sizes[np.argmax(sizes * counts)])


def present_setup(cores: int, comp_node: int, comm_node: int, shape: Shape) -> Setup:
    """How the program ran: cores that the first socket lacks are on the second one."""
    first = min(cores, shape.cores_first_socket)
    now = Setup(
        cores=first, cores_other=cores - first, comp_node=comp_node, comm_node=comm_node, overlap=False
    )  # fmt: skip
    refuse(now, JobStep(comm_bytes=1.0), shape)
    return now


def changes_of(
    times: NodeTimes, now: Setup, model: Document, *, size: int | None = None, fewer_cores: int | None = None
) -> tuple[ChangeEffect, ...]:
    """The changes of a program with these times that runs as `now` says, with messages of `size` (None: the
    model's).
    """
    case = _ProgramOnNode(model, times, now, size)
    return (*_fewer(case, fewer_cores), _near(case), _without_overlap(case))


def _fewer(case: _ProgramOnNode, given: int | None) -> tuple[ChangeEffect, ...]:
    """With fewer computing cores: bound by memory as the model's kernel is, and by the cores."""
    cores, fewer = case.now.cores + case.now.cores_other, given or 1
    name = f"{plural(fewer, 'computing core')} fewer"
    if fewer >= cores:
        reason = f"{cores} core{'s compute' if cores > 1 else ' computes'} now"
        if given is None:
            return (ChangeEffect(name=name, reason=f"{reason} (--cores N says how many)"),)
        raise UsageError(
            f"is too many: {reason}", field="fewer_cores", value=fewer, hint="give fewer, or --cores N"
        )
    other = max(case.now.cores_other - fewer, 0)
    then = msgspec.structs.replace(case.now, cores=cores - fewer - other, cores_other=other)
    share = (cores - fewer) / cores
    return (
        _changed(case, f"{name}, bound by memory", then),
        # What the cores bound does not depend on messages, and slows none.
        _change(case, f"{name}, bound by the cores", _plain(1.0), _plain(share), {}),
    )


def _plain(comp: float) -> PairBandwidths:
    """Of a computation that shares nothing with messages."""
    comp_rate, comm_rate = np.array([comp]), np.array([1.0])
    return PairBandwidths(
        comp_alone=comp_rate, comm_alone=comm_rate, comp_together=comp_rate, comm_together=comm_rate
    )


def _near(case: _ProgramOnNode) -> ChangeEffect:
    name, nic = "messages' data near the NIC", case.model.machine.nic_node
    if nic is None:
        return ChangeEffect(name=name, reason="the model does not know the NUMA node of the NIC")
    if nic == case.now.comm_node:
        return ChangeEffect(name=name, reason=f"it is: node {nic}")
    return _changed(case, f"{name} (node {nic})", msgspec.structs.replace(case.now, comm_node=nic))


def _without_overlap(case: _ProgramOnNode) -> ChangeEffect:
    return _changed(case, "without overlap", case.now, overlaps=False)


def _changed(case: _ProgramOnNode, name: str, setup: Setup, *, overlaps: bool = True) -> ChangeEffect:
    """With another setup; n/a where the model has no answer for it."""
    try:
        (now, errors), (then, other) = case.bandwidths(case.now), case.bandwidths(setup)
    except UsageError as error:
        return ChangeEffect(name=name, reason=error.message)
    return _change(case, name, now, then, errors | other, overlaps=overlaps)


def _change(
    case: _ProgramOnNode,
    name: str,
    now: PairBandwidths,
    then: PairBandwidths,
    errors: dict[Key, float],
    *,
    overlaps: bool = True,
) -> ChangeEffect:
    """Row 0 of the draws is the best fit. What the model cannot follow is an error of each bandwidth by
    itself; those that both setups share have one error.
    """
    logs = np.log(changed_time(case.times, now, then, overlaps=overlaps))
    variance = float(np.var(logs[1:])) if len(logs) > 1 else 0.0
    for key, error in errors.items():
        shifted = (_shifted(one, key, error) for one in (now, then))
        variance += float(np.log(changed_time(case.times, *shifted, overlaps=overlaps))[0] - logs[0]) ** 2
    half = NORMAL_90 * np.sqrt(variance)
    low, value, high = (float(np.exp(logs[0] + sign * half)) for sign in (-1, 0, 1))
    total = case.times.total
    return ChangeEffect(
        name=name,
        then_s=Interval(value=value, low=low, high=high),
        change=Interval(value=value / total - 1, low=low / total - 1, high=high / total - 1),
    )
