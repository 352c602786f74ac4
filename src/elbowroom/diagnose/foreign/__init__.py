"""Profiles that other tools wrote: a module for each format, with `FORMAT`, `WRITTEN_BY`, `is_of` (the
first bytes of a file), `part_of` (which lines of a log are such a file) and `read` (its text, and the path
for errors).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from elbowroom.diagnose.foreign.profile import FIELD, ForeignProfile
from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.logs.lines import clean

HEAD = 1 << 14
"""Bytes by which a file is recognised."""


def readers() -> Iterator[Any]:
    """The modules that read a format."""
    for one in iter_modules(__path__):
        module = import_module(f"{__name__}.{one.name}")
        if hasattr(module, "FORMAT"):
            yield module


def read_foreign(path: Path) -> ForeignProfile:
    """The profile in a file, whose format is recognised by its first bytes, or in the output of a job:
    between other lines, or behind the labels of a launcher.

    UsageError for a file that cannot be read, that is of no known format, of two formats, or damaged; with
    the line, and the tool that writes such files.
    """
    known = tuple(readers())
    written = "; ".join(f"{one.FORMAT}: {one.WRITTEN_BY}" for one in known)
    data = read_document(path, field=FIELD, hint=f"give a file that one of these tools wrote: {written}")
    if not data.strip():
        raise UsageError("is empty", field=FIELD, value=str(path), hint=f"give a complete file ({written})")
    reader = next((one for one in known if one.is_of(data[:HEAD])), None)
    lines: list[str] = []
    if reader is None:
        lines = [line.text for line in clean(data.decode(errors="replace"))]
        reader = next((one for one in known if one.part_of(lines) is not None), None)
    if reader is None:
        first = data.splitlines()[0][:60].decode(errors="replace")
        raise UsageError(
            f"has an unknown format (line 1: {first!r})",
            field=FIELD,
            value=str(path),
            hint=f"known are {written}; for a trace: elbowroom trace overlap FILE",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(
            f"is damaged: line {line} is not text",
            field=FIELD,
            value=str(path),
            hint=f"{reader.WRITTEN_BY} writes such files: copy the file again, or record it again",
        ) from error
    lines = lines or text.splitlines()
    part = reader.part_of(lines)
    rest = [] if part is None else [*lines[: part.start], *lines[part.stop :]]
    if any(map(str.strip, rest)) and all(one.part_of(rest) is None for one in known):
        # Errors name the lines of the whole file.
        text = "\n" * part.start + "".join(f"{lines[at]}\n" for at in part)
    profile: ForeignProfile = reader.read(text, path)
    return profile
