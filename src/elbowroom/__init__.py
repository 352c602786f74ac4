"""elbowroom: how much computation and communication slow each other down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from elbowroom.api import Overrides as Overrides
    from elbowroom.api import Run as Run
    from elbowroom.api import best_split as best_split
    from elbowroom.api import calibrate as calibrate
    from elbowroom.api import check_trace as check_trace
    from elbowroom.api import compare as compare
    from elbowroom.api import contention_maps as contention_maps
    from elbowroom.api import doctor as doctor
    from elbowroom.api import dry_run as dry_run
    from elbowroom.api import evaluate as evaluate
    from elbowroom.api import explain as explain
    from elbowroom.api import explanation_figures as explanation_figures
    from elbowroom.api import fit as fit
    from elbowroom.api import import_curves as import_curves
    from elbowroom.api import load_advice as load_advice
    from elbowroom.api import load_model as load_model
    from elbowroom.api import machine_from_run as machine_from_run
    from elbowroom.api import machine_names as machine_names
    from elbowroom.api import map_figures as map_figures
    from elbowroom.api import merge_trace as merge_trace
    from elbowroom.api import open as open
    from elbowroom.api import overlap as overlap
    from elbowroom.api import overlap_predicted as overlap_predicted
    from elbowroom.api import overlap_table as overlap_table
    from elbowroom.api import read_load as read_load
    from elbowroom.api import record_trace as record_trace
    from elbowroom.api import resume as resume
    from elbowroom.api import resume_calibration as resume_calibration
    from elbowroom.api import run as run
    from elbowroom.api import save_advice as save_advice
    from elbowroom.api import save_explanation as save_explanation
    from elbowroom.api import save_map as save_map
    from elbowroom.api import save_overhead_figure as save_overhead_figure
    from elbowroom.api import save_overlap_figure as save_overlap_figure
    from elbowroom.api import save_sync_report as save_sync_report
    from elbowroom.api import save_trace_figure as save_trace_figure
    from elbowroom.api import simulate as simulate
    from elbowroom.api import simulate_clocks as simulate_clocks
    from elbowroom.api import simulate_questions as simulate_questions
    from elbowroom.api import simulated_node as simulated_node
    from elbowroom.api import step_table as step_table
    from elbowroom.api import trace_dag as trace_dag
    from elbowroom.api import trace_overhead as trace_overhead
    from elbowroom.api import trace_stat as trace_stat
    from elbowroom.api import trace_sync as trace_sync
    from elbowroom.api import verify_advice as verify_advice
    from elbowroom.api import virtual_machine as virtual_machine

__all__ = [
    "Overrides",
    "Run",
    "__version__",
    "best_split",
    "calibrate",
    "check_trace",
    "compare",
    "contention_maps",
    "doctor",
    "dry_run",
    "evaluate",
    "explain",
    "explanation_figures",
    "fit",
    "import_curves",
    "load_advice",
    "load_model",
    "machine_from_run",
    "machine_names",
    "map_figures",
    "merge_trace",
    "open",
    "overlap",
    "overlap_predicted",
    "overlap_table",
    "read_load",
    "record_trace",
    "resume",
    "resume_calibration",
    "run",
    "save_advice",
    "save_explanation",
    "save_map",
    "save_overhead_figure",
    "save_overlap_figure",
    "save_sync_report",
    "save_trace_figure",
    "simulate",
    "simulate_clocks",
    "simulate_questions",
    "simulated_node",
    "step_table",
    "trace_dag",
    "trace_overhead",
    "trace_stat",
    "trace_sync",
    "verify_advice",
    "virtual_machine",
]


def __getattr__(name: str) -> Any:
    """The public names come from `api` when they are first used: `import elbowroom` alone stays quick."""
    if name in __all__:
        from elbowroom import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
