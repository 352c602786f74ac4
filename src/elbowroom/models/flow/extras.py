"""FLOW's parameters for loads beyond those of situations: what they are, and what holds where none was
measured.

The law that they stand in is that of models/flow/loads.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.models.flow.law import Array, Meaning

EXTRAS = (
    Meaning("peak", "Mflop/s", "what a computing core computes at most"),
    Meaning("roofline", "1", "how sharp the corner between memory and arithmetic is"),
    Meaning("thrift", "1", "power of what a core asks for in its weight"),
    Meaning("latency_load", "1", "part of a message's latency that grows as large messages slow down"),
    Meaning("relief", "1", "what messages that leave the NIC idle lose less than large ones"),
    Meaning("thread_gain", "1", "bandwidth of many communication threads over that of one"),
    Meaning("queueing", "1", "how much communication threads wait for each other"),
    Meaning("send", "1", "bandwidth alone of sending over receiving"),
    Meaning("send_room", "1", "capacity of a controller beside sending over that beside receiving"),
    Meaning("send_floor_first", "1", "floor of sending over that of receiving, first socket"),
    Meaning("send_floor_second", "1", "floor of sending over that of receiving, second socket"),
    Meaning("send_cost_first", "1", "cost of a sent byte over a received one, first socket"),
    Meaning("send_cost_second", "1", "cost of a sent byte over a received one, second socket"),
    Meaning("both", "1", "bandwidth alone of both directions together over receiving"),
    Meaning("both_room", "1", "capacity of a controller beside both directions over that beside receiving"),
    Meaning("both_floor_first", "1", "floor of both directions over that of receiving, first socket"),
    Meaning("both_floor_second", "1", "floor of both directions over that of receiving, second socket"),
    Meaning("both_cost_first", "1", "cost of a byte of both directions over a received one, first socket"),
    Meaning("both_cost_second", "1", "cost of a byte of both directions over a received one, second socket"),
    Meaning("copy_floor", "1", "floor of a copy over that of receiving"),
    Meaning("copy_weight", "1", "weight of a copy's MB/s over that of receiving"),
    Meaning("copy_cost", "1", "cost of a copied byte over a received one"),
    Meaning("devices", "MB/s", "messages and copies together"),
)
"""Beside these, for each regime r of message sizes: `latency_r` (us) and `speed_r`."""

NEUTRAL = dict.fromkeys((item.name for item in EXTRAS), 1.0) | {
    "peak": 1e9,
    "roofline": 4.0,
    "relief": 0.0,
    "devices": 1e9,
}
"""Where nothing was measured: sending and copying as receiving, threads as one, nothing limits devices."""


def meaning(name: str, switches: Sequence[int]) -> Meaning:
    """Unit and text of a parameter, those of message sizes included."""
    meanings = {item.name: item for item in EXTRAS}
    if name in meanings:
        return meanings[name]
    word, _, regime = name.rpartition("_")
    ends = [0, *switches]
    sizes = f"from {ends[int(regime)]} B" + (
        f" to {switches[int(regime)] - 1} B" if int(regime) < len(switches) else " on"
    )
    if word == "latency":
        return Meaning(name, "us", f"what a message takes besides its data, {sizes}")
    return Meaning(name, "1", f"bandwidth of a message that is moving over the calibrated one's, {sizes}")


def regime_names(regimes: int) -> tuple[str, ...]:
    """Names of the parameters of message sizes."""
    return tuple(f"{name}_{r}" for r in range(regimes) for name in ("latency", "speed"))


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters beyond FLOW's: `values` (D, E) in the order of `names`, those of EXTRAS that are missing
    are NEUTRAL; one row stands for all D; `size` the calibrated one (bytes), `switches` the first sizes of
    all regimes but the first, `intensity` (flop/B) that of the calibrated kernel.
    """

    size: int = 0
    names: tuple[str, ...] = ()
    values: Array = np.zeros((1, 0))
    switches: tuple[int, ...] = ()
    intensity: float = 0.0

    def get(self, name: str) -> Array:
        """One parameter, (D, 1); a speed that is missing is the calibrated size's."""
        if name in self.names:
            return self.values[:, [self.names.index(name)]]
        return np.full((len(self.values), 1), NEUTRAL.get(name, 1.0))
