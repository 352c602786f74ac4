"""Writing results to files: one function for the results of all commands."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from elbowroom.errors import UsageError, closest

MODULES = {
    "Advice": "verbs.advise",
    "BroadcastEntry": "verbs.broadcast_bench",
    "BroadcastTree": "verbs.broadcast_draw",
    "CurvesDocument": "verbs.broadcast_curves",
    "Explanation": "verbs.explain",
    "Figure": "draw.files",
    "FlushCosts": "verbs.trace_overhead",
    "ForecastDocument": "verbs.colocate_predict",
    "GpuAdvice": "verbs.advise",
    "NetworkDocument": "verbs.broadcasts",
    "Overhead": "verbs.trace_overhead",
    "Pairing": "verbs.colocate",
    "ProfileCalibration": "verbs.nic_measure",
    "SchedulePlan": "verbs.colocate",
    "ShownProfile": "verbs.profile",
    "Simulated": "verbs.simulate_memory",
    "Stat": "verbs.trace",
    "TraceActivity": "verbs.trace",
    "TraceOverlap": "verbs.trace_overlap",
}
"""By type of result, of a list by that of its items: the module whose `save` writes it."""


def save(result: Any, path: Path | str) -> Path:
    """Writes a result or a figure to a file, in the format of its ending; returns the path.

    UsageError for what no command returns, and for endings of other formats.
    """
    kind = type(result[0] if isinstance(result, list) and result else result).__name__
    if kind not in MODULES:
        raise UsageError("cannot be saved", field="result", value=kind, hint=closest(kind, MODULES))
    importlib.import_module(f"elbowroom.{MODULES[kind]}").save(result, Path(path))
    return Path(path)
