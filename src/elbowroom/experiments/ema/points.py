"""Extraneous memory accesses: what memory that no message is in, touched between two messages, does to the
next one (Tan and Jarvis 2012).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Annotated

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import point_of
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, node_pairs
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan, Positive, Size, SizeOrNone
from elbowroom.points import accesses
from elbowroom.points.accesses import Access, BystanderKind, Data, ExtraneousAccesses, Timing, Who
from elbowroom.points.point import Expansion, Note, Phase, Point
from elbowroom.quantities import format_size

PHASES: tuple[Phase, ...] = ("B", "AB")
"""Messages without accesses and after them, interleaved."""

MOST_WINDOWS = 10_000
"""Of one case; a report of more points is not read, and measuring them takes days."""


class EmaKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`who` accesses memory, how (`access`), how much (`accesses`: the least, if not 0, and the most, every
    `access_step` bytes, in windows of `window_sizes` sizes), `data` of the messages, `barrier` before each,
    and `exchanges` timed for each size, `timing` by which time; `bystanders`: threads or processes.
    """

    who: Annotated[tuple[Who, ...], Meta(min_length=1)] = ("sender", "receiver", "both", "bystanders")
    access: Annotated[tuple[Access, ...], Meta(min_length=1)] = ("write",)
    accesses: Annotated[tuple[SizeOrNone, ...], Meta(min_length=1, max_length=2)] = (0, 4_000_000)
    access_step: Size = 400
    window_sizes: Positive = 100
    data: Annotated[tuple[Data, ...], Meta(min_length=1)] = ("same",)
    barrier: Annotated[tuple[bool, ...], Meta(min_length=1)] = (True,)
    exchanges: Positive = 20
    timing: Annotated[tuple[Timing, ...], Meta(min_length=1)] = ("one-way",)
    bystanders: Annotated[tuple[BystanderKind, ...], Meta(min_length=1)] = ("threads",)

    @property
    def ends(self) -> tuple[int, int]:
        """The fewest and the most bytes."""
        return (0, *self.accesses)[-2], self.accesses[-1]


class PairSeats(msgspec.Struct, frozen=True, kw_only=True):
    """Cores of the sender and the receiver, and those left for bystanders, nearest first."""

    sender: int
    receiver: int
    left: tuple[int, ...]


def expand(plan: Plan, machine: Machine) -> Expansion:
    """A point for each window of sizes of every who, access, data, barrier and message size, and the
    register-only control; notes where there are no caches, a clock too many, no core left for bystanders.
    """
    control = _control(plan, machine) if plan.control else ()
    if machine.hosts > 1 and not machine.virtual:
        reason = f"one-way times need one clock, which {machine.hosts} hosts do not share (--launcher local)"
        note = Note(what="extraneous accesses", reason=reason)
        return Expansion(points=control, notes=(note,))
    accesses.fits(1, plan.keys.ends[1], machine)
    seats = _seats(plan, machine)
    nodes, notes = node_pairs(plan, machine)
    points: dict[str, Point] = {}
    for item in _points(plan, seats, nodes):
        if isinstance(item, Note):
            notes.append(item)
        else:
            points.setdefault(item.id, item)
    if not points:
        raise UsageError(
            f"cannot be measured here: {notes[0].reason}",
            field="who",
            value=",".join(plan.keys.who),
            hint="choose among none, sender, receiver, both",
        )
    once = {note.what: note for note in notes}
    return Expansion(points=(*points.values(), *control), notes=tuple(once.values()))


def _control(plan: Plan, machine: Machine) -> tuple[Point, ...]:
    """Prime counting on all cores beside the largest message: shows whether the machine was quiet (method.md,
    rule 15); the messages without accesses show it for what they share with those after accesses.
    """
    usual = msgspec.structs.replace(
        plan, kernels=("prime",), n=("all",), sizes=(max(plan.sizes),), sweeps=(), control=False
    )
    first = multiply(usual, machine).points[:1]
    return tuple(msgspec.structs.replace(point, role="control") for point in first)


def _seats(plan: Plan, machine: Machine) -> PairSeats:
    """Two cores, one for each process."""
    cores = placement.usable(machine)
    if len(cores) < 2:
        raise UsageError(
            "sender and receiver need a core each",
            field="cpuset",
            value=[core.number for core in cores],
            hint="allow at least two cores",
        )
    sender = _sender(plan, machine)
    near = placement.downwards(cores, sender)
    named = set(plan.comp_cores)
    if plan.peer_core is not None:
        receiver = plan.peer_core
    else:
        receiver = next((core for core in near[1:] if core not in named), near[1])
    if receiver == sender:
        raise UsageError(
            "is also the sender's core; two processes on one core would measure the scheduler",
            field="peer_core",
            value=receiver,
            hint="choose another core, or leave it out",
        )
    left = plan.comp_cores or tuple(core for core in near if core not in (sender, receiver))
    return PairSeats(sender=sender, receiver=receiver, left=left)


def _sender(plan: Plan, machine: Machine) -> int:
    """The plan's core of the communication thread; one only, as a window is many messages of one pair."""
    if len(plan.comm_cores) != 1:
        raise UsageError(
            "must be a single core in this plan",
            field="comm_cores",
            value=list(plan.comm_cores),
            hint="name one; run once for each of the others",
        )
    wanted = plan.comm_cores[0]
    if isinstance(wanted, int):
        return wanted
    if wanted == "last":
        return placement.default_comm_core(machine, plan.comp_cores)
    node = placement.near_node(machine) if wanted == "near" else placement.far_node(machine)
    core = None if node is None else placement.last_core_of(machine, node)
    if core is None:
        raise UsageError("unknown core", field="comm_cores", value=wanted, hint="name a core, or `last`")
    return core


def _points(plan: Plan, seats: PairSeats, nodes: Sequence[tuple[int, int]]) -> Iterator[Point | Note]:
    keys: EmaKeys = plan.keys
    sizes = windows(keys)
    for who, access, data, barrier, timing, size, node in product(
        keys.who, keys.access, keys.data, keys.barrier, keys.timing, plan.sizes, nodes
    ):
        counts, notes = _bystanders(plan, who, seats)
        yield from notes
        kinds: tuple[BystanderKind, ...] = keys.bystanders if who == "bystanders" else ("threads",)
        for kind, n, (first, count) in product(kinds, counts, sizes):
            yield point_of(
                plan,
                node,
                n=n,
                size=size,
                comm_core=seats.sender,
                metric="latency",
                comp_cores=seats.left[:n],
                comm_cores=(seats.sender,),
                peer_cores=(seats.receiver,),
                sequence=PHASES,
                workload=ExtraneousAccesses(
                    who=who,
                    access=access,
                    first=first,
                    step=keys.access_step,
                    count=count,
                    data=data,
                    barrier=barrier,
                    exchanges=keys.exchanges,
                    timing=timing,
                    bystanders=kind,
                ),
            )


def windows(keys: EmaKeys) -> tuple[tuple[int, int], ...]:
    """(first, count) of each window: all sizes of `accesses`, both ends included, in windows as near to
    `window_sizes` as divides them evenly, and every size in one.

    UsageError where the ends, the step and the number of sizes do not fit each other.
    """
    low, high = keys.ends
    step = keys.access_step
    both = f"{format_size(low)},{format_size(high)}"
    if high < low:
        raise UsageError(
            "the most is less than the least",
            field="accesses",
            value=both,
            hint=f"write {format_size(high).replace(' ', '')},{format_size(low).replace(' ', '')}",
        )
    if high > low and step > high - low:
        raise UsageError(
            "is more than from the least to the most accesses",
            field="access_step",
            value=format_size(step),
            hint=f"give at most {format_size(high - low)}, or accesses that reach farther",
        )
    if high == 0 and keys.who != ("none",):
        raise UsageError(
            "no bytes are accessed", field="accesses", value=both, hint="give a most, for instance 4MB"
        )
    sizes = (high - low) // step + 1
    count = max(1, round(sizes / keys.window_sizes))
    if count > MOST_WINDOWS:
        raise UsageError(
            f"gives {sizes} sizes in {count} windows",
            field="access_step",
            value=format_size(step),
            hint=f"give a larger step: at most {MOST_WINDOWS} windows of {keys.window_sizes} sizes",
        )
    ends = [sizes * number // count for number in range(count + 1)]
    return tuple((low + start * step, end - start) for start, end in pairwise(ends))


def _bystanders(plan: Plan, who: Who, seats: PairSeats) -> tuple[tuple[int, ...], list[Note]]:
    """How many other processes access while the pair communicates; 0 for the pair itself."""
    if who != "bystanders":
        return (0,), []
    if not seats.left:
        reason = "this machine has 2 cores, and each runs a rank"
        return (), [Note(what="accesses by bystanders", reason=reason)]
    return core_counts(plan.n, len(seats.left))
