"""An error as a document: what every command prints on stdout with --json when it fails."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from elbowroom.errors import ElbowroomError


class ErrorParts(msgspec.Struct, frozen=True, kw_only=True):
    """`field` and `value` that are wrong, what is wrong with them, and a hint; empty where there is none."""

    field: str
    value: str | int | float | bool | list[Any] | None
    message: str
    hint: str


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a command that fails prints with --json; `exit_code` as in `elbowroom.cli`."""

    schema: str = "elbowroom/error"
    version: int = 1
    error: ErrorParts
    exit_code: int


def text_of(error: ElbowroomError) -> str:
    """The document as JSON on one line; a value that JSON does not know is written as text."""
    value = error.value
    plain = value if isinstance(value, str | int | float | bool | list | tuple | None) else str(value)
    if isinstance(plain, tuple):
        plain = list(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        plain = str(plain)
    parts = ErrorParts(field=error.field, value=plain, message=error.message, hint=error.hint)
    whole = ErrorDocument(error=parts, exit_code=error.exit_code)
    # Not by msgspec: names of files may hold bytes that are no UTF-8, which only \u escapes can say.
    return json.dumps(msgspec.to_builtins(whole))
