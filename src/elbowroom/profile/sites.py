"""Where a program calls MPI: function, file and line of a site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from elbowroom.profile.rank_file import Site


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """A site as its symbols name it; None where there are none. `offset`: of the call in its module."""

    module: str
    offset: int
    function: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def text(self) -> str:
        """As `exchange (halo.c:42)`, `exchange (libhalo.so+0x1140)`, or `unknown place`."""
        if not self.module:
            return "unknown place"
        where = f"{PurePath(self.module).name}+{self.offset:#x}"
        if self.file is not None:
            where = PurePath(self.file).name + ("" if self.line is None else f":{self.line}")
        return where if self.function is None else f"{self.function} ({where})"


def locate(sites: Sequence[Site]) -> tuple[Location, ...]:
    """The location of each site."""
    return tuple(Location(module=site.module, offset=site.offset) for site in sites)
