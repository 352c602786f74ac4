"""Whether two descriptions are of the same machine: shapes of models, or machines as hwloc describes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.errors import UsageError

SHAPE = ("name", "cores_first_socket", "numa_per_socket", "sockets")
"""What the shape of a machine is compared by; a published machine and its virtual stand-in are the same."""

STRICT_SHAPE = (*SHAPE, "virtual")

HARDWARE = ("name", "model", "cores", "nodes", "hosts", "virtual")
"""What a machine is compared by; memory and what a process may set can change between two runs."""


class MachineDifference(NamedTuple):
    """The first field in which two machines differ, and its values."""

    field: str
    one: object
    other: object

    def text(self, one: str = "here", other: str = "there") -> str:
        """`name is 'a' here and 'b' there`; large values are not repeated."""
        if not isinstance(self.one, str | int):
            return f"its {self.field} differ"
        return f"{self.field} is {self.one!r} {one} and {self.other!r} {other}"


def difference(
    one: object, other: object, fields: Sequence[str], *, cluster: bool = False
) -> MachineDifference | None:
    """The first of the fields in which two machines differ; None for the same machine.

    With `cluster`, names may differ in their numbers: nodes of a cluster count as one machine.
    """
    for field in fields:
        values = getattr(one, field), getattr(other, field)
        names = (re.sub(r"\d+", "0", str(value)) for value in values)
        if values[0] != values[1] and not (cluster and field == "name" and next(names) == next(names)):
            return MachineDifference(field, *values)
    return None


def check_same(
    difference: MachineDifference | None,
    *,
    field: str,
    value: object,
    hint: str,
    message: str = "is from another machine",
    places: tuple[str, str] = ("here", "there"),
) -> None:
    """UsageError where two machines differ; `places` say where each of the two values is."""
    if difference is not None:
        raise UsageError(f"{message}: {difference.text(*places)}", field=field, value=value, hint=hint)
