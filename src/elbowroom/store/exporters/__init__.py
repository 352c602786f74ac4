"""Formats of merged traces: a file each here, and those that installed packages declare
(docs/reference/extend.md).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from elbowroom import plugins
from elbowroom.errors import UsageError
from elbowroom.trace.exporter import Exporter


def _built_in() -> tuple[str, ...]:
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


def _own(name: str) -> Exporter:
    exporter: Exporter = import_module(f"{__name__}.{name}").EXPORTER
    return exporter


def _hint(_name: str, known: Sequence[str]) -> str:
    return f"one of: {', '.join(known)}"


EXPORTERS = plugins.Registry(
    "exporters",
    "format",
    built_in=_built_in,
    own=_own,
    added=plugins.instance_of(Exporter),
    field="to",
    hint=_hint,
)
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
