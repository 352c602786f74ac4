"""Formats of merged traces: a file each here, and those that installed packages declare
(docs/reference/extend.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from elbowroom import plugins
from elbowroom.errors import UsageError
from elbowroom.trace.exporter import Exporter


def _hint(_name: str, known: Sequence[str]) -> str:
    return f"one of: {', '.join(known)}"


EXPORTERS = plugins.Registry.of_modules("exporters", "format", Exporter, __name__, field="to", hint=_hint)
names = EXPORTERS.names


def exporter_of(out: str | Path, to: str | None = None) -> Exporter:
    """The exporter of the format `to`, else of the ending; UsageError where there is none."""
    if to is not None:
        return EXPORTERS.get(to)
    ending = Path(out).suffix.lower()
    every = EXPORTERS.all()
    for exporter in every:
        if ending in exporter.endings:
            return exporter
    raise UsageError(
        "its ending names no format",
        field="out",
        value=str(out),
        hint=f"end it in {', '.join(exporter.endings[0] for exporter in every)}, or give --to FORMAT",
    )
