"""A broadcast on a simulated cluster: the question, and when each recipient has the data."""

from __future__ import annotations

import re

import msgspec

from elbowroom.errors import UsageError
from elbowroom.plan.sizes import parse_size

MOST_RECIPIENTS = 10_000
"""More take minutes to simulate."""

MOST_SEGMENTS = 10_000
"""So do more segments."""

MOST_BYTES = 2**40

TREES = ("flat", "chain", "binary", "binomial", "two")
"""The kinds of trees without numbers; `4-ary`, `8-nomial` and the like are others."""

_LATENCY = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(ns|us|µs|ms|s)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_NUMBERED = re.compile(r"[1-9][0-9]{0,4}-(ary|nomial)")
_PREFIXED = re.compile(r"(split[1-9][0-9]{0,4}-)?(delegate-)?(two-level-)?")


class BroadcastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`size` bytes to `recipients`, each node with a link of `bandwidth` B/s in each direction and `latency`
    s to one switch; by `tree`, in segments of `segment` bytes (0: the whole message).
    """

    recipients: int
    size: int
    bandwidth: float
    latency: float
    tree: str = "binomial"
    segment: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.recipients <= MOST_RECIPIENTS:
            raise UsageError(
                f"is not between 1 and {MOST_RECIPIENTS}",
                field="recipients",
                value=self.recipients,
                hint="for instance 38",
            )
        if not 1 <= self.size <= MOST_BYTES:
            raise UsageError("is not between 1 B and 1 TiB", field="size", value=self.size, hint="give less")
        if self.segment and self.size > self.segment * MOST_SEGMENTS:
            raise UsageError(
                f"makes more than {MOST_SEGMENTS} segments of the data",
                field="segment",
                value=self.segment,
                hint="give a larger one",
            )
        check_tree(self.tree)


class SimulatedBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """When each recipient received the data, and when the root and each recipient had finished with them, s
    after the root sent; recipients in the order of their ranks.
    """

    received: tuple[float, ...]
    released: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Until the last recipient has the data: the latency of the broadcast (thesis, section 4.4.1)."""
        return max(self.received)


def check_tree(tree: str) -> None:
    """UsageError for what is no kind of tree."""
    base = _PREFIXED.sub("", tree, count=1)
    known = base in TREES or _NUMBERED.fullmatch(base)
    if not known or (base == "two" and tree != "two") or base == "1-nomial":
        raise UsageError(
            "is not a kind of tree",
            field="tree",
            value=tree,
            hint=f"one of: {', '.join(TREES)}, 4-ary, 8-nomial",
        )


def parse_rate(text: str, field: str) -> float:
    """B/s of `6GB/s` or `800MB/s`; UsageError for anything else."""
    size, slash, second = text.partition("/")
    if not slash or second.strip() != "s":
        raise UsageError("is not a bandwidth", field=field, value=text, hint="for instance 6GB/s")
    return float(parse_size(size, field))


def parse_latency(text: str, field: str) -> float:
    """Seconds of `2us`, `500ns` or `0.1ms`; UsageError for anything else."""
    match = _LATENCY.fullmatch(text.strip())
    if match is None:
        raise UsageError("is not a latency", field=field, value=text, hint="for instance 2us")
    return float(match[1]) * _SECONDS[match[2]]
