"""What a virtual machine knows: every situation's bandwidths, exact and as a noisy run sees them.

Messages as flows of one direction, and what a virtual machine gives the streams of a load.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation, Streams
from elbowroom.models.load import Load
from elbowroom.points.unit import Unit

if TYPE_CHECKING:
    import numpy


FLAG = "virtual"
"""On every phase and point: nothing of it was measured."""

MOST_NOISE = 0.2
"""Relative standard deviation above which a normal factor would not stay positive: 5 sigma reach zero."""


class Truth(ABC):
    """A machine whose bandwidths are known by a law instead of a measurement."""

    shape: Shape

    @abstractmethod
    def streams(self, situation: Situation) -> Streams:
        """comp_alone, comm_alone, comp_together, comm_together (MB/s) without noise.

        Without computing cores both bandwidths of the computation are 0. Raises UsageError for a situation
        outside the machine, or one that the law says nothing about.
        """

    def sample(self, situation: Situation, noise: float, rng: numpy.random.Generator) -> Streams:
        """What one run measures: each of the four values times its own normal factor of mean 1.

        `noise` is the factor's standard deviation, 0 to MOST_NOISE; a factor that is not positive is drawn
        again. `rng` comes from `generator`, or is the caller's own.
        """
        check_noise(noise)
        factors = rng.normal(1.0, noise, 4)
        while not (factors > 0).all():
            factors = rng.normal(1.0, noise, 4)
        exact = self.streams(situation)
        return cast(
            "Streams", tuple(value * float(factor) for value, factor in zip(exact, factors, strict=True))
        )


def generator(seed: int, shape: Shape, situation: Situation, repetition: int = 0) -> numpy.random.Generator:
    """Random numbers of their own for every seed, machine, situation and repetition, whatever the order they
    are asked in.
    """
    import numpy

    where = (situation.comp_node, situation.comm_node, situation.n, situation.n_other, repetition)
    return numpy.random.default_rng([seed, zlib.crc32(shape.name.encode()), *where])


def check_noise(noise: float) -> None:
    """Refuses a standard deviation below 0 or above MOST_NOISE (also what is not a number)."""
    if not 0 <= noise <= MOST_NOISE:
        raise UsageError(
            "is not a relative standard deviation of a measurement",
            field="noise",
            value=noise,
            hint=f"0 to {MOST_NOISE:g}, for instance 0.01 for 1 %",
        )


def check_situation(shape: Shape, situation: Situation) -> None:
    """Refuses cores and nodes that the machine does not have; the sentence says which it has."""
    for field, node in (("comp_node", situation.comp_node), ("comm_node", situation.comm_node)):
        if not 0 <= node < shape.nodes:
            raise UsageError(
                f"{shape.name} has no such node", field=field, value=node, hint=f"nodes: 0-{shape.nodes - 1}"
            )
    for field, n, most in (
        ("n", situation.n, shape.cores_first_socket),
        ("n_other", situation.n_other, shape.cores_other),
    ):
        if not 0 <= n <= most:
            raise UsageError(
                f"{shape.name} does not have that many cores there", field=field, value=n, hint=f"0 to {most}"
            )


class MessageFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one direction: `in_flight` of `size` bytes at a time (None: endless), `latency` (us) that
    of the smallest, `share` the part of the NIC that is theirs, `far`: their threads are not on its socket.
    """

    node: int
    sending: bool = False
    size: int | None = None
    in_flight: int = 1
    latency: float = 0.0
    share: float = 1.0
    far: bool = False


class StreamRates(msgspec.Struct, frozen=True, kw_only=True):
    """MB/s of each group of cores, each flow and each copy."""

    groups: tuple[float, ...] = ()
    flows: tuple[float, ...] = ()
    copies: tuple[float, ...] = ()


class LoadStreams(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths without noise, MB/s: of all computing cores and of all messages, alone (the computing cores
    together without messages and copies, messages by themselves) and together; together also of each group
    and each copy. 0 where there is none.
    """

    comp_alone: float
    comm_alone: float
    comp_together: float
    comm_together: float
    groups: tuple[float, ...] = ()
    copies: tuple[float, ...] = ()


def streams_of(
    comp: StreamRates, comm: StreamRates, together: StreamRates, counted: float = 1.0
) -> LoadStreams:
    """The streams of a load whose cores alone, messages alone, and all together have these rates; `counted`:
    bytes of cores that their kernel knows of, for each byte on the bus.
    """
    groups = tuple(counted * value for value in together.groups)
    return LoadStreams(
        comp_alone=counted * sum(comp.groups),
        comm_alone=sum(comm.flows),
        comp_together=sum(groups),
        comm_together=sum(together.flows),
        groups=groups,
        copies=together.copies,
    )


def flows_of(load: Load, latency: float, *, far: bool = False) -> tuple[MessageFlow, ...]:
    """The load's messages, one at a time from each thread; `latency` (us) and `far` as in `MessageFlow`."""
    messages = load.messages
    if messages is None:
        return ()
    sending = {"receive": (False,), "send": (True,), "both": (False, True)}[messages.direction]
    return tuple(
        MessageFlow(
            node=messages.node,
            sending=way,
            size=messages.size,
            in_flight=messages.threads,
            latency=latency,
            far=far,
        )
        for way in sending
    )


def repetition_record(
    unit: Unit, phases: Sequence[Mapping[str, Any]], facts: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """A `repetition` record of the protocol."""
    record: dict[str, Any] = {
        "record": "repetition",
        "point": unit.point,
        "repetition": unit.repetition,
        "status": "ok",
        "reason": "",
        "flags": [FLAG],
        "phases": list(phases),
    }
    return record | ({"facts": dict(facts)} if facts else {})
