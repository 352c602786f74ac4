"""The public Python interface: names of the package `elbowroom`, each with the module that has it.

import elbowroom

run = elbowroom.open("runs/quick-20260101-120000")
run.verdict.text, run.points(), run.frame().to_pandas()
elbowroom.run("quick", overrides=elbowroom.Overrides(kernels=("triad",)))
"""

from __future__ import annotations

import importlib
from typing import Any

PUBLIC = {
    name: module
    for module, names in {
        "elbowroom.verbs.advise": (
            "advise_gpu",
            "contention_maps",
            "load_advice",
            "load_gpu_job",
            "map_figures",
        ),
        "elbowroom.verbs.verify_advice": ("verify_advice",),
        "elbowroom.broadcast.network": ("fit_broadcast_network", "load_network"),
        "elbowroom.broadcast.measured": ("broadcast_figures",),
        "elbowroom.verbs.broadcasts": ("simulate_broadcast", "tune_broadcasts"),
        "elbowroom.verbs.broadcast_bench": ("bench_broadcasts",),
        "elbowroom.launch.executables": ("simulate_factorization",),
        "elbowroom.verbs.fit": ("evaluate", "fit"),
        "elbowroom.verbs.import_files": ("import_curves",),
        "elbowroom.verbs.calibrate": ("Calibrated", "calibrate", "resume_calibration"),
        "elbowroom.verbs.colocate": (
            "load_schedule",
            "matrix_figure",
            "pair_applications",
            "schedule_jobs",
            "slurm_script",
        ),
        "elbowroom.verbs.colocate_predict": ("forecast_colocation",),
        "elbowroom.verbs.colocate_measure": ("calibrate_for_jobs", "measure_pairs", "plan_colocation"),
        "elbowroom.launch.nic": ("NicSettings", "run_behind_nic"),
        "elbowroom.profile.curve": ("load_calibration",),
        "elbowroom.verbs.profile_calibrate": ("calibrate_network",),
        "elbowroom.verbs.diagnosis": ("diagnose",),
        "elbowroom.verbs.explain": ("explain", "explanation_figures"),
        "elbowroom.verbs.saving": ("save",),
        "elbowroom.verbs.doctor": ("doctor",),
        "elbowroom.verbs.machine": (
            "machine_from_run",
            "machine_names",
            "machine_text",
            "virtual_machine",
        ),
        "elbowroom.verbs.compare": ("compare",),
        "elbowroom.verbs.run": ("dry_run", "resume", "run"),
        "elbowroom.verbs.gpu_models": ("predict_cases", "read_cases"),
        "elbowroom.verbs.model_file": (
            "Evaluation",
            "Model",
            "advise",
            "load_job",
            "load_model",
            "predict",
            "read_load",
            "save_panels",
        ),
        "elbowroom.verbs.profile": ("record_profile", "show_profile"),
        "elbowroom.trace.overhead": ("overhead_figures",),
        "elbowroom.trace.activity_figures": ("trace_figures",),
        "elbowroom.verbs.trace_overhead": ("trace_flushes", "trace_overhead"),
        "elbowroom.verbs.joined_runs": ("JoinedRuns", "join_runs"),
        "elbowroom.verbs.run_folder": ("Run", "open", "step_table"),
        "elbowroom.verbs.show": ("ListedRun", "list_runs"),
        "elbowroom.verbs.schema": ("schema", "schema_names"),
        "elbowroom.verbs.simulate": (
            "simulate",
            "simulated_figure",
            "simulated_node",
        ),
        "elbowroom.verbs.overlap": (
            "best_split",
            "overlap",
            "overlap_predicted",
            "overlap_figure",
            "overlap_table",
        ),
        "elbowroom.verbs.study": ("study", "study_names", "study_plan"),
        "elbowroom.verbs.trace_overlap": ("compare_trace_overlaps", "trace_overlap"),
        "elbowroom.verbs.trace_record": ("record_trace",),
        "elbowroom.verbs.trace": (
            "check_trace",
            "merge_trace",
            "trace_activity",
            "trace_stat",
            "trace_sync",
        ),
        "elbowroom.verbs.profile_what_if": ("predict_changes",),
        "elbowroom.experiments.plans": ("Overrides", "names", "plans"),
        "elbowroom.frames": ("Frame", "frame"),
    }.items()
    for name in names
}
"""The public names, each with the module that defines it; `elbowroom` has the same."""

__all__ = sorted(PUBLIC)


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used: `import elbowroom` stays quick."""
    if name in PUBLIC:
        value = globals()[name] = getattr(importlib.import_module(PUBLIC[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted(PUBLIC)
