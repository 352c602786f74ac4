"""JSON on stdout."""

from __future__ import annotations

import sys
from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """One object, indented, on stdout."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    sys.stdout.buffer.flush()
