"""Extraneous memory accesses: what memory that no message is in, touched between two messages, does to the
next one (Tan and Jarvis 2012).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.errors import UsageError
from elbowroom.experiments.ema_cases import Case, cases
from elbowroom.experiments.ema_figures import bound_lines, miss_lines, times
from elbowroom.experiments.ema_words import (
    first_observation,
    misses,
    open_question,
    rises,
    second_observation,
    which_side,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.wording import nothing
from elbowroom.machine.topology import Machine
from elbowroom.plan import accesses, placing
from elbowroom.plan.expanding import core_counts, node_pairs
from elbowroom.plan.expanding import expand as multiply
from elbowroom.plan.point import Expansion, Extraneous, Note, Phase, Point, Who
from elbowroom.plan.reading import Plan
from elbowroom.stats.result import Finding, PointResult

PHASES: tuple[Phase, ...] = ("B", "AB")
"""Messages without accesses and after them, interleaved."""


class Seats(msgspec.Struct, frozen=True, kw_only=True):
    """Cores of the sender and the receiver, and those left for bystanders, nearest first."""

    sender: int
    receiver: int
    left: tuple[int, ...]


def expand(plan: Plan, machine: Machine) -> Expansion:
    """A point for each window of sizes of every who, access, data, barrier and message size, and the
    register-only control; notes where there is one clock too many or no core left for bystanders.
    """
    control = _control(plan, machine) if plan.control else ()
    if machine.hosts > 1:
        reason = f"one-way times need one clock, and {machine.hosts} hosts have several (--launcher local)"
        note = Note(what="extraneous accesses", reason=reason)
        return Expansion(points=control, notes=(note,))
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
            value=",".join(plan.who),
            mend="choose among none, sender, receiver, both",
        )
    once = {note.what: note for note in notes}
    return Expansion(points=(*points.values(), *control), notes=tuple(once.values()))


def _control(plan: Plan, machine: Machine) -> tuple[Point, ...]:
    """Prime counting on all cores beside the largest message: tells whether the machine was quiet (METHOD.md,
    rule 15); the messages without accesses tell it of what they share with those after accesses.
    """
    usual = msgspec.structs.replace(
        plan, kernels=("prime",), n=("all",), sizes=(max(plan.sizes),), sweeps=(), control=False
    )
    first = multiply(usual, machine).points[:1]
    return tuple(msgspec.structs.replace(point, role="control") for point in first)


def _seats(plan: Plan, machine: Machine) -> Seats:
    """Two cores, one for each process."""
    cores = placing.usable(machine)
    if len(cores) < 2:
        raise UsageError(
            "sender and receiver need a core each",
            field="cpuset",
            value=[core.number for core in cores],
            mend="allow at least two cores",
        )
    sender = _sender(plan, machine)
    near = placing.downwards(cores, sender)
    named = set(plan.comp_cores)
    if plan.peer_core is not None:
        receiver = plan.peer_core
    else:
        receiver = next((core for core in near[1:] if core not in named), near[1])
    if receiver == sender:
        raise UsageError(
            "is the sender's core as well; two processes on one core measure the scheduler",
            field="peer_core",
            value=receiver,
            mend="choose another core, or leave it out",
        )
    left = plan.comp_cores or tuple(core for core in near if core not in (sender, receiver))
    return Seats(sender=sender, receiver=receiver, left=left)


def _sender(plan: Plan, machine: Machine) -> int:
    """The plan's core of the communication thread; one only, as a window is many messages of one pair."""
    if len(plan.comm_cores) != 1:
        raise UsageError(
            "is one core only in this plan",
            field="comm_cores",
            value=list(plan.comm_cores),
            mend="name one; run once for each of the others",
        )
    wanted = plan.comm_cores[0]
    if isinstance(wanted, int):
        return wanted
    if wanted == "last":
        return placing.default_comm_core(machine, plan.comp_cores)
    node = placing.near_node(machine) if wanted == "near" else placing.far_node(machine)
    core = None if node is None else placing.last_core_of(machine, node)
    if core is None:
        raise UsageError(
            "there is no such core here", field="comm_cores", value=wanted, mend="name a core, or `last`"
        )
    return core


def _points(plan: Plan, seats: Seats, nodes: Sequence[tuple[int, int]]) -> Iterator[Point | Note]:
    sizes = accesses.windows(plan)
    for who, access, data, barrier, size, node in product(
        plan.who, plan.access, plan.data, plan.barrier, plan.sizes, nodes
    ):
        counts, notes = _bystanders(plan, who, seats)
        yield from notes
        for n, (first, count) in product(counts, sizes):
            yield Point(
                plan=plan.name,
                kernel="none",
                n=n,
                size=size,
                comp_node=node[0],
                comm_node=node[1],
                comm_core=seats.sender,
                metric="latency",
                comp_cores=seats.left[:n],
                comm_cores=(seats.sender,),
                peer_cores=(seats.receiver,),
                sequence=PHASES,
                window=plan.window,
                observe=plan.observe,
                extraneous=Extraneous(
                    who=who,
                    access=access,
                    first=first,
                    step=plan.access_step,
                    count=count,
                    data=data,
                    barrier=barrier,
                    exchanges=plan.exchanges,
                ),
            )


def _bystanders(plan: Plan, who: Who, seats: Seats) -> tuple[tuple[int, ...], list[Note]]:
    """How many other processes access while the pair communicates; 0 for the pair itself."""
    if who != "bystanders":
        return (0,), []
    if not seats.left:
        reason = "this machine has 2 cores, both hold a rank"
        return (), [Note(what="accesses by bystanders", reason=reason)]
    return core_counts(plan.n, len(seats.left))


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """By how much the floor rises past each cache, which side hurts more, the paper's two observations and
    its open question, misses.
    """
    found = cases(results, machine)
    told = [rises(case) for case in found]
    for pair in _pairs(found):
        told += [which_side(*pair), *(first_observation(case) for case in pair), second_observation(*pair)]
    paired = {id(case) for pair in _pairs(found) for case in pair}
    told += [
        first_observation(case) for case in found if case.who not in ("none",) and id(case) not in paired
    ]
    told += [open_question(case) for case in found if case.who == "bystanders"]
    told += [finding for case in found for finding in misses(case)]
    return tuple(told) or (nothing("ema", "Extraneous accesses"),)


def _pairs(found: Sequence[Case]) -> list[tuple[Case, Case]]:
    """The sender's and the receiver's accesses of the same kind."""
    return [
        (one, other)
        for one in found
        for other in found
        if (one.who, other.who) == ("sender", "receiver") and one.alike(other)
    ]


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """One-way time over bytes accessed (Fig. 1), its lower and upper bounds (Fig. 3), misses (Fig. 2)."""
    found = cases(results, machine)
    return (*times(found), *bound_lines(found), *miss_lines(found))


EXPERIMENT = Experiment(
    name="ema",
    question=(
        "What does memory that no message is in, touched between two messages, do to the next message?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)
