"""Measured broadcasts as figures (thesis, Figs. 4.3 and 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.broadcast.measured import BroadcastEntry, Time
from elbowroom.draw.figure import Axis, Figure, Hue, Series

_HUES: tuple[Hue, ...] = ("blue", "red", "black")
_BAND = "95 % interval"
_MPI = {"bcast": "MPI_Bcast", "ibcast": "MPI_Ibcast", "sends": "loop of sends"}

Point = tuple[float, Time]


def broadcast_figures(found: Sequence[BroadcastEntry]) -> list[Figure]:
    """Latency over recipients for each size that was sent to several numbers of them (Fig. 4.3a), and
    bandwidth over size for each number of recipients that got several sizes (Fig. 4.3b).
    """
    warning = "several ranks shared a core" if any(entry.oversubscribed for entry in found) else ""
    figures = []
    for size in dict.fromkeys(entry.size for entry in found):
        some = [entry for entry in found if entry.size == size]
        if len({entry.ranks for entry in some}) > 1:
            figures.append(_over_recipients(some, size, warning))
    for ranks in dict.fromkeys(entry.ranks for entry in found):
        some = [entry for entry in found if entry.ranks == ranks]
        if len({entry.size for entry in some}) > 1:
            figures.append(_over_size(some, ranks, warning))
    return figures


def _over_recipients(found: Sequence[BroadcastEntry], size: int, warning: str) -> Figure:
    return Figure(
        name=f"latency-{size}",
        title=f"Latency of broadcasts of {size} B",
        x=Axis(label="recipients", whole=True),
        left=Axis(label="until the last has the data (µs)"),
        series=_series(found, lambda entry, time: (entry.ranks - 1.0, time)),
        warning=warning,
        caption="Medians and 95 % intervals, measured.",
    )


def _over_size(found: Sequence[BroadcastEntry], ranks: int, warning: str) -> Figure:
    def rate(entry: BroadcastEntry, time: Time) -> Point:
        low = None if time.high is None else entry.size / time.high
        high = None if time.low is None else entry.size / time.low
        return float(entry.size), Time(median=entry.size / time.median, low=low, high=high)

    return Figure(
        name=f"bandwidth-{ranks}",
        title=f"Bandwidth of broadcasts to {ranks - 1} recipients",
        x=Axis(label="size", scale="log2", bytes=True),
        left=Axis(label="size / latency (MB/s)"),
        series=_series(found, rate),
        warning=warning,
        caption="Medians and 95 % intervals, measured.",
    )


def _series(
    found: Sequence[BroadcastEntry], point: Callable[[BroadcastEntry, Time], Point]
) -> tuple[Series, ...]:
    trees = list(dict.fromkeys(entry.tree for entry in found))
    drawn = []
    for place, tree in enumerate(trees):
        points = [point(entry, entry.time) for entry in found if entry.tree == tree]
        drawn.append(_curve(tree, points, _HUES[place % len(_HUES)], together=False))
    first = [entry for entry in found if entry.tree == trees[0]]
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
