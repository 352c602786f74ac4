"""What `trace overlap` finds, as a document. Times are in s, the mean over the ranks of the trace."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from elbowroom import display
from elbowroom.stats.interval import Interval

SCHEMA = "elbowroom/trace-overlap"


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Operations of one `kind` that count: `computation`, `collective`, `message`, `copy` (between two
    memories), or `communication` of another kind; and their time in all, without what is nested in them.
    """

    kind: str
    operations: int
    seconds: float


class LeftOut(Counted, frozen=True, kw_only=True):
    """Operations that count as neither side: `set-up`, `wait for messages`, `wait`, `launch`, `annotation`,
    `runtime`, `input/output`, or `unknown` categories; and the `names` with most time (the categories).
    """

    names: tuple[str, ...] = ()


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """What was compared: instances `alone` and `overlapped`, independent `comparisons` of both, and the
    `slowdown`, the ratio of durations beside the other side and alone (without comparisons: of all classes);
    None with the `reason`.
    `shared_s`: how long the overlapped ones and the other side were both active, in all.
    """

    alone: int
    overlapped: int
    shared_s: float
    comparisons: int = 0
    slowdown: Interval | None = None
    reason: str = ""

    @property
    def changed(self) -> bool:
        """Whether the interval excludes 1: there is an effect."""
        return (
            self.slowdown is not None
            and self.comparisons > 0
            and (self.slowdown.low > 1 or self.slowdown.high < 1)
        )


class ComputationClass(Matched, frozen=True, kw_only=True):
    """A class of computation (name; launch or shape as `detail`) beside a kind of communication; None: beside
    none. `operation`: what that is, such as all-reduce or copy, and the `channels` that it holds (None: not
    recorded). `median_s`: of an instance alone, None if there is none.
    """

    name: str
    detail: str = ""
    communication: str | None = None
    operation: str | None = None
    channels: int | None = None
    median_s: float | None = None

    @property
    def label(self) -> str:
        """Name and detail, as tables show them."""
        return f"{self.name} [{self.detail}]" if self.detail else self.name


class CommunicationKind(Matched, frozen=True, kw_only=True):
    """A kind of communication: its instances, their time per rank, and the hidden part of it."""

    name: str
    total_s: float
    hidden_s: float


Grade = Literal["measured", "bounded", "confounded", "nothing hidden"]


class CommunicationOperation(NamedTuple):
    """An operation, and how many channels (SMs of the device) it holds; None: not recorded."""

    name: str
    channels: int | None

    @property
    def label(self) -> str:
        """As tables show it."""
        return self.name if self.channels is None else f"{self.name}, {self.channels} channels"


class BesideOperation(msgspec.Struct, frozen=True, kw_only=True):
    """The slowdown of all classes beside one `operation` that holds so many `channels` (None: not recorded):
    a 95 % interval, shrunk towards the slowdown of all; `comparisons`: independent ones of its own.
    """

    operation: str
    channels: int | None = None
    comparisons: int
    slowdown: Interval

    @property
    def label(self) -> str:
        """The operation and its channels, as tables show them."""
        return CommunicationOperation(self.operation, self.channels).label


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What hiding costs (docs/reference/trace-estimate.md): the `slowdown` of computation that communication
    covers and its `cost` in s, with 95 % intervals, where they are measured; `at_most_s`: the cost if covered
    computation took as long alone as the fastest of its class. `reason`: why nothing is measured;
    `confounded_by`: the classes of computation that show it. `instrument`: what tells how much of an instance
    is covered: the `schedule` of communication over its usual duration, or whether that covers `any` of it.
    `beside`: the slowdown beside each operation, where it is measured.
    """

    grade: Grade
    slowdown: Interval | None = None
    cost: Interval | None = None
    at_most_s: float
    reason: str = ""
    confounded_by: tuple[str, ...] = ()
    instrument: Literal["", "schedule", "any"] = ""
    beside: tuple[BesideOperation, ...] = ()

    @property
    def operations(self) -> tuple[BesideOperation, ...]:
        """Of `beside`: the operations, where their slowdowns differ; largest first."""
        if len({one.slowdown.value for one in self.beside}) < 2:
            return ()
        return tuple(sorted(self.beside, key=lambda one: -one.slowdown.value))


class NextSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of another program to try next: its name, or the line of its file, and its value; None where
    the trace does not say it. `why`: the number of the trace that it follows from.
    """

    program: str
    name: str
    value: int | None = None
    why: str


class MedianStep(msgspec.Struct, frozen=True, kw_only=True):
    """When a rank computes and communicates in its step of median length: begins and ends, s from the step's
    first computation.
    """

    rank: str
    number: int
    seconds: float
    computing: tuple[tuple[float, float], ...]
    communicating: tuple[tuple[float, float], ...]


class TraceOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """What overlap hides in a trace, and what hiding costs (docs/guide/trace-overlap.md).

    `counted`: what counts as computation and communication; `left_out`: what counts as neither. `counts`:
    both in one sentence. `comp_s`, `comm_s`: how long a rank computes, communicates; `together_s`: does
    either; `hidden_s`: does both; `exposed_s`: only communicates, or waits for messages. `cost`: how much
    longer the computation took, None if it was not measured; `cost_share`: the part of the hidden time for
    which it was measured; `cost_at_most_s`: what it is if each computation beside communication would take as
    long alone as the fastest tenth of its class; `comm_cost` the cost of communication; `skew_s`: how long a
    rank waits in collectives for the last rank, None where ranks do not compare. `overlap`,
    `osu_overlap` and `fraction_of_ideal` are None without a cost. `steps`: steps that the trace names or
    repeats, on one rank. `settings`: what to try next. `doubts`: why the result cannot be trusted.
    """

    schema: str = SCHEMA
    version: int = 1
    files: tuple[str, ...]
    format: str
    events: int
    ranks: int
    steps: int | None = None
    counts: str
    counted: tuple[Counted, ...]
    left_out: tuple[LeftOut, ...] = ()
    span_s: float
    comp_s: float
    comm_s: float
    together_s: float
    hidden_s: float
    hidden_share: float
    exposed_s: float
    estimate: Estimate
    cost_s: float | None = None
    cost: Interval | None = None
    cost_share: float
    cost_at_most_s: float
    comm_cost: Interval | None = None
    skew_s: float | None = None
    overlap: float | None = None
    osu_overlap: float | None = None
    fraction_of_ideal: float | None = None
    verdict: str
    classes: tuple[ComputationClass, ...]
    communications: tuple[CommunicationKind, ...]
    settings: tuple[NextSetting, ...] = ()
    median_step: MedianStep | None = None
    partial: bool = False
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"TraceOverlap(files={self.files!r})"

    __str__, _repr_html_ = display.text, display.html

    @property
    def hidden_kind(self) -> str:
        """What is hidden or exposed: `copies` where nothing else communicates."""
        kinds = {one.kind for one in self.counted} - {"computation"}
        return "copies" if kinds == {"copy"} else "communication"

    @property
    def effect(self) -> bool:
        """Whether computation takes significantly more time beside communication."""
        return self.estimate.slowdown is not None and self.estimate.slowdown.low > 1


class SlowdownChange(msgspec.Struct, frozen=True, kw_only=True):
    """A slowdown that two traces have, and its ratio, second over first."""

    name: str
    detail: str = ""
    communication: str
    first: Interval
    second: Interval
    ratio: Interval

    @property
    def changed(self) -> bool:
        """Whether the interval of the ratio excludes 1."""
        return self.ratio.low > 1 or self.ratio.high < 1


class OverlapComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two traces of the same program. Times per step where both name their steps (`per` is `step`).
    `cost_change`: by how much the cost of hiding is larger in the second one, s; None where one is not known.
    """

    schema: str = "elbowroom/trace-overlap-comparison"
    version: int = 1
    per: Literal["step", "trace"]
    first: TraceOverlap
    second: TraceOverlap
    classes: tuple[SlowdownChange, ...]
    cost_change: Interval | None = None
    verdict: str

    def __repr__(self) -> str:
        return f"OverlapComparison(first={self.first!r}, second={self.second!r})"

    __str__, _repr_html_ = display.text, display.html
