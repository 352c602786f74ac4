"""Formats of merged traces: those that trace-reader writes itself (lib/trace/outputs), a file here for each
other, and those that installed packages declare (docs/reference/extend.md).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from elbowroom import plugins
from elbowroom.errors import UsageError
from elbowroom.trace.exporter import Exporter

BY_READER = {
    "dot": (".dot", ".gv"),
    "json": (".json",),
    "otf2": (".otf2",),
    "paje": (".paje", ".trace"),
    "pftrace": (".pftrace", ".perfetto-trace"),
}
"""Endings of the graph of tasks for Graphviz, Chrome's trace events, the Open Trace Format 2, Paje, and
Perfetto's protocol buffers.
"""


def _built_in() -> tuple[str, ...]:
    return tuple(sorted((*BY_READER, *(module.name for module in pkgutil.iter_modules(__path__)))))


def _own(name: str) -> Exporter:
    if name in BY_READER:
        return Exporter(name=name, endings=BY_READER[name])
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
    field="format",
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
