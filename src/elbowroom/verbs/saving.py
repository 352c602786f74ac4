"""Writing results to files: one function for the results of all commands."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from elbowroom.errors import UsageError, closest

MODULES = {
    "Advice": "advise",
    "BroadcastEntry": "broadcast_bench",
    "Calibration": "profile_calibrate",
    "Explanation": "explain",
    "FlushCosts": "trace_overhead",
    "ForecastDocument": "colocate_predict",
    "GpuAdvice": "advise",
    "NetworkDocument": "broadcasts",
    "Overhead": "trace_overhead",
    "Pairing": "colocate",
    "SchedulePlan": "colocate",
    "ShownProfile": "profile",
    "Simulated": "simulate",
    "Stat": "trace",
    "TraceActivity": "trace",
    "TraceOverlap": "trace_overlap",
}
"""By type of result, of a list by that of its items: the module of this package whose `save` writes it."""


def save(result: Any, path: Path | str) -> Path:
    """Writes a result of the Python interface to a file, in the format of its ending; returns the path.

    UsageError for what no command returns, and for endings of other formats.
    """
    kind = type(result[0] if isinstance(result, list) and result else result).__name__
    if kind not in MODULES:
        raise UsageError("cannot be saved", field="result", value=kind, hint=closest(kind, MODULES))
    importlib.import_module(f"elbowroom.verbs.{MODULES[kind]}").save(result, Path(path))
    return Path(path)
