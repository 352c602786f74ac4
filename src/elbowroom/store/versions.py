"""Schema versions of the files people keep: older ones stay readable, newer ones are refused in words."""

from __future__ import annotations

from pathlib import Path

from elbowroom import __version__
from elbowroom.errors import UsageError


def check_version(path: Path, schema: str, found: object, known: int) -> None:
    """Refuses a file of a newer schema version, or one that carries none."""
    if not isinstance(found, int) or found < 1:
        raise UsageError(f"carries no version of schema {schema}", field="file", value=str(path))
    if found > known:
        raise UsageError(
            f"was written by a newer release ({schema} version {found}; elbowroom {__version__} reads up to "
            f"version {known})",
            field="file",
            value=str(path),
            mend="read it with the release that wrote it (`elbowroom` in manifest.json) or a later one",
        )
