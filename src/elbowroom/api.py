"""The public Python interface: names of the package `elbowroom`, by task, each with the module that has it.

import elbowroom

run = elbowroom.run("quick", machine="henri")
print(run)  # a notebook shows the figure as well
run.frame().to_pandas()
"""

from __future__ import annotations

import importlib
from typing import Any

FIRST = "Start here"
"""The task whose names `dir(elbowroom)` has; all names are in `dir(elbowroom.api)`."""

TASKS = {
    "Start here": {
        "run": "verbs.run",
        "open": "verbs.run_folder",
        "compare": "verbs.compare",
        "explain": "verbs.explain",
        "fit": "verbs.fit",
        "load_model": "verbs.model_file",
        "predict": "verbs.model_file",
        "advise": "verbs.model_file",
        "diagnose": "verbs.diagnosis",
        "accept": "verbs.accept",
        "show_profile": "verbs.profile",
        "trace_overlap": "verbs.trace_overlap",
        "import_curves": "verbs.import_files",
        "study": "verbs.study",
        "frame": "frames",
        "save": "verbs.saving",
    },
    "Runs": {
        "Run": "verbs.run_folder",
        "resume": "verbs.run",
        "dry_run": "verbs.run",
        "Overrides": "experiments.plans",
        "names": "experiments.plans",
        "plans": "experiments.plans",
        "list_runs": "verbs.show",
        "ListedRun": "verbs.show",
        "join_runs": "verbs.joined_runs",
        "JoinedRuns": "verbs.joined_runs",
        "step_table": "verbs.run_folder",
        "doctor": "verbs.doctor",
        "tour": "verbs.tour",
        "accept_history": "verbs.accept_history",
    },
    "Models": {
        "Model": "verbs.model_file",
        "Evaluation": "verbs.model_file",
        "evaluate": "verbs.fit",
        "read_load": "verbs.model_file",
        "save_panels": "verbs.model_file",
        "calibrate": "verbs.calibrate",
        "resume_calibration": "verbs.calibrate",
        "Calibrated": "verbs.calibrate",
    },
    "Advice": {
        "load_job": "verbs.model_file",
        "verify_advice": "verbs.verify_advice",
        "load_advice": "verbs.advise",
        "contention_maps": "verbs.advise",
        "map_figures": "verbs.advise",
        "explanation_figures": "verbs.explain",
    },
    "Time of a step": {
        "overlap": "verbs.predict_step",
        "overlap_predicted": "verbs.predict_step",
        "best_split": "verbs.predict_step",
        "overlap_table": "verbs.predict_step",
        "overlap_figure": "verbs.predict_step",
    },
    "Programs": {
        "record_profile": "verbs.profile",
        "predict_changes": "verbs.profile_what_if",
        "calibrate_network": "verbs.nic_measure",
        "load_calibration": "profile.curve",
        "run_behind_nic": "launch.nic",
        "NicSettings": "launch.nic",
    },
    "Traces": {
        "record_trace": "verbs.trace_record",
        "check_trace": "verbs.trace",
        "trace_stat": "verbs.trace",
        "trace_activity": "verbs.trace",
        "trace_sync": "verbs.trace",
        "merge_trace": "verbs.trace",
        "compare_trace_overlaps": "verbs.trace_overlap",
        "trace_overhead": "verbs.trace_overhead",
        "trace_flushes": "verbs.trace_overhead",
        "trace_figures": "trace.activity_figures",
        "overhead_figures": "trace.overhead",
    },
    "Node sharing": {
        "pair_applications": "verbs.colocate",
        "measure_pairs": "verbs.colocate_measure",
        "plan_colocation": "verbs.colocate_measure",
        "measure_demand": "verbs.colocate_demand",
        "forecast_colocation": "verbs.colocate_predict",
        "calibrate_for_jobs": "verbs.colocate_measure",
        "schedule_jobs": "verbs.colocate",
        "load_schedule": "verbs.colocate",
        "slurm_script": "verbs.colocate",
        "matrix_figure": "verbs.colocate",
    },
    "Accelerators": {
        "predict_cases": "verbs.gpu_models",
        "read_cases": "verbs.gpu_models",
        "advise_gpu": "verbs.advise",
        "load_gpu_job": "verbs.advise",
    },
    "Broadcasts and factorizations": {
        "bench_broadcasts": "verbs.broadcast_bench",
        "broadcast_figures": "broadcast.measured",
        "fit_broadcast_network": "broadcast.network",
        "load_network": "broadcast.network",
        "simulate_broadcast": "verbs.broadcasts",
        "tune_broadcasts": "verbs.broadcasts",
        "simulate_factorization": "launch.executables",
    },
    "Virtual machines": {
        "machine_names": "verbs.machine",
        "virtual_machine": "verbs.machine",
        "machine_text": "verbs.machine",
        "machine_from_run": "verbs.machine",
        "simulate": "verbs.simulate_memory",
        "simulated_node": "verbs.simulate_memory",
        "simulated_figure": "verbs.simulate_memory",
    },
    "Data": {
        "Frame": "frames",
        "schema": "verbs.schema",
        "schema_names": "verbs.schema",
        "study_names": "verbs.study",
        "study_plan": "verbs.study",
    },
}
"""The public names by task, each with the module of elbowroom that defines it."""

PUBLIC = {name: f"elbowroom.{module}" for names in TASKS.values() for name, module in names.items()}
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
