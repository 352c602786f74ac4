"""Schema versions of the files people keep: older ones stay readable, newer ones are refused in words."""

from __future__ import annotations

from pathlib import Path

from elbowroom import __version__
from elbowroom.errors import UsageError


def check_version(path: Path, schema: str, found: object, known: int, release: object = None) -> None:
    """Refuses a file of a newer schema version, or one that carries none; `release` wrote it, if known."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise UsageError(f"carries no version of schema {schema}", field="file", value=str(path))
    if found > known:
        wrote = (
            f"elbowroom {release}" if release else "the release that wrote it (`elbowroom` in manifest.json)"
        )
        raise UsageError(
            f"was written by a newer release ({schema} version {found}; elbowroom {__version__} reads up to "
            f"version {known})",
            field="file",
            value=str(path),
            mend=f"read it with {wrote} or a later one",
        )
