"""Whether two descriptions are of the same machine: shapes of models, or machines as hwloc describes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import NumaNode

SHAPE = ("name", "cores_first_socket", "numa_per_socket", "sockets")
"""What the shape of a machine is compared by; a published machine and its virtual stand-in are the same."""

STRICT_SHAPE = (*SHAPE, "virtual")

HARDWARE = ("name", "model", "cores", "nodes", "hosts", "virtual")
"""What a machine is compared by; memory and what a process may set can change between two runs."""

BOOT_MEMORY = 0.1
"""How far the memory of a node may differ between two starts of one machine: its kernel keeps some of it, now
on this node and now on that one (seen: 6 % of a node of 1 GiB).
"""


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

    With `cluster`, names may differ in their numbers: nodes of a cluster count as one machine. Memory may
    differ as between two starts (BOOT_MEMORY).
    """
    for field in fields:
        values = getattr(one, field), getattr(other, field)
        names = (re.sub(r"\d+", "0", str(value)) for value in values)
        if cluster and field == "name" and next(names) == next(names):
            continue
        if not _equal(field, *values):
            return MachineDifference(field, *values)
    return None


def _equal(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field are those of one machine."""
    if field == "memory":
        return _equal_memory(one, other)
    if field == "nodes":
        return _without_memory(one) == _without_memory(other) and all(
            map(_equal_memory, _memories(one), _memories(other))
        )
    return bool(one == other)


def _equal_memory(one: int, other: int) -> bool:
    return abs(one - other) <= BOOT_MEMORY * max(one, other)


def _without_memory(nodes: Sequence[NumaNode]) -> list[NumaNode]:
    return [msgspec.structs.replace(node, memory=0) for node in nodes]


def _memories(nodes: Sequence[NumaNode]) -> list[int]:
    return [node.memory for node in nodes]


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
