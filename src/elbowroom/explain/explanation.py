"""Where a loss comes from, as a document (schemas/explanation-1.json): what `explain --json` prints."""

from __future__ import annotations

from typing import Literal

import msgspec

from elbowroom import __version__
from elbowroom.stats.result import Added, Kept
from elbowroom.stats.saturation import Colour

SCHEMA = "elbowroom/explanation"
VERSION = 1

SideName = Literal["comm", "comp"]
Stream = Literal["computation", "communication"]
Source = Literal[
    "frequency",
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


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One contrast of a chain: what a side keeps at point `after`, relative to what it keeps at `before`
    (empty: alone).

    `sources`: what may make the difference; several where no point between tells them apart. `share`: of the
    target's loss, in logarithms, which add up; None where the target does not surely lose. Below 0: a gain.
    """

    sources: tuple[Source, ...]
    before: str
    after: str
    kept: Kept
    share: Kept | None
    decided: Decision


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """What one side keeps at the target, and the steps whose product that is."""

    side: SideName
    kept: Kept
    decided: Decision
    steps: tuple[Step, ...]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One target: a kernel beside messages. `remote`: whose data are not on the socket of who moves them.

    `regime`: blue, red or what else (stats/saturation.py); None where the traffic is not known.
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
    splits: tuple[Split, ...]
    flags: tuple[str, ...] = ()

    def split(self, side: SideName) -> Split | None:
        """That side's, where both its rates are known."""
        return next((split for split in self.splits if split.side == side), None)


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A source with a control of its own: what a side keeps with it, relative to `reference` without it.

    `setting`: what was on, in words; `reference` is empty where the control is inside the point itself.
    """

    source: Source
    side: SideName
    setting: str
    n: int
    size: int
    point: str
    reference: str
    kept: Kept
    decided: Decision
    added: Added | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs say of one source, or of several that they do not tell apart, in a sentence.

    `share`: the larger one of both sides, where it is sure; `mend`: the command that would measure it.
    """

    sources: tuple[Source, ...]
    status: Status
    text: str
    share: float | None = None
    mend: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the losses of some runs of one machine come from.

    `shown`: the cases told in words and drawn (data local, and on a remote node where measured); `estimate`:
    how the intervals were found; exit code 3 where not `trusted`.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str = __version__
    runs: tuple[str, ...]
    machine: str
    virtual: bool
    trusted: bool
    reasons: tuple[str, ...]
    estimate: Literal["bootstrap over repetitions", "intervals of the points"]
    summary: tuple[str, ...]
    told: tuple[Told, ...]
    shown: tuple[Case, ...]
    cases: tuple[Case, ...]
    contrasts: tuple[Contrast, ...] = ()
