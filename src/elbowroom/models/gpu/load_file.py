"""Cases on an accelerator as people write them: tables `[[gpu]]` of a TOML file, and options."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from elbowroom.documents import check_keys, convert, parse_toml
from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.words import SMS_OF

PAGE = "`elbowroom help gpu-models`"

COUNTS = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
"""Numbers of SMs where none is named."""

_KEYS = ("victim", "mover", "direction", "sms", "pace_mb_s", "node", "first", "shape")


def holds_cases(text: str, where: str) -> bool:
    """Whether a TOML text has cases on an accelerator, rather than a load."""
    return "gpu" in parse_toml(text, field="load", where=where)


def decode(text: str, where: str) -> tuple[DeviceCase, ...]:
    """The cases of a TOML text with tables `[[gpu]]`; `where` names it in errors, which also tell field,
    value and hint.
    """
    data = parse_toml(text, field="load", where=where)
    check_keys(data, ("gpu",), of="cases on an accelerator", where=where)
    tables: Any = data["gpu"]
    rows = tables if isinstance(tables, list) else [tables]
    for row in rows:
        if isinstance(row, dict):
            check_keys(row, _KEYS, of="gpu", where=where, prefix="gpu.")
    plain = convert({"gpu": rows}, _Cases, where=where, subject="load", page=PAGE)
    if not plain.gpu:
        raise UsageError("defines no case", field="load", value=where, hint=f"add [[gpu]], see {PAGE}")
    return plain.gpu


class _Cases(msgspec.Struct, frozen=True):
    gpu: tuple[DeviceCase, ...]


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
