"""The public Python interface; the command line is written on it.

import elbowroom

run = elbowroom.open("runs/quick-20260101-120000")
run.verdict.text, run.points(), run.table(), run.frame()
elbowroom.run("quick", overrides=elbowroom.Overrides(kernels=("triad",)))
"""

from elbowroom.api.advising import advise, load_advice, load_job, save_advice, verify_advice
from elbowroom.api.calibrating import Calibrated, calibrate, resume_calibration
from elbowroom.api.clocks import save_simulated_clocks, simulate_clocks, simulated_clock_figures
from elbowroom.api.diffusion import step_table
from elbowroom.api.doctoring import doctor
from elbowroom.api.explaining import explain, explanation_figures, save_explanation
from elbowroom.api.machines import machine_from_run, machine_names, machine_text, virtual_machine
from elbowroom.api.mapping import contention_maps, map_figures, save_map
from elbowroom.api.measuring import compare, dry_run, resume, run
from elbowroom.api.overlapping import (
    best_split,
    overlap,
    overlap_predicted,
    overlap_table,
    save_overlap_figure,
)
from elbowroom.api.predicting import (
    Evaluation,
    Model,
    evaluate,
    fit,
    import_curves,
    load_model,
    read_load,
    save_figure,
    save_panels,
)
from elbowroom.api.runs import Run, open
from elbowroom.api.simulating import simulate, simulate_questions, simulated_figure, simulated_node
from elbowroom.api.trace_costs import overhead_figures, save_overhead_figure, trace_overhead
from elbowroom.api.tracing import (
    check_trace,
    merge_trace,
    record_trace,
    save_sync_report,
    save_trace_figure,
    trace_dag,
    trace_figures,
    trace_stat,
    trace_sync,
)
from elbowroom.plan.reading import Overrides, names

__all__ = [
    "Calibrated",
    "Evaluation",
    "Model",
    "Overrides",
    "Run",
    "advise",
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
    "load_job",
    "load_model",
    "machine_from_run",
    "machine_names",
    "machine_text",
    "map_figures",
    "merge_trace",
    "names",
    "open",
    "overhead_figures",
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
    "save_figure",
    "save_map",
    "save_overhead_figure",
    "save_overlap_figure",
    "save_panels",
    "save_simulated_clocks",
    "save_sync_report",
    "save_trace_figure",
    "simulate",
    "simulate_clocks",
    "simulate_questions",
    "simulated_clock_figures",
    "simulated_figure",
    "simulated_node",
    "step_table",
    "trace_dag",
    "trace_figures",
    "trace_overhead",
    "trace_stat",
    "trace_sync",
    "verify_advice",
    "virtual_machine",
]
