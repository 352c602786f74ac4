"""A case on an accelerator: what computes (the victim), and what moves data beside it (the mover).

Words as in the workload `gpu` of plans. The SMs are the accelerator's multiprocessors.
"""

from __future__ import annotations

import math
import re
from typing import Literal, get_args

import msgspec

from elbowroom.documents import TomlFormat, parse_toml
from elbowroom.errors import UsageError, closest
from elbowroom.quantities import plural

Victim = Literal["gemm", "triad", "chain", "cores", "copy", ""]
Mover = Literal["", "copy", "messages", "sm_copy", "sm_idle", "sm_target"]
Direction = Literal["", "h2d", "d2h", "both", "d2d", "hbm", "host"]
First = Literal["victim", "mover"]

ON_DEVICE = ("gemm", "triad", "chain")
"""Victims that compute on the accelerator."""

SMS_OF = ("sm_copy", "sm_idle", "sm_target")
"""Movers that hold SMs, or stand for those that a plan leaves out."""

LINKS = ("h2d", "d2h", "both")
"""Directions of copies between host and device."""

DIRECTIONS_OF: dict[str, tuple[Direction, ...]] = {
    "": ("",),
    "copy": ("h2d", "d2h", "both", "d2d"),
    "messages": ("",),
    "sm_copy": ("hbm", "host"),
    "sm_idle": ("",),
    "sm_target": ("",),
}


class DeviceCase(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """`sms`: SMs that the mover holds, or that are left out of a plan (sm_target); `pace_mb_s`: the most that
    the mover moves, 0: as fast as it can; `node`: NUMA node of the pinned buffer, -1: none; `first`: which
    side starts first; `shape`: m, n, k of a matrix product, empty: the only one that was measured.
    """

    victim: Victim
    mover: Mover = ""
    direction: Direction = ""
    sms: int = 0
    pace_mb_s: float = 0.0
    node: int = -1
    first: First = "mover"
    shape: tuple[int, ...] = ()

    @property
    def planned(self) -> bool:
        """Whether the victim was planned for fewer SMs, rather than finds them held."""
        return self.mover == "sm_target"

    @property
    def family(self) -> str:
        """Cases that are alike but for SMs, pace and node: errors are told for each."""
        parts = (self.victim, self.mover, self.direction if self.mover in ("copy", "sm_copy") else "")
        return "/".join(part for part in parts if part)

    @property
    def mover_class(self) -> str:
        """What disturbs the victim: its cases are off for the same reasons."""
        return "sm_host" if (self.mover, self.direction) == ("sm_copy", "host") else self.mover

    @property
    def victim_text(self) -> str:
        return f"{self.victim} {'x'.join(map(str, self.shape))}" if self.shape else self.victim

    @property
    def mover_text(self) -> str:
        """What is beside it, for people."""
        sms = plural(self.sms, "SM")
        names = {
            "": "nothing",
            "copy": f"copy engine {self.direction}",
            "messages": "messages",
            "sm_copy": f"{sms} copying {'in HBM' if self.direction == 'hbm' else 'to host memory'}",
            "sm_idle": f"{sms} held idle",
            "sm_target": f"planned without {sms}",
        }
        pace = f" at {self.pace_mb_s:g} MB/s" if self.pace_mb_s else ""
        node = f", node {self.node}" if self.node >= 0 else ""
        late = ", victim first" if self.first == "victim" else ""
        return f"{names[self.mover]}{pace}{node}{late}"

    def text(self) -> str:
        """Both for people."""
        return f"{self.victim_text} beside {self.mover_text}"


def ordered(case: DeviceCase) -> DeviceCase:
    """The case with its order of starts, which matters only where SMs are held."""
    held = case.mover in ("sm_copy", "sm_idle")
    return case if held or case.first == "mover" else msgspec.structs.replace(case, first="mover")


def check_case(case: DeviceCase, sms: int) -> None:
    """UsageError for a case that no accelerator with that many SMs can have."""
    for field, value, words in (
        ("victim", case.victim, get_args(Victim)),
        ("mover", case.mover, get_args(Mover)),
        ("first", case.first, get_args(First)),
    ):
        if value not in words:
            raise UsageError("no such word", field=field, value=value, hint=closest(value, words))
    directions = DIRECTIONS_OF[case.mover]
    if case.direction not in directions:
        hint = f"give one of: {', '.join(directions)}" if directions != ("",) else "leave it out"
        raise UsageError(
            f"is not a direction of {case.mover or 'nothing'}",
            field="direction",
            value=case.direction,
            hint=hint,
        )
    if case.mover in SMS_OF and not 1 <= case.sms < sms:
        raise UsageError(
            f"the accelerator has {sms} SMs", field="sms", value=case.sms, hint=f"ask for 1 to {sms - 1}"
        )
    if case.mover not in SMS_OF and case.sms:
        raise UsageError(
            "is only valid with movers that hold SMs", field="sms", value=case.sms, hint="leave it out"
        )
    if not (case.pace_mb_s >= 0 and math.isfinite(case.pace_mb_s)):
        raise UsageError("is not a pace", field="pace", value=case.pace_mb_s, hint="give MB/s, 0 or more")
    if case.node < -1:
        raise UsageError("is not a NUMA node", field="node", value=case.node, hint="give 0 or more")
    if case.shape and (case.victim != "gemm" or len(case.shape) != 3 or min(case.shape) < 1):
        raise UsageError(
            "is not the shape of a product", field="shape", value=list(case.shape),
            hint="give m, n and k of victim gemm, each at least 1",
        )  # fmt: skip


PAGE = "`elbowroom help gpu-models`"

COUNTS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
"""Numbers of SMs where none is named."""


def holds_cases(text: str, where: str) -> bool:
    """Whether a TOML text has cases on an accelerator, rather than a load."""
    return "gpu" in parse_toml(text, field="load", where=where)


class _CaseFile(msgspec.Struct, frozen=True):
    gpu: tuple[DeviceCase, ...]


CASES = TomlFormat(kind=_CaseFile, field="load", of="cases on an accelerator", inside="", page=PAGE)


def decode(text: str, where: str) -> tuple[DeviceCase, ...]:
    """The cases of a TOML text with tables `[[gpu]]`; `where` names it in errors, which also tell field,
    value and hint.
    """
    cases = CASES.decode(
        text, where, lambda data: data if isinstance(data["gpu"], list) else {"gpu": [data["gpu"]]}
    )
    if not cases.gpu:
        raise UsageError("defines no case", field="load", value=where, hint=f"add [[gpu]], see {PAGE}")
    return cases.gpu


def parse_shape(text: str) -> tuple[int, ...]:
    """`8192x4096x7168`: m, n and k of a product."""
    numbers = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text.strip())
    if numbers is None:
        raise UsageError(
            "is not the shape of a product", field="shape", value=text, hint="write MxNxK: 8192x4096x7168"
        )
    return tuple(int(number) for number in numbers.groups())


def over_counts(case: DeviceCase, sms: int) -> tuple[DeviceCase, ...]:
    """The case with each of COUNTS that the accelerator has, where its mover holds SMs and none is named."""
    if case.mover not in SMS_OF or case.sms:
        return (case,)
    return tuple(msgspec.structs.replace(case, sms=count) for count in COUNTS if count < sms)
