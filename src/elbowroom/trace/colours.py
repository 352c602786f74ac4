"""Colours of the types of events: those of the curves of the other pages, blues and greens for communication,
reds and oranges for computation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elbowroom.draw.palette import FAMILIES, ON_DARK, ON_LIGHT
from elbowroom.trace.columns import TracedJob

COMMUNICATION = ("mpi", "message", "communication", "network", "starpu-mpi")
COMPUTATION = ("task", "computation", "compute", "kernel")
"""Categories whose types are communication, or computation, by their names."""
GREYS = {"light": "#6B7480", "dark": "#9AA4B0"}
"""Of the recorder's own events."""

_OTHERS = ("purple", "sky", "orange", "green")
_SHADES = (0.0, 0.42, -0.34, 0.68)
"""How far a colour goes to white (or to black, below zero) when its family is used up."""


def of_types(job: TracedJob, begun: Sequence[int], events: Sequence[int]) -> list[tuple[str, str]]:
    """For each type its colour on a light and on a dark page. `begun` and `events` are how many of each there
    are: of a category, those that last and are many get the colours that differ most.
    """
    order = sorted(range(len(job.types)), key=lambda at: (not begun[at], -events[at], at))
    used: dict[str, int] = {}
    colours = {}
    for at in order:
        category = job.category(job.types[at])
        index = used[category] = used.get(category, -1) + 1
        light, dark = _colour(category, index, ON_LIGHT, "light"), _colour(category, index, ON_DARK, "dark")
        colours[at] = light, dark
    return [colours[at] for at in range(len(job.types))]


def _colour(category: str, index: int, palette: Mapping[str, str], page: str) -> str:
    if category == "trace":
        return GREYS[page]
    family, first = _family(category)
    shade = _SHADES[(first + index // len(family)) % len(_SHADES)]
    return _shaded(palette[family[index % len(family)]], shade)


def _family(category: str) -> tuple[tuple[str, ...], int]:
    """The hues of a category, and the first of their shades: those of neither family begin lighter."""
    if category.lower() in COMMUNICATION:
        return FAMILIES["blue"], 0
    if category.lower() in COMPUTATION:
        return FAMILIES["red"], 0
    return _OTHERS, 1


def _shaded(colour: str, shade: float) -> str:
    target = 255 if shade > 0 else 0
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (target - part) * abs(shade)):02X}" for part in parts)
