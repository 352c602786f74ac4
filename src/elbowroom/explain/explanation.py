"""Where a loss comes from, as a document: what `explain --json` prints."""

from __future__ import annotations

from typing import Literal

import msgspec

from elbowroom import display
from elbowroom.results.curves import Colour
from elbowroom.stats.interval import Added, Kept

SCHEMA = "elbowroom/explanation"
VERSION = 1

SideName = Literal["comm", "comp"]
Stream = Literal["computation", "communication"]
Source = Literal[
    "everything but memory",
    "cache",
    "last-level cache",
    "memory controller",
    "on-chip network",
    "link",
    "polling",
    "runtime overhead",
    "scheduling",
]
Decision = Literal["loses", "gains", "undecided"]
Status = Literal["measured", "not told apart", "not measured", "n/a"]

SIDES: tuple[SideName, ...] = ("comm", "comp")
SIDE_NAMES: dict[SideName, Stream] = {"comm": "communication", "comp": "computation"}


class ChainStep(msgspec.Struct, frozen=True, kw_only=True):
    """One contrast of a chain: what a side keeps at point `after`, relative to what it keeps at `before`
    (empty: alone).

    `sources`: the possible causes of the difference; several if no point between separates them. `share`: of
    the target's loss, in logarithms, which add up; None if the target does not lose significantly. Below 0: a
    gain.
    """

    sources: tuple[Source, ...]
    before: str
    after: str
    kept: Kept
    share: Kept | None
    decided: Decision


class SideLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What one side keeps at the target, and the steps whose product that is."""

    side: SideName
    kept: Kept
    decided: Decision
    steps: tuple[ChainStep, ...]


class ExplainedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One target: a kernel beside messages. `remote`: the sides whose data are on another socket.

    `regime`: blue, red or another regime (results/curves.py); None if the traffic is unknown.
    """

    point: str
    run: int
    kernel: str
    cursor: int = 1
    n: int
    size: int
    metric: Literal["latency", "bandwidth"]
    comp_node: int
    comm_node: int
    comm_core: int
    comp_cores: tuple[int, ...]
    remote: tuple[Stream, ...]
    regime: Colour | None
    traffic: float | None
    highest: float | None
    splits: tuple[SideLoss, ...]
    flags: tuple[str, ...] = ()

    def split(self, side: SideName) -> SideLoss | None:
        """That side's, where both its rates are known."""
        return next((split for split in self.splits if split.side == side), None)


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A source with a control of its own: what a side keeps with it, relative to `reference` without it.

    `setting` and `control` describe both in words; `reference` is empty if the control is inside the point
    itself.
    """

    source: Source
    side: SideName
    setting: str
    control: str
    n: int
    size: int
    point: str
    reference: str
    kept: Kept
    decided: Decision
    added: Added | None = None


class SourceStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence on one source, or on several that the runs cannot separate.

    `share`: the larger one of both sides, if significant; `hint`: the command that measures the source.
    """

    sources: tuple[Source, ...]
    status: Status
    text: str
    share: float | None = None
    hint: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the losses of some runs of one machine come from.

    `shown`: the points that are described and drawn (local data, and remote data if measured); `estimate`:
    the method of the intervals; exit code 3 if not `trusted`.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str
    runs: tuple[str, ...]
    machine: str
    virtual: bool
    trusted: bool
    reasons: tuple[str, ...]
    estimate: Literal["bootstrap over repetitions", "intervals of the points"]
    summary: tuple[str, ...]
    statements: tuple[SourceStatement, ...]
    shown: tuple[ExplainedPoint, ...]
    cases: tuple[ExplainedPoint, ...]
    contrasts: tuple[Contrast, ...] = ()

    def __repr__(self) -> str:
        return f"Explanation(runs={self.runs!r}, trusted={self.trusted})"

    __str__, _repr_html_ = display.text, display.html
