"""Why a node is slow, by contrast: in which quantities it loses, in which it does not, and which of its facts
differ from those of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from elbowroom.quantities import percent

Cause = Literal[
    "memory-channel",
    "memory",
    "governor",
    "bios",
    "kernel",
    "neighbour",
    "limit",
    "link",
    "cable",
    "half",
    "processor",
    "unknown",
]

TEXTS: dict[Cause, str] = {
    "memory-channel": "a memory channel is missing",
    "memory": "slow memory",
    "governor": "a low frequency of the cores",
    "bios": "another BIOS, or other settings of it",
    "kernel": "another kernel, or other settings of it",
    "neighbour": "something else runs on it part of the time",
    "limit": "a limit of processor time stops its processes",
    "link": "a slow link to the network",
    "cable": "a bad cable between two switches",
    "half": "one of many nodes that are slow in the same way, with the same hardware",
    "processor": "slow cores",
    "unknown": "slow, for no reason that was measured",
}

RARE = 0.2
"""A fact that more of the nodes have is not what makes one of them slow."""
CHANNELS = (2, 3, 4, 6, 8, 12)
"""Memory channels of a socket."""
SAME = 0.9
"""Part of a group that shares the value of a fact which explains it."""
QUANTISED = 0.02
"""Distance of a loss from one channel of those, as a share of the bandwidth."""
SLOW_CLOCK = 0.12
"""Loss of the cores from which a frequency explains it; settings of a BIOS cost less."""

FACTS: dict[str, tuple[Cause, tuple[str, ...]]] = {
    "governor": ("governor", ("core", "cache", "message-rate")),
    "link": ("link", ("bandwidth", "bandwidth-beside")),
    "memory": ("memory-channel", ("memory",)),
    "bios": ("bios", ("memory-latency", "memory", "core", "latency")),
    "kernel": ("kernel", ("message-rate", "latency", "memory-latency", "memory", "core")),
}
"""What a fact explains where it differs: the cause, and the quantities in which it shows."""


TAKEN: dict[str, tuple[Cause, str]] = {
    "throttled": (
        "limit",
        "the limit of its control group stops its processes, those of others are not stopped",
    ),
    "steal": ("neighbour", "the hypervisor takes time of its processors"),
    "waiting": ("neighbour", "other programs use its cores"),
}
"""Quantities of time that something takes from a node: they explain all that is slow beside them."""


class NamedCause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause, the quantity that shows it best, and the evidence in a sentence."""

    cause: Cause
    quantity: str
    evidence: str


def cause_text(cause: str) -> str:
    """A cause in words."""
    return next((text for name, text in TEXTS.items() if name == cause), cause)


def name_cause(
    losses: Mapping[str, float], shown: Sequence[str], facts: Mapping[str, tuple[str, str]]
) -> NamedCause:
    """The cause of what a node loses. `losses`: the share by quantity, of all that were measured; `shown`:
    the quantities in which it loses more than healthy nodes, the surest first; `facts`: those that differ,
    with the node's value and the usual one.
    """
    for name, (cause, text) in TAKEN.items():
        if name in shown:
            limit = f"; it allows {facts['cgroup'][0]}" if cause == "limit" and "cgroup" in facts else ""
            return _named(cause, name, text + limit, losses, shown)
    for fact, (cause, signs) in FACTS.items():
        quantity = next((name for name in signs if name in shown), None)
        if fact in facts and quantity is not None and not ("slow-moments" in shown and cause != "governor"):
            own, usual = facts[fact]
            return _named(cause, quantity, f"{fact} is {own}, elsewhere {usual}", losses, shown)
    disturbed = next((name for name in ("slow-moments", "late") if name in shown), None)
    if disturbed is not None:
        return _named("neighbour", disturbed, "its own work is disturbed again and again", losses, shown)
    cause, quantity, evidence = _by_signature(losses, shown)
    return _named(cause, quantity, evidence, losses, shown)


def _by_signature(losses: Mapping[str, float], shown: Sequence[str]) -> tuple[Cause, str, str]:
    """The cause by what is slow and what is not."""
    first = shown[0]
    if "core" in shown:
        if losses["core"] >= SLOW_CLOCK or "memory-latency" not in shown:
            return "governor", "core", "cores are slow also without memory"
        return "bios", first, "cores and latency of the memory are a little slow together"
    if "memory" in shown:
        loss = losses["memory"]
        channels = min(CHANNELS, key=lambda count: abs(1 / count - loss))
        if abs(1 / channels - loss) <= QUANTISED:
            evidence = f"the loss is that of one of {channels} channels, and the cores are not slow"
            return "memory-channel", "memory", evidence
        if "memory-latency" in shown:
            return "bios", first, "latency and bandwidth of the memory are slow, the cores are not"
        return "memory", "memory", "the cores are not slow"
    pairs = [name for name in shown if name.startswith(("bandwidth", "latency"))]
    if pairs:
        best = next((name for name in pairs if name.startswith("bandwidth")), pairs[0])
        if "core" in losses:
            return "link", best, "messages to all partners are slow, the node itself is not"
        return "link", best, "messages to all partners are slow"
    if "memory-latency" in shown:
        return "bios", "memory-latency", "only the latency of the memory is longer"
    return "unknown", first, "nothing else that was measured differs"


def _named(
    cause: Cause, quantity: str, evidence: str, losses: Mapping[str, float], shown: Sequence[str]
) -> NamedCause:
    others = [f"{name} {percent(losses[name])}" for name in shown if name != quantity][:2]
    more = f"; worse too: {', '.join(others)}" if others else ""
    return NamedCause(cause=cause, quantity=quantity, evidence=f"{evidence}{more}")


class FactTable:
    """The facts of all nodes, with how often each value occurs."""

    def __init__(self, facts: Mapping[str, Sequence[str]]) -> None:
        self._facts = facts
        self._counts = {name: Counter(values) for name, values in facts.items()}

    def unusual(self, node: int) -> dict[str, tuple[str, str]]:
        """The facts of a node that few others share: its value and the usual one."""
        differing = {}
        for name, values in self._facts.items():
            counts, own = self._counts[name], values[node]
            usual = counts.most_common(1)[0][0]
            if own and own != usual and counts[own] < max(RARE * len(values), 2):
                differing[name] = own, usual
        return differing

    def explains(self, first: Sequence[int], second: Sequence[int]) -> str:
        """The name of a fact whose value separates two groups of nodes; "" if none does."""
        for name, values in self._facts.items():
            usual, other = (
                Counter(values[node] for node in group).most_common(1)[0] for group in (first, second)
            )
            if usual[0] != other[0] and usual[1] >= SAME * len(first) and other[1] >= SAME * len(second):
                return name
        return ""
