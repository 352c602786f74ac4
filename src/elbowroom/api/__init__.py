"""The public Python interface; the command line is written on it.

import elbowroom

run = elbowroom.open("runs/quick-20260101-120000")
run.verdict.text, run.points(), run.table(), run.frame()
elbowroom.run("quick", overrides=elbowroom.Overrides(kernels=("triad",)))
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

PUBLIC = {
    name: module
    for module, names in {
        "elbowroom.api.advice": (
            "contention_maps",
            "load_advice",
            "map_figures",
            "save_advice",
            "save_map",
            "verify_advice",
        ),
        "elbowroom.api.broadcasts": (
            "fit_broadcast_network",
            "load_network",
            "save_network",
            "simulate_broadcast",
            "tune_broadcasts",
        ),
        "elbowroom.api.broadcast_bench": ("bench_broadcasts", "broadcast_figures", "save_broadcast_figure"),
        "elbowroom.api.calibration": (
            "Calibrated",
            "calibrate",
            "evaluate",
            "fit",
            "import_curves",
            "resume_calibration",
        ),
        "elbowroom.api.colocation": (
            "load_schedule",
            "pair_applications",
            "save_matrix_figure",
            "save_pairing",
            "save_schedule",
            "save_slurm_script",
            "schedule_jobs",
        ),
        "elbowroom.api.colocation_forecast": ("forecast_colocation", "save_forecast"),
        "elbowroom.api.colocation_measurement": ("measure_pairs", "plan_colocation"),
        "elbowroom.api.emulated_nic": ("NicSettings", "run_behind_nic"),
        "elbowroom.api.job_calibration": ("calibrate_for_jobs",),
        "elbowroom.api.network_calibration": ("calibrate_network", "load_calibration", "save_calibration"),
        "elbowroom.api.factorizations": ("simulate_factorization",),
        "elbowroom.api.diagnosis": ("diagnose",),
        "elbowroom.verbs.explain": ("explain", "explanation_figures", "save_explanation"),
        "elbowroom.api.machines": (
            "doctor",
            "machine_from_run",
            "machine_names",
            "machine_text",
            "virtual_machine",
        ),
        "elbowroom.api.measurement": ("compare", "dry_run", "resume", "run"),
        "elbowroom.api.gpu_advice": ("advise_gpu", "load_gpu_job", "save_gpu_advice"),
        "elbowroom.api.gpu_models": ("predict_cases", "read_cases"),
        "elbowroom.api.models": (
            "Evaluation",
            "Model",
            "advise",
            "load_job",
            "load_model",
            "predict",
            "read_load",
            "save_figure",
            "save_panels",
        ),
        "elbowroom.api.profiles": ("record_profile", "save_profile", "show_profile"),
        "elbowroom.api.flush_cost": ("save_flush_figure", "trace_flushes"),
        "elbowroom.api.recording_cost": ("overhead_figures", "save_overhead_figure", "trace_overhead"),
        "elbowroom.api.joined": ("JoinedRuns", "join_runs"),
        "elbowroom.api.runs": ("ListedRun", "Run", "list_runs", "open", "step_table"),
        "elbowroom.api.schemas": ("schema", "schema_names"),
        "elbowroom.api.simulation": (
            "save_simulated_clocks",
            "simulate",
            "simulate_clocks",
            "simulate_questions",
            "simulated_clock_figures",
            "simulated_figure",
            "simulated_node",
        ),
        "elbowroom.api.steps": (
            "best_split",
            "overlap",
            "overlap_predicted",
            "overlap_table",
            "save_overlap_figure",
        ),
        "elbowroom.api.studies": ("study", "study_names", "study_plan"),
        "elbowroom.api.trace_overlaps": ("compare_trace_overlaps", "save_trace_overlap", "trace_overlap"),
        "elbowroom.api.trace_recorder": ("record_trace",),
        "elbowroom.api.traces": (
            "check_trace",
            "merge_trace",
            "save_sync_report",
            "save_trace_figure",
            "trace_activity",
            "trace_dag",
            "trace_figures",
            "trace_stat",
            "trace_sync",
        ),
        "elbowroom.api.what_if": ("predict_changes",),
        "elbowroom.experiments.plans": ("Overrides", "names", "plans"),
    }.items()
    for name in names
}
"""The public names, each with the module that defines it; `elbowroom` has the same."""

if TYPE_CHECKING:
    from elbowroom.api import advice as advice
    from elbowroom.api import broadcast_bench as broadcast_bench
    from elbowroom.api import broadcasts as broadcasts
    from elbowroom.api import calibration as calibration
    from elbowroom.api import choices as choices
    from elbowroom.api import colocation as colocation
    from elbowroom.api import colocation_forecast as colocation_forecast
    from elbowroom.api import colocation_measurement as colocation_measurement
    from elbowroom.api import diagnosis as diagnosis
    from elbowroom.api import emulated_nic as emulated_nic
    from elbowroom.api import factorizations as factorizations
    from elbowroom.api import failure as failure
    from elbowroom.api import gpu_advice as gpu_advice
    from elbowroom.api import gpu_models as gpu_models
    from elbowroom.api import machines as machines
    from elbowroom.api import measurement as measurement
    from elbowroom.api import models as models
    from elbowroom.api import network_calibration as network_calibration
    from elbowroom.api import predictions as predictions
    from elbowroom.api import profiled_job as profiled_job
    from elbowroom.api import profiles as profiles
    from elbowroom.api import quantities as quantities
    from elbowroom.api import recording_cost as recording_cost
    from elbowroom.api import report as report
    from elbowroom.api import runs as runs
    from elbowroom.api import schemas as schemas
    from elbowroom.api import shell as shell
    from elbowroom.api import show as show
    from elbowroom.api import simulation as simulation
    from elbowroom.api import step_documents as step_documents
    from elbowroom.api import steps as steps
    from elbowroom.api import studies as studies
    from elbowroom.api import trace_overlaps as trace_overlaps
    from elbowroom.api import trace_recorder as trace_recorder
    from elbowroom.api import traces as traces
    from elbowroom.api import what_if as what_if
    from elbowroom.api.advice import contention_maps as contention_maps
    from elbowroom.api.advice import load_advice as load_advice
    from elbowroom.api.advice import map_figures as map_figures
    from elbowroom.api.advice import save_advice as save_advice
    from elbowroom.api.advice import save_map as save_map
    from elbowroom.api.advice import verify_advice as verify_advice
    from elbowroom.api.broadcast_bench import bench_broadcasts as bench_broadcasts
    from elbowroom.api.broadcast_bench import broadcast_figures as broadcast_figures
    from elbowroom.api.broadcast_bench import save_broadcast_figure as save_broadcast_figure
    from elbowroom.api.broadcasts import fit_broadcast_network as fit_broadcast_network
    from elbowroom.api.broadcasts import load_network as load_network
    from elbowroom.api.broadcasts import save_network as save_network
    from elbowroom.api.broadcasts import simulate_broadcast as simulate_broadcast
    from elbowroom.api.broadcasts import tune_broadcasts as tune_broadcasts
    from elbowroom.api.calibration import Calibrated as Calibrated
    from elbowroom.api.calibration import calibrate as calibrate
    from elbowroom.api.calibration import evaluate as evaluate
    from elbowroom.api.calibration import fit as fit
    from elbowroom.api.calibration import import_curves as import_curves
    from elbowroom.api.calibration import resume_calibration as resume_calibration
    from elbowroom.api.colocation import load_schedule as load_schedule
    from elbowroom.api.colocation import pair_applications as pair_applications
    from elbowroom.api.colocation import save_matrix_figure as save_matrix_figure
    from elbowroom.api.colocation import save_pairing as save_pairing
    from elbowroom.api.colocation import save_schedule as save_schedule
    from elbowroom.api.colocation import save_slurm_script as save_slurm_script
    from elbowroom.api.colocation import schedule_jobs as schedule_jobs
    from elbowroom.api.colocation_forecast import forecast_colocation as forecast_colocation
    from elbowroom.api.colocation_forecast import save_forecast as save_forecast
    from elbowroom.api.colocation_measurement import measure_pairs as measure_pairs
    from elbowroom.api.colocation_measurement import plan_colocation as plan_colocation
    from elbowroom.api.diagnosis import diagnose as diagnose
    from elbowroom.api.emulated_nic import NicSettings as NicSettings
    from elbowroom.api.emulated_nic import run_behind_nic as run_behind_nic
    from elbowroom.api.factorizations import simulate_factorization as simulate_factorization
    from elbowroom.api.flush_cost import save_flush_figure as save_flush_figure
    from elbowroom.api.flush_cost import trace_flushes as trace_flushes
    from elbowroom.api.gpu_advice import advise_gpu as advise_gpu
    from elbowroom.api.gpu_advice import load_gpu_job as load_gpu_job
    from elbowroom.api.gpu_advice import save_gpu_advice as save_gpu_advice
    from elbowroom.api.gpu_models import predict_cases as predict_cases
    from elbowroom.api.gpu_models import read_cases as read_cases
    from elbowroom.api.job_calibration import calibrate_for_jobs as calibrate_for_jobs
    from elbowroom.api.joined import JoinedRuns as JoinedRuns
    from elbowroom.api.joined import join_runs as join_runs
    from elbowroom.api.machines import doctor as doctor
    from elbowroom.api.machines import machine_from_run as machine_from_run
    from elbowroom.api.machines import machine_names as machine_names
    from elbowroom.api.machines import machine_text as machine_text
    from elbowroom.api.machines import virtual_machine as virtual_machine
    from elbowroom.api.measurement import compare as compare
    from elbowroom.api.measurement import dry_run as dry_run
    from elbowroom.api.measurement import resume as resume
    from elbowroom.api.measurement import run as run
    from elbowroom.api.models import Evaluation as Evaluation
    from elbowroom.api.models import Model as Model
    from elbowroom.api.models import advise as advise
    from elbowroom.api.models import load_job as load_job
    from elbowroom.api.models import load_model as load_model
    from elbowroom.api.models import predict as predict
    from elbowroom.api.models import read_load as read_load
    from elbowroom.api.models import save_figure as save_figure
    from elbowroom.api.models import save_panels as save_panels
    from elbowroom.api.network_calibration import calibrate_network as calibrate_network
    from elbowroom.api.network_calibration import load_calibration as load_calibration
    from elbowroom.api.network_calibration import save_calibration as save_calibration
    from elbowroom.api.profiles import record_profile as record_profile
    from elbowroom.api.profiles import save_profile as save_profile
    from elbowroom.api.profiles import show_profile as show_profile
    from elbowroom.api.recording_cost import overhead_figures as overhead_figures
    from elbowroom.api.recording_cost import save_overhead_figure as save_overhead_figure
    from elbowroom.api.recording_cost import trace_overhead as trace_overhead
    from elbowroom.api.runs import ListedRun as ListedRun
    from elbowroom.api.runs import Run as Run
    from elbowroom.api.runs import list_runs as list_runs
    from elbowroom.api.runs import open as open
    from elbowroom.api.runs import step_table as step_table
    from elbowroom.api.schemas import schema as schema
    from elbowroom.api.schemas import schema_names as schema_names
    from elbowroom.api.simulation import save_simulated_clocks as save_simulated_clocks
    from elbowroom.api.simulation import simulate as simulate
    from elbowroom.api.simulation import simulate_clocks as simulate_clocks
    from elbowroom.api.simulation import simulate_questions as simulate_questions
    from elbowroom.api.simulation import simulated_clock_figures as simulated_clock_figures
    from elbowroom.api.simulation import simulated_figure as simulated_figure
    from elbowroom.api.simulation import simulated_node as simulated_node
    from elbowroom.api.steps import best_split as best_split
    from elbowroom.api.steps import overlap as overlap
    from elbowroom.api.steps import overlap_predicted as overlap_predicted
    from elbowroom.api.steps import overlap_table as overlap_table
    from elbowroom.api.steps import save_overlap_figure as save_overlap_figure
    from elbowroom.api.studies import study as study
    from elbowroom.api.studies import study_names as study_names
    from elbowroom.api.studies import study_plan as study_plan
    from elbowroom.api.trace_overlaps import compare_trace_overlaps as compare_trace_overlaps
    from elbowroom.api.trace_overlaps import save_trace_overlap as save_trace_overlap
    from elbowroom.api.trace_overlaps import trace_overlap as trace_overlap
    from elbowroom.api.trace_recorder import record_trace as record_trace
    from elbowroom.api.traces import check_trace as check_trace
    from elbowroom.api.traces import merge_trace as merge_trace
    from elbowroom.api.traces import save_sync_report as save_sync_report
    from elbowroom.api.traces import save_trace_figure as save_trace_figure
    from elbowroom.api.traces import trace_activity as trace_activity
    from elbowroom.api.traces import trace_dag as trace_dag
    from elbowroom.api.traces import trace_figures as trace_figures
    from elbowroom.api.traces import trace_stat as trace_stat
    from elbowroom.api.traces import trace_sync as trace_sync
    from elbowroom.api.what_if import predict_changes as predict_changes
    from elbowroom.experiments.plans import Overrides as Overrides
    from elbowroom.experiments.plans import names as names
    from elbowroom.experiments.plans import plans as plans
    from elbowroom.verbs.explain import explain as explain
    from elbowroom.verbs.explain import explanation_figures as explanation_figures
    from elbowroom.verbs.explain import save_explanation as save_explanation

else:
    __all__ = sorted(PUBLIC)


def __getattr__(name: str) -> Any:
    """A public name or a module of this package (`api.models.Prediction`), imported when it is first used:
    `import elbowroom` stays quick.
    """
    if name in PUBLIC:
        value = globals()[name] = getattr(importlib.import_module(PUBLIC[name]), name)
        return value
    if Path(__path__[0], f"{name}.py").is_file():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted(PUBLIC)
