"""What `accept --json` prints, and what a later run takes as its baseline."""

from __future__ import annotations

import msgspec

from elbowroom.documents import DocumentFormat


class Suspect(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is worse than healthy ones. `node`: its number from 0; None of a pair of switches or nodes,
    whose numbers are in `between`. `score`: minus the decimal logarithm of the chance that a healthy site
    shows this, corrected for all tests; `loss`: a share of `quantity`, with a 95 % interval.
    """

    node: int | None
    name: str
    quantity: str
    cause: str
    score: float
    loss: float
    low: float | None = None
    high: float | None = None
    values: int
    evidence: str
    also: tuple[str, ...] = ()
    between: tuple[int, int] | None = None


class NodeClass(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that differ from the best class in a quantity, all alike: a folded list, their loss as a share,
    and the fact that explains it; `suspect` where no hardware does.
    """

    quantity: str
    nodes: str
    count: int
    loss: float
    fact: str
    suspect: bool
    text: str


class SiteLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The median of a quantity on the site, the spread of healthy nodes, the smallest loss of a node that is
    `visible`, both as shares, and what is `kept` of it beside the other side; `rate`: whether more is better.
    """

    quantity: str
    unit: str
    median: float
    spread: float
    visible: float | None
    rate: bool
    kept: float | None = None


class SiteChange(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity of the whole site beside its baseline, as a share: above 0 is worse."""

    quantity: str
    before: float
    now: float
    loss: float


class MissingNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that could not be measured to the end, by name, and why."""

    name: str
    why: str


class NodeClock(msgspec.Struct, frozen=True, kw_only=True):
    """The time of day of a node minus that of the median node: `offset` in s, and the `drift` between them in
    parts per million, None where too few rounds show it; `jump`: s by which it was set in the run.
    """

    name: str
    offset: float
    drift: float | None
    jump: float | None = None


class AcceptanceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `accept`. `nodes`: how many; `names`: theirs, in the order of their numbers; `nodelist`,
    `drain`: the suspect nodes folded, and the commands that drain them, a line for each cause, which are
    never run; `disturbed`: the share of the time in which threads that compute wait for a core, 0 unless it
    is too long to judge what needs the cores; `changes`: what is worse on the whole site than in the
    baseline; `missing`: nodes that were lost; `clocks`: of all nodes of one job; `switches`: a number for
    the switch of each node, where they are known.
    """

    schema: str = "elbowroom/accept"
    version: int = 1
    site: str
    verdict: str
    why: str
    nodes: int
    suspects: tuple[Suspect, ...]
    exit_code: int
    nodelist: str
    drain: str
    disturbed: float = 0.0
    classes: tuple[NodeClass, ...] = ()
    levels: tuple[SiteLevel, ...] = ()
    changes: tuple[SiteChange, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[MissingNode, ...] = ()
    clocks: tuple[NodeClock, ...] = ()
    names: tuple[str, ...] = ()
    switches: tuple[int, ...] = ()


BASELINES = DocumentFormat(
    kind=AcceptanceDocument,
    schema="elbowroom/accept",
    version=1,
    name="baseline",
    hint="write one with `elbowroom accept ... -o site.json`",
)
"""Reads and writes the documents of earlier runs."""
