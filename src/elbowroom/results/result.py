"""What `show --json` prints for a point, and what experiments find in it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Literal

import msgspec

from elbowroom.points.point import Workload, kernel_beside_messages, stored
from elbowroom.stats.interval import WithInterval
from elbowroom.stats.overlap.measures import OverlapMeasures
from elbowroom.stats.starts import StartVariation


class Summary(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """Median, first and last decile, and the 95 % bootstrap interval of the median of `count` samples.

    `variation`: its parts between and within starts of the program; absent where a run has one start.
    """

    median: float
    d1: float
    d9: float
    low: float | None = None
    high: float | None = None
    count: int
    unit: str
    variation: StartVariation | msgspec.UnsetType = msgspec.UNSET


class Kept(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """together/alone of a rate, alone/together of a latency: 1 always means undisturbed.

    `value`: the pseudo-median of the ratios of the repetitions; `variation` as of a Summary.
    """

    value: float
    low: float | None = None
    high: float | None = None
    variation: StartVariation | msgspec.UnsetType = msgspec.UNSET


class Added(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """together - alone of a duration, in its unit (us); negative stays negative."""

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = "us"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a point; None where it was not measured (communication only, for instance).

    `added` is of durations only.
    """

    alone: Summary | None = None
    together: Summary | None = None
    kept: Kept | None = None
    added: Added | None = None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the messages of each size of a window, in us to 0.1 ns; all of the window's length.

    `minima`: the fastest message of each size in each repetition, one tuple a repetition.
    """

    median: tuple[float, ...]
    d1: tuple[float, ...]
    d9: tuple[float, ...]
    minimum: tuple[float, ...]
    mean: tuple[float, ...] = ()
    minima: tuple[tuple[float, ...], ...] = ()


class Misses(msgspec.Struct, frozen=True, kw_only=True):
    """Misses of one cache level during a message, on average, for each size of a window.

    `source`: `measured` by a hardware counter, or `modelled` by a model of this machine's caches.
    """

    level: Literal["L1", "L2", "L3"]
    rank: Literal["sender", "receiver"]
    source: Literal["measured", "modelled"]
    count: tuple[float, ...]


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a rank's call for a message takes, on average, for each size of a window, as the processor counts:
    `instructions`, `cycles`, or `L1_writes`.
    """

    name: str
    rank: Literal["sender", "receiver"]
    count: tuple[float, ...]


class WindowSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A window of extraneous accesses, size by size: one-way times of messages `after` accesses of that many
    `sizes` bytes, and of the control messages among them `without` any; cache misses where known.

    `sender`, `receiver`, `bystanders`: the cores they were on.
    """

    sizes: tuple[int, ...]
    after: Spread
    without: Spread
    misses: tuple[Misses, ...] = ()
    work: tuple[Work, ...] = ()
    sender: int = -1
    receiver: int = -1
    bystanders: tuple[int, ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Frequency of one core during one phase, in kHz every `interval_s` seconds, and the core's role; of a
    part of the uncore, `part` is its name and `core` -1.
    """

    phase: str
    core: int
    role: Literal["computing", "communication", "idle", "uncore"]
    interval_s: float
    khz: tuple[float, ...]
    part: str = ""


class MeasuredSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Whole steps of an application (the slowest process), and the part before anything can be sent, in us;
    its `facts` on its mesh and messages.
    """

    total: Summary
    separator: Summary | None = None
    facts: dict[str, float] = {}


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """One process of several: medians of what it computed and communicated, alone and together, in the units
    of the point's sides; None where it did not.
    """

    rank: int
    comp_alone: float | None = None
    comp_together: float | None = None
    comm_alone: float | None = None
    comm_together: float | None = None


class StreamBeside(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream did and kept in `phase`, which names the streams that ran: AB, AC, BC, ABC."""

    phase: str
    together: Summary
    kept: Kept | None = None


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of a point, alone and beside others: of three streams `cores`, `copies` and `messages`; of a
    chain of launches `p99`; of a device `sm_clock` and `power`.
    """

    name: str
    alone: Summary | None = None
    beside: tuple[StreamBeside, ...] = ()

    def kept(self, phase: str) -> Kept | None:
        """What it kept in a phase; None where that was not measured."""
        return next((item.kept for item in self.beside if item.phase == phase), None)


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """One measured point with both baselines and both ratios (docs/design/method.md, rule 19).

    Of an application, `comp` is its interior and `comm` its exchange, durations in us, and `steps` the whole.
    `comp_cores` are those of rank 0's computation, as the operating system numbers them. Of extraneous
    accesses `comm` is the one-way time, alone without them and together after them, and `series` each size's.
    Of a program, `facts` are its own figures of its work and results. Where several processes compute, or
    form a ring, `comp` and `comm` are means over them, and `by_process` has each.
    Of a case of an accelerator, `comp` is the victim and `comm` the mover, and `streams` has what else ran.
    Of a call beside a computation, `comp` and `comm` are durations, `steps` is the whole of both, `overlap`,
    `osu_overlap` and `fraction_of_ideal` are shares, and `overlapped` has them with intervals, and what is
    lost; all None where nothing was computed beside it. Documents have the reason of the loss as `reason`.
    `store_factor`: bytes on the memory bus for a byte of a plain store, if the run measured it (stores.py).
    """

    id: str
    plan: str
    kernel: str
    n: int
    size: int
    comp_node: int
    comm_node: int
    comm_core: int
    metric: Literal["latency", "bandwidth"]
    status: str
    flags: tuple[str, ...]
    comp: Side
    comm: Side
    reason: str = ""
    role: str = "point"
    pattern: str = "pingpong"
    cursor: int = 1
    comm_threads: int = 1
    processes: str = "node"
    reuse: str = "same"
    arithmetic_intensity: float | None = None
    core_khz: int | None = None
    uncore_khz: int | None = None
    turbo: bool | None = None
    governor: str | None = None
    traces: tuple[Trace, ...] = ()
    n_other: int = 0
    comp_cores: tuple[int, ...] = ()
    workload: Workload = msgspec.field(default_factory=kernel_beside_messages)
    steps: MeasuredSteps | None = None
    series: WindowSeries | None = None
    facts: dict[str, float] = {}
    by_process: tuple[ProcessResult, ...] | msgspec.UnsetType = msgspec.UNSET
    streams: tuple[StreamResult, ...] | msgspec.UnsetType = msgspec.UNSET
    overlap: float | msgspec.UnsetType | None = msgspec.UNSET
    osu_overlap: float | msgspec.UnsetType | None = msgspec.UNSET
    fraction_of_ideal: float | msgspec.UnsetType | None = msgspec.UNSET
    overlapped: OverlapMeasures | msgspec.UnsetType | None = msgspec.UNSET
    store_factor: float | msgspec.UnsetType = msgspec.UNSET

    @property
    def processes_of_node(self) -> int:
        """How many processes share the `n` computing cores of a node."""
        return (
            max(1, round(self.n / len(self.comp_cores)))
            if self.comp_cores and self.processes != "node"
            else 1
        )

    def stream(self, name: str) -> StreamResult | None:
        """The stream of that name; None where the point has none."""
        streams = () if isinstance(self.streams, msgspec.UnsetType) else self.streams
        return next((item for item in streams if item.name == name), None)

    def plain(self) -> dict[str, Any]:
        """Plain data, as `show --json` prints it."""
        plain = stored(self, self.workload)
        plain |= {key: plain.pop(key) for key in _LAST_KEYS}
        if isinstance(self.overlapped, OverlapMeasures):
            plain["reason"] = self.overlapped.reason
        return plain


_LAST_KEYS = ("application", "steps", "extraneous", "series", "program", "facts")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found in the data, in words and in numbers. `level` colours it, `points` says from where."""

    key: str
    level: Literal["quiet", "interference", "n/a", "note"]
    text: str
    values: dict[str, float | int | str | None] = {}
    points: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the machine was quiet enough to believe the run, and what the run says.

    `trusted` false means exit code 3; `reasons` then says why, one plain sentence each.
    """

    trusted: bool
    text: str
    reasons: tuple[str, ...] = ()
    interference: bool | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def further_reasons(self) -> tuple[str, ...]:
        """The reasons that `text` does not give already."""
        return tuple(reason for reason in self.reasons if reason not in self.text)


def mean_mhz(items: Sequence[PointResult], phase: str, role: str) -> float | None:
    """Mean frequency of the cores that play a role during a phase, MHz; None where none was readable."""
    traces = [trace for item in items for trace in item.traces if trace.phase == phase and trace.role == role]
    values = [khz / 1000 for trace in traces for khz in trace.khz]
    return fmean(values) if values else None
