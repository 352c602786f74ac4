"""Memory accesses between two messages: how long they take, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.kernel import check_memory
from elbowroom.points.payload import Collected, Payload, Records
from elbowroom.points.point import USUAL, Facts, Point, Steady, Times, register
from elbowroom.points.probe import ProbeWorkload, message_id, role_id, unit_times
from elbowroom.quantities import format_size
from elbowroom.schemas import WRITTEN
from elbowroom.stats.bootstrap import weights
from elbowroom.stats.interval import Side
from elbowroom.stats.signed_ranks import Floats, Ints
from elbowroom.stats.summary import side_of

# For the ETA only, on the safe side.
SMALL = 8_000_000  # bytes up to which most of them stay in some cache
TOUCHED = 14e9  # B/s and core, of small sizes
FAR = 4e9  # B/s and core, of larger ones
EXCHANGE = 3e-6  # s, a message and the barrier before it
UNTIMED = 1  # messages of each size with accesses, and as many without, before those that are timed

Who = Literal["none", "sender", "receiver", "both", "bystanders"]
Access = Literal["read", "write"]
Data = Literal["same", "different"]
Timing = Literal["one-way", "recv", "send", "recv-cpu", "send-cpu"]
BystanderKind = Literal["threads", "processes"]

TIMED: dict[Timing, str] = {
    "one-way": "one-way time",
    "recv": "duration of MPI_Recv",
    "send": "duration of MPI_Send",
    "recv-cpu": "CPU time of the thread in MPI_Recv",
    "send-cpu": "CPU time of the thread in MPI_Send",
}
"""What a message's time is, by how it is timed."""


RESAMPLES = 200
"""Of a window's medians: thousands of messages in each of hundreds of windows; fewer than elsewhere."""

DECIMALS = 4
"""Of us: 0.1 ns, below the resolution of any clock. The journal keeps all digits."""

LEVELS = ("L1", "L2", "L3")
RANKS = ("sender", "receiver")


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


class CallWork(msgspec.Struct, frozen=True, kw_only=True):
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
    work: tuple[CallWork, ...] = ()
    sender: int = -1
    receiver: int = -1
    bystanders: tuple[int, ...] = ()


class WindowPayload(Payload, frozen=True, kw_only=True):
    """The window size by size; None if one of the phases is missing."""

    series: WindowSeries | None = None


def series_of(payload: Payload) -> WindowSeries | None:
    """The window of a point; None if none was measured."""
    return payload.series if isinstance(payload, WindowPayload) else None


@register
class ExtraneousAccesses(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    """Extraneous memory accesses between two messages (Tan and Jarvis 2012, section 2): a window of sizes.

    `who` touches memory that no message is in: 64 B lines of `first`, `first + step` ... bytes, `count`
    sizes, read or written. `data`: whether the sender writes new contents before each message; `barrier`:
    whether one parts the accesses from the message, else the sender waits by the clock. Each size has
    `exchanges` timed messages with accesses, and as many without, interleaved, as a control. `timing`: the
    one-way time of a message, or how long a call lasts, by the clock or by the CPU time of its thread;
    `bystanders`: threads of the sender's process, or processes of their own.
    """

    key: ClassVar[str] = "extraneous"
    facts: ClassVar[Facts] = Facts(explainable=False)
    payload: ClassVar[type[Payload]] = WindowPayload
    virtual_refusal: ClassVar[str] = (
        "a virtual machine has no caches: extraneous accesses are measured on a real one"
    )

    who: Who
    access: Access
    first: int
    step: int
    count: int
    data: Annotated[Data, WRITTEN] = "same"
    barrier: Annotated[bool, WRITTEN] = True
    exchanges: Annotated[int, WRITTEN] = 16
    timing: Timing = "one-way"
    bystanders: BystanderKind = "threads"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the window in bytes, rising."""
        return tuple(self.first + number * self.step for number in range(self.count))

    @property
    def accessing_ranks(self) -> tuple[str, ...]:
        """Both for `both`, and where nobody accesses."""
        return (self.who,) if self.who in ("sender", "receiver", "bystanders") else ("sender", "receiver")

    def id(self, point: Point) -> str:
        parts = [*message_id(point), self.who, self.access, self.data]
        parts += [] if self.barrier else ["nobarrier"]
        parts += [] if self.timing == "one-way" else [self.timing]
        parts += [] if self.bystanders == "threads" else [self.bystanders]
        parts += [f"from{self.first}", f"by{self.step}", f"x{self.count}"]
        return "-".join(parts + role_id(point))

    @property
    def title(self) -> str:
        """The accesses: `sender writes, 0 to 39600 B`."""
        verb = "reads" if self.access == "read" else "writes"
        accesses = "no accesses" if self.who == "none" else f"{self.who} {verb}"
        data = "" if self.data == "same" else ", new data"
        barrier = "" if self.barrier else ", no barrier"
        timing = "" if self.timing == "one-way" else f", {TIMED[self.timing]}"
        processes = ", processes" if self.bystanders == "processes" else ""
        return f"{accesses}{processes}{data}{barrier}{timing}, {self.first} to {self.sizes[-1]} B"

    def collect(self, point: Point, records: Records) -> Collected:
        """The window size by size; the communication's side is of all its messages."""
        times = WindowTimes()
        reasons = [add(times, self.count, entry.record) for entry in records.entries]
        payload = self.fill(point, records, series=window_series(point, self.sizes, times))
        side = side_of_window(times, records.seed, records.starts)
        return Collected(payload, side, next(filter(None, reasons), ""))

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses messages and accesses that do not fit in memory."""
        check_memory(point, machine)
        cores = {"none": 0, "both": 2, "bystanders": point.n}.get(self.who, 1)
        fits(cores, self.sizes[-1], machine)

    def times(self, point: Point, closing: bool = False, steady: Steady = USUAL) -> Times:
        """All messages of its sizes, with accesses and without, are shared out among the phases, which are
        interleaved.
        """
        messages = self.exchanges + UNTIMED
        each = [size / (TOUCHED if size <= SMALL else FAR) for size in self.sizes if self.who != "none"]
        touching = messages * sum(each) + sum(each[-1:])
        phase = (touching + 2 * self.count * messages * EXCHANGE) / len(point.sequence)
        return unit_times(point, len(self.sequence(point, closing)), phase)


def fits(cores: int, most: int, machine: Machine) -> None:
    """UsageError where so many bytes for each of these cores are more than the memory of a host."""
    if machine.memory and cores * most > machine.memory:
        each = f"{cores} cores' accesses" if cores > 1 else "they"
        raise UsageError(
            "larger than memory",
            field="accesses",
            value=format_size(most),
            hint=f"{each} must fit in {format_size(machine.memory)}",
        )


@dataclass
class WindowTimes:
    """Times of the repetitions of one window: one array of shape (sizes, messages of a size) for each
    repetition and phase, after accesses and without; misses per (source, rank, level), one array of shape
    (sizes,) for each repetition; work per (rank, name) likewise; `starts_…`: which start of the program each
    array is from.
    """

    after: list[Floats] = field(default_factory=list)
    without: list[Floats] = field(default_factory=list)
    starts_after: list[int] = field(default_factory=list)
    starts_without: list[int] = field(default_factory=list)
    misses: dict[tuple[str, str, str], list[Floats]] = field(default_factory=dict)
    work: dict[tuple[str, str], list[Floats]] = field(default_factory=dict)


def add(times: WindowTimes, sizes: int, record: Mapping[str, object]) -> str:
    """Adds a repetition's record (docs/reference/protocol.md); what is wrong with it, or the empty string.

    Phase B holds the messages without accesses, AB those after them; a void phase is left out.
    """
    for phase in cast(Sequence[Mapping[str, object]], record.get("phases", ())):
        comm = cast(Mapping[str, object], phase.get("comm") or {})
        batches = np.asarray(comm.get("batches", ()), dtype=np.float64)
        if phase.get("status") == "void" or phase.get("phase") not in ("B", "AB"):
            continue
        if batches.size == 0 or batches.size % sizes or not np.isfinite(batches).all():
            return f"{batches.size} one-way times were answered for {sizes} sizes"
        together = phase["phase"] == "AB"
        (times.after if together else times.without).append(batches.reshape(sizes, -1))
        start = cast(int, record.get("start", 0))
        (times.starts_after if together else times.starts_without).append(start)
        if phase["phase"] == "AB":
            misses = cast(Mapping[str, Any], phase.get("misses") or {})
            for counted in (misses, misses.get("measured") or {}):
                for rank, level, counts in _by_rank(sizes, counted):
                    if level in LEVELS:
                        key = (str(counted.get("source")), rank, level)
                        times.misses.setdefault(key, []).append(counts)
            for rank, name, counts in _by_rank(sizes, misses.get("work") or {}):
                times.work.setdefault((rank, name), []).append(counts)
    return ""


def _by_rank(sizes: int, counted: Mapping[str, object]) -> Iterator[tuple[str, str, Floats]]:
    """Rank, name and counts of what was counted for each size."""
    for rank in RANKS:
        for name, counts in cast(Mapping[str, Sequence[float]], counted.get(rank) or {}).items():
            if len(counts) == sizes:
                yield rank, name, np.asarray(counts, dtype=np.float64)


def window_series(point: Point, sizes: tuple[int, ...], times: WindowTimes) -> WindowSeries | None:
    """The window size by size; None where one of the phases is missing."""
    if not times.after or not times.without:
        return None
    return WindowSeries(
        sizes=sizes,
        after=_spread(times.after),
        without=_spread(times.without),
        misses=tuple(
            Misses(
                level=cast(Literal["L1", "L2", "L3"], level),
                rank=cast(Literal["sender", "receiver"], rank),
                source=cast(Literal["measured", "modelled"], source),
                count=_rounded(np.mean(counts, axis=0)),
            )
            for (source, rank, level), counts in sorted(times.misses.items())
        ),
        work=tuple(
            CallWork(
                name=name,
                rank=cast(Literal["sender", "receiver"], rank),
                count=_rounded(np.mean(counts, axis=0)),
            )
            for (rank, name), counts in sorted(times.work.items())
        ),
        sender=(point.comm_cores or (point.comm_core,))[0],
        receiver=(point.peer_cores or point.comm_cores or (point.comm_core,))[0],
        bystanders=point.comp_cores,
    )


def _spread(repetitions: Sequence[Floats]) -> Spread:
    values = np.concatenate(repetitions, axis=1)
    d1, median, d9 = np.quantile(values, (0.1, 0.5, 0.9), axis=1)
    return Spread(
        median=_rounded(median),
        d1=_rounded(d1),
        d9=_rounded(d9),
        minimum=_rounded(values.min(axis=1)),
        mean=_rounded(values.mean(axis=1)),
        minima=tuple(_rounded(repetition.min(axis=1)) for repetition in repetitions),
    )


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(values, DECIMALS).tolist())


def side_of_window(times: WindowTimes, seed: int, starts: bool = False) -> Side:
    """One-way times of all messages of the window, alone (without accesses) and together (after them).

    The intervals are those of medians resampled over the sizes, the messages of one size together with and
    without accesses, as they were measured next to each other. With several `starts` of the program they are
    those of the starts, each repetition with the median of its messages.
    """
    if not times.after or not times.without:
        return Side()
    if starts:
        medians = [np.array([np.median(one) for one in side]) for side in (times.without, times.after)]
        numbers = [np.arange(len(side)) for side in medians]
        of_start = np.array(times.starts_without), np.array(times.starts_after)
        return side_of(medians[0], numbers[0], medians[1], numbers[1], unit="us", seed=seed, starts=of_start)
    (alone, apart), (together, joined) = _column(times.without), _column(times.after)
    return side_of(
        alone, apart, together, joined, unit="us", seed=seed, drawn=_weights(len(times.after[0]), seed)
    )


def _column(repetitions: Sequence[Floats]) -> tuple[Floats, Ints]:
    """All messages in one column, and the number of each one's size."""
    values = np.concatenate(repetitions, axis=1)
    return values.ravel(), np.repeat(np.arange(values.shape[0]), values.shape[1])


@lru_cache(maxsize=8)
def _weights(sizes: int, seed: int) -> NDArray[np.int16]:
    return weights(sizes, seed, RESAMPLES)
