"""Meshes that were really partitioned: what their parts hold and exchange, scaled to other meshes.

The numbers were counted by `diffusion volumes` on meshes that METIS cut (machines/partitions/). A part's
border is a surface and its cells a volume: on a mesh with f times the cells every border has f^(2/3) times
the faces, with the same number of parts. A test checks how well that holds between the meshes that were
partitioned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import data_folder

FILE = data_folder("machines") / "partitions" / "diffusion-metis.json"


class Volumes(msgspec.Struct, frozen=True, kw_only=True):
    """A mesh of `cells` cells in `parts` parts, as `diffusion volumes` counts: cells of the largest part;
    cells with a neighbour elsewhere, on average and in the part that has most; bytes sent in a step by all,
    on average and by the part that sends most; the largest message; messages of a part, on average and at
    most.
    """

    parts: int
    cells: int
    cells_largest: float
    separator_cells_average: float
    separator_cells_largest: float
    sent_total: float
    sent_average: float
    sent_largest: float
    message_largest: float
    messages_average: float
    messages_largest: float

    @property
    def message_average(self) -> float:
        """Bytes."""
        return self.sent_average / self.messages_average if self.messages_average else 0.0


_SURFACES = (
    "separator_cells_average",
    "separator_cells_largest",
    "sent_total",
    "sent_average",
    "sent_largest",
    "message_largest",
)
"""What grows as the border of a part."""

_MEANS = (*_SURFACES, "cells_largest", "messages_average", "messages_largest")
"""What is interpolated between numbers of parts."""


class Mesh(msgspec.Struct, frozen=True, kw_only=True):
    """What the command printed for one mesh."""

    cells: int
    partitioner: str
    volumes: tuple[Volumes, ...]


class Partitions(msgspec.Struct, frozen=True, kw_only=True):
    """The file: what was partitioned, by which command."""

    schema: str
    version: int
    source: str
    command: str
    meshes: tuple[Mesh, ...]

    @property
    def volumes(self) -> tuple[Volumes, ...]:
        return tuple(item for mesh in self.meshes for item in mesh.volumes)


@cache
def partitions() -> Partitions:
    """What was counted."""
    return msgspec.json.decode(FILE.read_bytes(), type=Partitions)


def scaled(cells: int, parts: int, counted: Sequence[Volumes] | None = None) -> Volumes:
    """The volumes of a mesh of `cells` cells in `parts` parts, from the largest mesh counted.

    Between numbers of parts that were counted, powers are interpolated. UsageError for more or fewer parts.
    """
    counted = partitions().volumes if counted is None else counted
    largest = max(item.cells for item in counted)
    known = sorted((item for item in counted if item.cells == largest), key=lambda item: item.parts)
    if not known[0].parts <= parts <= known[-1].parts:
        raise UsageError(
            f"partitions were counted for {known[0].parts} to {known[-1].parts} nodes",
            field="nodes",
            value=parts,
            hint=f"choose nodes between {known[0].parts} and {known[-1].parts}",
        )
    return resized(_between(known, parts), cells)


def resized(item: Volumes, cells: int) -> Volumes:
    """The volumes of a mesh with so many cells in as many parts."""
    more = cells / item.cells
    border = more ** (2 / 3)
    changed = {name: getattr(item, name) * border for name in _SURFACES}
    return msgspec.structs.replace(item, cells=cells, cells_largest=item.cells_largest * more, **changed)


def _between(known: Sequence[Volumes], parts: int) -> Volumes:
    below = max((item for item in known if item.parts <= parts), key=lambda item: item.parts)
    above = min((item for item in known if item.parts >= parts), key=lambda item: item.parts)
    if below is above:
        return below
    share = math.log(parts / below.parts) / math.log(above.parts / below.parts)
    values = {name: getattr(below, name) ** (1 - share) * getattr(above, name) ** share for name in _MEANS}
    return msgspec.structs.replace(below, parts=parts, **values)
