"""Messages as flows of one direction, and what a virtual machine gives the streams of a load."""

from __future__ import annotations

import msgspec

from elbowroom.models.load import Load


class Flow(msgspec.Struct, frozen=True, kw_only=True):
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


def flows_of(load: Load, latency: float, *, far: bool = False) -> tuple[Flow, ...]:
    """The load's messages, one at a time from each thread; `latency` (us) and `far` as in `Flow`."""
    messages = load.messages
    if messages is None:
        return ()
    sending = {"receive": (False,), "send": (True,), "both": (False, True)}[messages.direction]
    return tuple(
        Flow(
            node=messages.node,
            sending=way,
            size=messages.size,
            in_flight=messages.threads,
            latency=latency,
            far=far,
        )
        for way in sending
    )
