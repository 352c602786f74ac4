"""A broadcast on a simulated cluster: the question, when each recipient has the data, and the document."""

from __future__ import annotations

import re

import msgspec

from elbowroom.errors import UsageError
from elbowroom.quantities import parse_time

MOST_RECIPIENTS = 10_000
"""More take minutes to simulate."""

MOST_SEGMENTS = 10_000
"""So do more segments."""

MOST_BYTES = 2**40

TREES = ("flat", "chain", "binary", "binomial", "two", "auto")
"""The kinds of trees without numbers; `4-ary`, `8-nomial` and the like are others."""

PLATFORMS = ("star", "fat-tree")
"""The clusters that are built in; others are files."""

ORDERS = ("rank", "shuffled", "rack")
"""Where ranks are on a fat tree: rack after rack, at random, or at random with racks that the library knows.
"""

_NUMBERED = re.compile(r"[1-9][0-9]{0,4}-(ary|nomial)")
_PREFIXED = re.compile(r"(split[1-9][0-9]{0,4}-)?(delegate-)?(two-level-)?")


SEGMENT_OF_TWO = 32 << 10
"""Bytes of a segment where two trees are used: each carries every other one, and the whole by one of them is
slower than by a binomial tree.
"""


def usual_segment(tree: str, size: int) -> int:
    """Bytes of a segment where none is given: 0 for the whole."""
    return max(SEGMENT_OF_TWO, -(-size // (MOST_SEGMENTS // 2))) if tree.endswith("two") else 0


class BroadcastRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`size` bytes to `recipients`, each node with a link of `bandwidth` B/s in each direction and `latency`
    s to one switch, and `overhead` s of a rank for each message; by `tree`, in segments of `segment` bytes
    (0: `usual_segment`, or what `auto` chooses), with `window` bytes in flight from a rank (0: 128 KiB).

    `platform`: `star`, `fat-tree` (of `racks`, each with a link of `uplink` B/s to the switch that joins
    them, ranks in `order`), or a file of SimGrid. `priorities`: of each recipient, empty where all are alike.
    """

    recipients: int
    size: int
    bandwidth: float
    latency: float
    overhead: float = 0.0
    tree: str = "binomial"
    segment: int = 0
    window: int = 0
    platform: str = "star"
    racks: int = 4
    uplink: float = 12e9
    order: str = "rank"
    priorities: tuple[int, ...] = ()

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
        if self.window > MOST_BYTES:
            raise UsageError("is more than 1 TiB", field="window", value=self.window, hint="give less")
        check_tree(self.tree)
        self._check_platform()
        if self.priorities and len(self.priorities) != self.recipients:
            raise UsageError(
                f"are {len(self.priorities)}, and there are {self.recipients} recipients",
                field="priorities",
                value=",".join(map(str, self.priorities)),
                hint="give one for each recipient",
            )

    def _check_platform(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(
                "unknown rank order", field="order", value=self.order, hint=f"one of: {', '.join(ORDERS)}"
            )
        if self.platform != "fat-tree" and self.order != "rank":
            raise UsageError("needs racks", field="order", value=self.order, hint="add --platform fat-tree")
        if not 2 <= self.racks <= self.recipients + 1 and self.platform == "fat-tree":
            raise UsageError(
                f"is not between 2 and the {self.recipients + 1} nodes",
                field="racks",
                value=self.racks,
                hint="for instance 4",
            )


class SimulatedBroadcast(msgspec.Struct, frozen=True, kw_only=True):
    """When each recipient received the data, and when the root and each recipient had finished with them, s
    after the root sent; recipients in the order of their ranks. `tree` and `segment`: the way they took.
    """

    tree: str
    segment: int
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
    if not known or (base in ("two", "auto") and tree != base) or base == "1-nomial":
        raise UsageError(
            "is not a kind of tree",
            field="tree",
            value=tree,
            hint=f"one of: {', '.join(TREES)}, 4-ary, 8-nomial",
        )


def parse_priorities(text: str, recipients: int) -> tuple[int, ...]:
    """Of each recipient: `rising` with the rank, `equal`, or numbers: `3,0,1`. UsageError for others."""
    if text in ("rising", "equal"):
        return tuple(range(1, recipients + 1)) if text == "rising" else ()
    words = text.split(",")
    if not all(re.fullmatch(r"[0-9]{1,9}", word, re.ASCII) for word in words):
        raise UsageError(
            "are not valid priorities",
            field="priorities",
            value=text,
            hint="rising, equal, or numbers: 3,0,1",
        )
    return tuple(int(word) for word in words)


def parse_latency(text: str | float, field: str) -> float:
    """Seconds of `2us`, `500ns` or `0.1 ms`; UsageError for anything else, and for text without a unit."""
    if isinstance(text, str) and re.fullmatch(r"[\s0-9.]*", text):
        raise UsageError("is not a latency", field=field, value=text, hint="give a unit: 2us")
    return parse_time(text, field, "for instance 2us")


MEGA = 1e6
"""us in a second, and B/s in a MB/s."""


class BroadcastDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One broadcast: `time_us` until the last recipient has the data, `bandwidth` (MB/s) is the size over
    that time; `received_us` and `released_us` in the order of ranks, the latter from the root on. `simulated`
    false: medians of what was measured, or, if `predicted`, times of the cost model, which has none for
    single ranks.
    """

    schema: str = "elbowroom/broadcast"
    version: int = 1
    simulated: bool
    predicted: bool
    time_us: float
    bandwidth: float
    tree: str
    segment: int
    recipients: int
    size: int
    received_us: tuple[float, ...]
    released_us: tuple[float, ...]


def broadcast_document(simulated: SimulatedBroadcast, request: BroadcastRequest) -> BroadcastDocument:
    """A simulated broadcast and what was asked, as one document."""
    return BroadcastDocument(
        simulated=True,
        predicted=False,
        time_us=simulated.seconds * MEGA,
        bandwidth=request.size / simulated.seconds / MEGA,
        tree=simulated.tree,
        segment=simulated.segment,
        recipients=request.recipients,
        size=request.size,
        received_us=tuple(time * MEGA for time in simulated.received),
        released_us=tuple(time * MEGA for time in simulated.released),
    )


def predicted_document(
    tree: str, segment: int, seconds: float, request: BroadcastRequest
) -> BroadcastDocument:
    """What the cost model says of a broadcast."""
    return BroadcastDocument(
        simulated=False,
        predicted=True,
        time_us=seconds * MEGA,
        bandwidth=request.size / seconds / MEGA,
        tree=tree,
        segment=segment,
        recipients=request.recipients,
        size=request.size,
        received_us=(),
        released_us=(),
    )
