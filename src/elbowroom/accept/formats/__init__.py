"""Formats of the result of `accept`: a file here for each, and those that installed packages declare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from elbowroom.accept.document import AcceptanceDocument
from elbowroom.errors import UsageError
from elbowroom.plugins import Registry


class AcceptanceFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format: its name, the endings of its files, and what makes the text."""

    name: str
    endings: tuple[str, ...]
    text: Callable[[AcceptanceDocument], bytes]


FORMATS: Registry[AcceptanceFormat] = Registry.of_modules(
    "acceptance_formats", "format", AcceptanceFormat, "elbowroom.accept.formats"
)
"""All formats: elbowroom's own and those of installed packages."""


def format_of(path: Path) -> AcceptanceFormat:
    """The format by the ending of a file's name; UsageError where there is none."""
    every = FORMATS.all()
    for one in every:
        if path.suffix.lower() in one.endings:
            return one
    endings = ", ".join(ending for one in every for ending in one.endings)
    raise UsageError(
        "its ending names no format", field="out", value=str(path), hint=f"end the name in {endings}"
    )
