"""The sides of a case of an accelerator, as the program is sent them (docs/reference/gpu-bench.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.plan.kernels import find

WAYS = ("h2d", "d2h")
"""Directions of the link."""

LETTERS = "abc"

Kind = Literal["cores", "gemm", "triad", "chain", "copy", "messages", "sm_copy", "sm_idle", "sm_target"]

DIRECTIONS = {"copy": ("h2d", "d2h", "both", "d2d"), "sm_copy": ("hbm", "host")}
"""Of each kind that copies, the default first."""


class Side(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A side; what another kind has is 0 or empty. `node` -1: memory of the host near the device; `pace_mb_s`
    0: as fast as it can; `sm_target` 0: planned for all SMs. `pairs`: SMs are held in pairs; `plan_others`:
    a product beside it is planned for the SMs that it leaves.
    """

    kind: Kind
    direction: str = ""
    bytes: int = 0
    node: int = -1
    engine: str = ""
    sms: int = 0
    pairs: bool = False
    plan_others: bool = False
    pace_mb_s: float = 0.0
    m: int = 0
    n: int = 0
    k: int = 0
    sm_target: int = 0
    launches: int = 0
    kernel: str = ""
    cores: tuple[int, ...] = ()
    cursor: int = 1
    core: int = -1
    peer_core: int = -1
    latency: bool = False

    @property
    def holds(self) -> int:
        """SMs that it holds."""
        return self.sms if self.kind in ("sm_idle", "sm_copy") else 0

    @property
    def left_free(self) -> int:
        """SMs that a product beside it is planned without."""
        return self.sms if self.kind == "sm_target" or self.plan_others else 0

    @property
    def way(self) -> str:
        """The direction of a copy."""
        return self.direction or DIRECTIONS.get(self.kind, ("",))[0]

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions in which it uses the link."""
        if self.stores:
            return ("d2h",)
        if self.kind != "copy" or self.way == "d2d":
            return ()
        return WAYS if self.way == "both" else (self.way,)

    @property
    def stores(self) -> bool:
        """Whether its SMs store to the host."""
        return self.kind == "sm_copy" and self.way == "host"

    @property
    def passes(self) -> int:
        """How often each byte that it counts goes through the device's memory: twice in copies inside."""
        return 2 if self.kind in ("copy", "sm_copy") and not self.ways else 1

    def pace(self, most: float) -> float:
        """MB/s, at most `most`."""
        return min(self.pace_mb_s, most) if self.pace_mb_s > 0 else most


def sides_of(case: Mapping[str, Any]) -> dict[str, Side]:
    """The sides of a case by letter. UsageError for what a virtual GPU does not know."""
    return {letter: _side(case[letter]) for letter in LETTERS if letter in case}


def _side(plain: Mapping[str, Any]) -> Side:
    try:
        side = msgspec.convert(plain, Side)
    except msgspec.ValidationError as error:
        raise _unknown(f"does not know this side: {error}", plain.get("kind")) from None
    if side.way not in DIRECTIONS.get(side.kind, (side.way,)):
        raise _unknown(f"knows no copies in the direction {side.way}", side.kind)
    if side.engine == "plain":
        raise _unknown("leaves copies inside the device to its copy engine", side.engine)
    kernel = find(side.kernel or "none")
    if side.kind == "cores" and kernel is None:
        raise _unknown("needs a kernel for the cores of the host", side.kernel)
    if kernel is not None and kernel.pool:
        raise _unknown("simulates no list of tasks", side.kernel)
    return side


def _unknown(message: str, value: object) -> UsageError:
    return UsageError(
        f"a virtual GPU {message}", field="case", value=str(value), hint="see `elbowroom help virtual-gpu`"
    )


def held(sides: Sequence[Side]) -> int:
    """SMs that are held."""
    return sum(side.holds for side in sides)
