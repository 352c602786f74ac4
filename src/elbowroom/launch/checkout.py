"""The commit of the checkout that elbowroom runs from."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

_PATIENCE = 10


@functools.cache
def commit(root: Path) -> str | None:
    """The commit of a checkout, with `+` where tracked files differ from it; None where git cannot tell. Read
    once in a process.
    """
    try:
        named, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=_PATIENCE
            )
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if named.returncode or changed.returncode:
        return None
    return named.stdout.strip() + ("+" if changed.stdout.strip() else "")
