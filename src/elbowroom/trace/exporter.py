"""What writes a merged trace in a format of its own, and what it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The trace in `directory` is written to `path`: from `begin_ns` to `end_ns`, ns since its start (None:
    not bounded), and some categories (none: all).
    """

    directory: str
    path: Path
    begin_ns: int | None = None
    end_ns: int | None = None
    categories: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all of the trace is written."""
        return self.begin_ns is None and self.end_ns is None and not self.categories


@dataclass(frozen=True)
class Exporter:
    """A format; its file in `store/exporters/` declares it as `EXPORTER` (what trace-reader writes: a line of
    `BY_READER`), or a package as an entry point of the group `elbowroom.exporters`.

    Names of files with one of these `endings` mean it. `write` reads a merged trace (trace.columns) and
    writes the file, whole or not at all (`files.write_atomically`); None: trace-reader writes it itself.
    `parts`: it can write a part of the time, and some categories.
    """

    name: str
    endings: tuple[str, ...]
    write: Callable[[IO[bytes], ExportRequest], object] | None = None
    parts: bool = False
