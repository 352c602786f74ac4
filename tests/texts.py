"""What commands print for people."""

from __future__ import annotations


def widest(text: str) -> int:
    """The columns of the widest line; the next command is not wrapped, so that it can be copied."""
    return max(len(line) for line in text.splitlines() if not line.startswith("next: "))
