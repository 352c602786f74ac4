"""Broadcasts that are measured over MPI (lib/broadcast): what is asked, what is answered, and medians.

Measured broadcasts as figures (thesis, Figs. 4.3 and 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from elbowroom.broadcast.simulated import check_tree
from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.stats.summary import summarise

MOST_RANKS = 100_000

MOST_SIZE = 2**30
"""MPI's own broadcasts count bytes by int."""

MICRO = 1e6
"""us in a second."""


class BenchCase(msgspec.Struct, frozen=True, kw_only=True):
    """`size` bytes from rank 0 to ranks 1 to `recipients`, `repeat` times; `segment` and `window` in bytes, 0
    for whole messages and the library's window. `priorities` are alike, or rise with the rank as in Fig. 4.5
    of the thesis. `speeds`: of each rank's link, relative to each other; none: all alike.
    """

    size: int
    recipients: int
    tree: str = "binomial"
    segment: int = 0
    window: int = 0
    repeat: int = 5
    priorities: Literal["equal", "rising"] = "equal"
    speeds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_tree(self.tree)
        if not 1 <= self.size <= MOST_SIZE:
            raise UsageError(
                "is not between 1 B and 1 GiB", field="sizes", value=self.size, hint="give a smaller one"
            )
        if not 0 <= self.segment <= MOST_SIZE:
            raise UsageError("is more than 1 GiB", field="segment", value=self.segment, hint="give less")
        if not 1 <= self.recipients < MOST_RANKS:
            raise UsageError(
                f"is not between 1 and {MOST_RANKS - 1}",
                field="recipients",
                value=self.recipients,
                hint="for instance 7 of 8 ranks",
            )


class CaseTimes(msgspec.Struct, frozen=True):
    """s after the root sent, one row a repetition: when each recipient received the data, and when the root
    and each recipient released them; in the order of ranks.
    """

    received: tuple[tuple[float, ...], ...]
    released: tuple[tuple[float, ...], ...]

    def latencies(self) -> list[float]:
        """s until the last recipient had the data, by repetition (thesis, section 4.4.1)."""
        return [max(row) for row in self.received]


class MpiTimes(msgspec.Struct, frozen=True):
    """The same data by MPI_Bcast, MPI_Ibcast with MPI_Wait, and MPI_Isend to each recipient with MPI_Waitall:
    s until the last recipient had them, by repetition.
    """

    size: int
    recipients: int
    bcast: tuple[float, ...]
    ibcast: tuple[float, ...]
    sends: tuple[float, ...]


class Exchanges(msgspec.Struct, frozen=True):
    """Half the time of a message there and back between two ranks, s: medians of blocks that took turns."""

    mpi: tuple[float, ...]
    library: tuple[float, ...]


class OpenCosts(msgspec.Struct, frozen=True):
    """What is not to depend on what else is open: s of a `send` and of a message that is waited for (`wait`),
    and MiB of its process (`memory`), by tenths; s of a message while no rank computes (`alone`), and while
    one does (`beside`), by repetition.
    """

    send: tuple[float, ...]
    wait: tuple[float, ...]
    memory: tuple[float, ...]
    alone: tuple[float, ...]
    beside: tuple[float, ...]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the program answers: `cases` in the order of the request; `host_ranks` and `host_cores` of the
    host with the fewest cores for each rank; `clock_error`: how wrong times of two ranks may be, s.
    """

    ranks: int
    host_ranks: int
    host_cores: int
    mpi: str
    clock_error: float
    cases: tuple[CaseTimes, ...]
    beside: tuple[MpiTimes, ...] = ()
    latency: Exchanges | None = None
    open: OpenCosts | None = None

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks shared cores: then times tell of the scheduler, too."""
        return self.host_ranks > self.host_cores


class Time(msgspec.Struct, frozen=True, kw_only=True):
    """us: the median of the repetitions and its 95 % interval; None if there are too few for one."""

    median: float
    low: float | None
    high: float | None


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """The same of MPI_Bcast, of MPI_Ibcast, and of a loop of sends."""

    bcast: Time
    ibcast: Time
    sends: Time


class BroadcastEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `broadcast bench`: `time` until the last of `ranks` - 1 recipients has `size` bytes; us.
    `received` and `released`: medians of each rank, the latter from the root on. `oversubscribed`: ranks
    shared cores.
    """

    tree: str
    ranks: int
    size: int
    segment: int
    repeat: int
    priorities: str
    time: Time
    bandwidth: float
    beside: Beside
    received: tuple[float, ...]
    released: tuple[float, ...]
    oversubscribed: bool
    mpi: str


def cases(
    sizes: Sequence[int],
    recipients: Sequence[int],
    trees: Sequence[str],
    *,
    segment: int = 0,
    repeat: int = 5,
    rising: bool = False,
) -> list[BenchCase]:
    """All combinations."""
    return [
        BenchCase(
            size=size,
            recipients=count,
            tree=tree,
            segment=segment,
            repeat=repeat,
            priorities="rising" if rising else "equal",
        )
        for size in sizes
        for count in recipients
        for tree in trees
    ]


def summary(seconds: Sequence[float]) -> Time:
    """Of repetitions."""
    interval = summarise([value * MICRO for value in seconds], "us")
    return Time(median=interval.median, low=interval.low, high=interval.high)


def entries(requested: Sequence[BenchCase], measured: Measured) -> Iterator[BroadcastEntry]:
    """A line for each case, which was measured beside MPI."""
    beside = {(one.size, one.recipients): one for one in measured.beside}
    for case, times in zip(requested, measured.cases, strict=True):
        time = summary(times.latencies())
        others = beside[case.size, case.recipients]
        yield BroadcastEntry(
            tree=case.tree,
            ranks=case.recipients + 1,
            size=case.size,
            segment=case.segment,
            repeat=case.repeat,
            priorities=case.priorities,
            time=time,
            bandwidth=case.size / time.median,
            beside=Beside(
                bcast=summary(others.bcast), ibcast=summary(others.ibcast), sends=summary(others.sends)
            ),
            received=_by_rank(times.received),
            released=_by_rank(times.released),
            oversubscribed=measured.oversubscribed,
            mpi=measured.mpi,
        )


def _by_rank(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(summary(column).median for column in zip(*rows, strict=True))


Rows = TypeVar("Rows")


def read_bench(file: str | Path, rows: type[Rows]) -> Rows:
    """What `broadcast bench --json` printed; UsageError for another file."""
    hint = "give what `elbowroom broadcast bench --json` prints"
    data = read_document(Path(file), field="from", hint=hint)
    try:
        return msgspec.json.decode(data, type=rows)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"holds no rows of broadcasts: {error}", field="from", value=str(file), hint=hint
        ) from error


_HUES: tuple[Hue, ...] = ("blue", "red", "black")
_BAND = "95 % interval"
_MPI = {"bcast": "MPI_Bcast", "ibcast": "MPI_Ibcast", "sends": "loop of sends"}

Point = tuple[float, Time]


def broadcast_figures(rows: Sequence[BroadcastEntry]) -> list[Figure]:
    """Latency over recipients for each size that was sent to several numbers of them (Fig. 4.3a), and
    bandwidth over size for each number of recipients that got several sizes (Fig. 4.3b).
    """
    warning = "several ranks shared a core" if any(entry.oversubscribed for entry in rows) else ""
    figures = []
    for size in dict.fromkeys(entry.size for entry in rows):
        some = [entry for entry in rows if entry.size == size]
        if len({entry.ranks for entry in some}) > 1:
            figures.append(_over_recipients(some, size, warning))
    for ranks in dict.fromkeys(entry.ranks for entry in rows):
        some = [entry for entry in rows if entry.ranks == ranks]
        if len({entry.size for entry in some}) > 1:
            figures.append(_over_size(some, ranks, warning))
    return figures


def _over_recipients(rows: Sequence[BroadcastEntry], size: int, warning: str) -> Figure:
    return Figure(
        name=f"latency-{size}",
        title=f"Latency of broadcasts of {size} B",
        x=Axis(label="recipients", whole=True),
        left=Axis(label="until the last has the data (µs)"),
        series=_series(rows, lambda entry, time: (entry.ranks - 1.0, time)),
        warning=warning,
        caption="Medians and 95 % intervals, measured.",
    )


def _over_size(rows: Sequence[BroadcastEntry], ranks: int, warning: str) -> Figure:
    def rate(entry: BroadcastEntry, time: Time) -> Point:
        low = None if time.high is None else entry.size / time.high
        high = None if time.low is None else entry.size / time.low
        return float(entry.size), Time(median=entry.size / time.median, low=low, high=high)

    return Figure(
        name=f"bandwidth-{ranks}",
        title=f"Bandwidth of broadcasts to {ranks - 1} recipients",
        x=Axis(label="size", scale="log2", bytes=True),
        left=Axis(label="size / latency (MB/s)"),
        series=_series(rows, rate),
        warning=warning,
        caption="Medians and 95 % intervals, measured.",
    )


def _series(
    rows: Sequence[BroadcastEntry], point: Callable[[BroadcastEntry, Time], Point]
) -> tuple[Series, ...]:
    trees = list(dict.fromkeys(entry.tree for entry in rows))
    drawn = []
    for place, tree in enumerate(trees):
        points = [point(entry, entry.time) for entry in rows if entry.tree == tree]
        drawn.append(_curve(tree, points, _HUES[place % len(_HUES)], together=False))
    first = [entry for entry in rows if entry.tree == trees[0]]
    for place, (name, text) in enumerate(_MPI.items()):
        points = [point(entry, getattr(entry.beside, name)) for entry in first]
        drawn.append(_curve(text, points, _HUES[place], together=True))
    return tuple(drawn)


def _curve(name: str, points: Sequence[Point], hue: Hue, *, together: bool) -> Series:
    ordered = sorted(points, key=lambda one: one[0])
    known = all(time.low is not None for _, time in ordered)
    return Series(
        name=name,
        hue=hue,
        style="together" if together else "alone",
        x=tuple(x for x, _ in ordered),
        y=tuple(time.median for _, time in ordered),
        low=tuple(time.low or 0.0 for _, time in ordered) if known else (),
        high=tuple(time.high or 0.0 for _, time in ordered) if known else (),
        band=_BAND,
    )
