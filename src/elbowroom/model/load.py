"""What a node does at once, beyond what one run measures: several groups of cores, messages, copies.

A `Situation` (model/curves.py) is the load of one kernel, one node of data and large messages that arrive.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from elbowroom.model.curves import Situation
from elbowroom.model.prediction import Interval

Direction = Literal["receive", "send", "both"]


class Computing(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`count` cores of `socket` (counted from 0) compute on data of `node` at `intensity` flop/B (algorithmic
    bytes; 0: nothing but memory accesses).
    """

    socket: int
    node: int
    count: int
    intensity: float = 0.0


class Messages(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`threads` communication threads exchange messages of `size` bytes (None: those of the calibration)
    with data in `node`; `both`: they send and receive at once, and bandwidths are those of both together.
    """

    node: int
    direction: Direction = "receive"
    size: int | None = None
    threads: int = 1


class Copy(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An accelerator copies from or to `node`, and alone it would at `demand` MB/s."""

    node: int
    demand: float


class Load(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """All of it at once."""

    computing: tuple[Computing, ...] = ()
    messages: Messages | None = None
    copies: tuple[Copy, ...] = ()


class LoadPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths (MB/s) with 90 % intervals: of all computing cores and of all messages, alone (the
    computing cores together without messages and copies, messages by themselves) and together; `groups`:
    those of each of `load.computing` together with everything, `copies` those of each copy; `flags` as
    `Prediction`.
    """

    load: Load
    comp_alone: Interval
    comm_alone: Interval
    comp_together: Interval
    comm_together: Interval
    groups: tuple[Interval, ...] = ()
    copies: tuple[Interval, ...] = ()
    flags: tuple[str, ...] = ()


def load_of(situation: Situation) -> Load:
    """The same said as a load: messages of the calibrated size that arrive, one thread."""
    groups = ((0, situation.n), (1, situation.n_other))
    return Load(
        computing=tuple(
            Computing(socket=socket, node=situation.comp_node, count=count)
            for socket, count in groups
            if count
        ),
        messages=Messages(node=situation.comm_node),
    )
