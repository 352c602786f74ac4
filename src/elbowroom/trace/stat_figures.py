"""Figures of how many events there are, of which type, when (thesis, Figs. 3.5 to 3.7)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.trace.documents import Stat, TypeStat
from elbowroom.trace.mpi_calls import SET_UP, communicates, sets_up

_HUES: tuple[Hue, ...] = ("red", "blue")

BARS = 7
"""Types that have a bar of their own, the most frequent ones: more names do not fit side by side."""

_LETTERS = 9
"""Of a name's line below a bar."""

_AREAS = 3
"""Types of each hue that have an area of their own: a hue has so many colours."""


def trace_figures(stat: Stat) -> list[Figure]:
    """Events by type, per second over time, and per second over time by type (thesis, Figs. 3.5 to 3.7)."""
    there = [one for one in stat.types if one.events]
    ordered = sorted(there, key=lambda one: (-one.events, one.category, one.name))
    return [_by_type(ordered), _over_time(stat, ordered), _by_type_over_time(stat, ordered)]


def rates(stat: Stat, one: TypeStat) -> tuple[float, ...]:
    """Events per second in each bin."""
    seconds = stat.bin_ns / 1e9
    return tuple(count / seconds for count in one.per_bin)


def _by_type(ordered: Sequence[TypeStat]) -> Figure:
    shown, rest = ordered[:BARS], ordered[BARS:]
    names = [_breakable(one.name) for one in shown] + [f"{len(rest)} more"] * bool(rest)
    series = [
        _bars("blue", "MPI and messages", shown),
        _bars("red", "other types", shown),
        _bars("black", SET_UP, shown),
    ]
    if rest:
        series.append(
            Series(
                name="all other types",
                style="line",
                drawn="bars",
                x=(float(len(shown)),),
                y=(float(sum(one.events for one in rest)),),
                value="events",
            )
        )
    return Figure(
        name="types",
        title="Events by type",
        x=Axis(label="type", names=tuple(names)),
        left=Axis(label="events"),
        series=tuple(one for one in series if one is not None),
    )


def _bars(hue: Hue, name: str, shown: Sequence[TypeStat]) -> Series | None:
    places = [place for place, one in enumerate(shown) if _hue(one) == hue]
    if not places:
        return None
    return Series(
        name=name,
        hue=hue,
        style="line",
        drawn="bars",
        x=tuple(float(place) for place in places),
        y=tuple(float(shown[place].events) for place in places),
        value="events",
    )


def _breakable(name: str) -> str:
    """Long names may go on in another line after an underscore."""
    return name if len(name) <= _LETTERS else name.replace("_", "_ ")


def _over_time(stat: Stat, ordered: Sequence[TypeStat]) -> Figure:
    return Figure(
        name="events",
        title="Events over time",
        x=Axis(label="time (s)"),
        left=Axis(label="events per second"),
        series=(_area(stat, "all types", "black", ordered),) if ordered else (),
    )


def _by_type_over_time(stat: Stat, ordered: Sequence[TypeStat]) -> Figure:
    own = [one for hue in _HUES for one in [one for one in ordered if _hue(one) == hue][:_AREAS]]
    rest = [one for one in ordered if one not in own]
    series = [_area(stat, one.name, _hue(one), [one]) for one in own]
    if rest:
        series.append(_area(stat, f"{len(rest)} other types", "black", rest))
    return Figure(
        name="types-over-time",
        title="Events over time by type",
        x=Axis(label="time (s)"),
        left=Axis(label="events per second"),
        series=tuple(series),
    )


def _area(stat: Stat, name: str, hue: Hue, types: Sequence[TypeStat]) -> Series:
    """Events per second of these types together, at the middles of the bins."""
    heights = [sum(values) for values in zip(*(rates(stat, one) for one in types), strict=True)]
    return Series(
        name=name,
        hue=hue,
        style="line",
        drawn="area",
        x=tuple((place + 0.5) * stat.bin_ns / 1e9 for place in range(len(heights))),
        y=tuple(heights),
        value="events per second",
    )


def _hue(one: TypeStat) -> Hue:
    if sets_up(one.name):
        return "black"
    return "blue" if communicates(one.category, one.name) else "red"
