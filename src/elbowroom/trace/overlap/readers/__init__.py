"""Formats of traces that are read in this process: a module each, with `FORMAT`, `WRITTEN_BY`, `read` (into a
file on disk), and `is_of` (a file, by its first bytes) or `is_folder`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

HEAD = 1 << 14
"""Bytes of a file, decompressed, by which it is recognised."""


def readers() -> Iterator[Any]:
    """The modules that read a format."""
    for one in iter_modules(__path__):
        module = import_module(f"{__name__}.{one.name}")
        if hasattr(module, "FORMAT"):
            yield module


def reader_of(start: bytes) -> Any | None:
    """The reader of a file that begins like this; None: it is of none of these formats."""
    return next((one for one in readers() if hasattr(one, "is_of") and one.is_of(start)), None)


def folder_reader(path: Path) -> Any | None:
    """The reader of a folder; None: it is of none of these formats."""
    return next((one for one in readers() if hasattr(one, "is_folder") and one.is_folder(path)), None)
