"""The JSON Schema of each document that elbowroom reads or writes, generated from the types in use."""

from __future__ import annotations

from typing import Any

import msgspec

from elbowroom.advise.advice import Advice
from elbowroom.advise.gpu_job import GpuAdvice, GpuJobFile
from elbowroom.advise.job import JobFile
from elbowroom.api.calibration import CalibrationDocument, EvaluationDocument, FitDocument
from elbowroom.api.colocation_forecast import ForecastDocument
from elbowroom.api.colocation_measurement import PlannedRuns
from elbowroom.api.diagnosis import Diagnosis
from elbowroom.api.failure import ErrorDocument
from elbowroom.api.gpu_models import GpuEvaluationDocument, GpuPredictionDocument
from elbowroom.api.machines import Diagnoses, VirtualMachineDocument, VirtualMachineList
from elbowroom.api.predictions import LoadDocument, SituationDocument, SituationsDocument
from elbowroom.api.profiles import ProfileRecordDocument
from elbowroom.api.simulation import NodeDocument, SimulationDocument
from elbowroom.api.step_documents import PredictedStepDocument, StepDocument, StepTableDocument
from elbowroom.api.trace_recorder import RecordDocument
from elbowroom.api.traces import MergeDocument
from elbowroom.api.what_if import WhatIf
from elbowroom.broadcast.factorizations import FactorizationDocument
from elbowroom.broadcast.measured import BroadcastEntry
from elbowroom.broadcast.network import NetworkDocument
from elbowroom.broadcast.simulated import BroadcastDocument
from elbowroom.errors import UsageError, closest
from elbowroom.explain.explanation import Explanation
from elbowroom.measure.planned_starts import PlannedStarts
from elbowroom.measure.study import StudyFolder
from elbowroom.models.document import Document
from elbowroom.models.gpu.penalties import PenaltyTable
from elbowroom.profile.calibration import Calibration as NicCalibration
from elbowroom.profile.manifest import Manifest as ProfileManifest
from elbowroom.profile.memory_traffic import MemoryTraffic
from elbowroom.profile.summary import ProfileSummary
from elbowroom.results.comparison import Comparison
from elbowroom.schedule.measured import MeasuredMatrix
from elbowroom.schedule.pairing import Pairing
from elbowroom.schedule.plan import SchedulePlan
from elbowroom.schemas import json_schema
from elbowroom.store.folder import Manifest
from elbowroom.store.journal import JournalHeader, WrittenLine
from elbowroom.studies.document import StudyDocument, StudyPlan
from elbowroom.trace.activity_figures import ActivityOverTime
from elbowroom.trace.documents import Stat, Sync, TraceCheck
from elbowroom.trace.flushes import FlushCosts
from elbowroom.trace.overhead import Overhead
from elbowroom.trace.overlap.document import OverlapComparison, TraceOverlap
from elbowroom.verbs.report import FileList
from elbowroom.verbs.run import DryRun
from elbowroom.verbs.run_folder import show_type
from elbowroom.verbs.show import PlanList, RunList

_DOCUMENTS: dict[str, tuple[str, *tuple[type[msgspec.Struct], ...]]] = {
    "advice": ("advice: what `advise --json` prints and `advise -o` writes", Advice),
    "broadcast": ("simulated broadcast: what `broadcast simulate --json` prints", BroadcastDocument),
    "factorization": (
        "simulated factorization: what `broadcast factorize --json` prints",
        FactorizationDocument,
    ),
    "broadcast-network": (
        "network for broadcasts: what `broadcast tune` prints with --json and writes with -o",
        NetworkDocument,
    ),
    "broadcast-bench": (
        "measured broadcasts: one entry of what `broadcast bench --json` prints",
        BroadcastEntry,
    ),
    "calibrate": ("calibration: what `calibrate --json` prints", CalibrationDocument),
    "compare": ("comparison of runs: what `compare --json` prints", Comparison),
    "diagnosis": ("diagnosed program: what `diagnose --json` prints", Diagnosis),
    "doctor": ("this machine: what `doctor --json` prints", Diagnoses),
    "dry-run": ("what a run would do: what `run --dry-run --json` prints", DryRun),
    "planned-starts": (
        "what would be built and started: what other commands print with --dry-run --json",
        PlannedStarts,
    ),
    "error": ("error: what a command that fails prints with --json", ErrorDocument),
    "explanation": ("explanation: what `explain --json` prints", Explanation),
    "evaluate": ("errors of models: what `evaluate --json` prints", EvaluationDocument),
    "fit": ("fitted models: what `fit --json` prints", FitDocument),
    "files": ("files that a command wrote: what `export --json` prints", FileList),
    "gpu-advice": ("advice for a job of an accelerator: what `advise --json` prints", GpuAdvice),
    "gpu-evaluate": (
        "errors of an accelerator's model: what `evaluate --json` prints",
        GpuEvaluationDocument,
    ),
    "gpu-penalties": (
        "slowdowns of kernels and copies: what `export --format gpu-penalties` writes",
        PenaltyTable,
    ),
    "gpu-prediction": (
        "predicted cases on an accelerator: what `predict --gpu --json` prints",
        GpuPredictionDocument,
    ),
    "job": ("job.toml: what a job does, how it runs now, and what it may choose", JobFile, GpuJobFile),
    "list": ("runs in a folder: what `list --json` prints", RunList),
    "machine": ("virtual machine: what `machine show --json` prints", VirtualMachineDocument),
    "machines": ("virtual machines: what `machine list --json` prints", VirtualMachineList),
    "manifest": ("manifest.json of a run folder", Manifest),
    "model": ("M.json: models fitted to a run", Document),
    "overlap": (
        "overlapped steps: what `overlap --json` prints",
        StepDocument,
        PredictedStepDocument,
        StepTableDocument,
    ),
    "colocation": ("measured slowdowns of pairs: what `colocate measure --json` prints", MeasuredMatrix),
    "colocation-plan": ("what `colocate measure --dry-run --json` prints", PlannedRuns),
    "colocation-forecast": ("slowdowns of pairs: what `colocate predict --json` prints", ForecastDocument),
    "nic-calibration": ("a calibrated NIC: what `profile calibrate` prints and writes", NicCalibration),
    "pairing": ("pairs of applications: what `colocate schedule --matrix --json` prints", Pairing),
    "plans": ("named plans: what `plans --json` prints", PlanList),
    "prediction": (
        "predictions: what `predict --json` prints",
        SituationDocument,
        SituationsDocument,
        LoadDocument,
    ),
    "profile": ("profile.json of a profile folder", ProfileManifest),
    "profile-memory": ("memory.json of a profile folder: samples of memory traffic", MemoryTraffic),
    "profile-summary": ("profile: what `profile show --json` prints", ProfileSummary),
    "profile-record": ("profiled program: what `profile --json -- CMD` prints", ProfileRecordDocument),
    "samples": (
        "samples.jsonl of a run folder: line 1 is a header, every other line is one repetition of a point",
        JournalHeader,
        WrittenLine,
    ),
    "schedule": (
        "jobs on nodes: what `colocate schedule JOBS.toml --json` prints and -o writes",
        SchedulePlan,
    ),
    "show": ("results of a run: what `show --json` prints", show_type()),
    "simulate": ("simulated curves: what `simulate --json` prints", SimulationDocument),
    "simulated-node": ("simulated node: what `simulate --parameters --json` prints", NodeDocument),
    "study": ("study of a paper: what `study --json` prints", StudyDocument),
    "study-folder": ("study.json of a study's folder", StudyFolder),
    "study-plan": ("what a study would measure: what `study --dry-run --json` prints", StudyPlan),
    "trace-activity": ("activity in a trace: what `trace activity --json` prints", ActivityOverTime),
    "trace-check": ("check of a trace: what `trace check --json` prints", TraceCheck),
    "trace-merge": ("merged trace: what `trace merge --json` prints", MergeDocument),
    "trace-flushes": ("cost of flushes: what `trace flushes --json` prints", FlushCosts),
    "trace-overhead": ("cost of recording: what `trace overhead --json` prints", Overhead),
    "trace-overlap": ("overlap in a trace: what `trace overlap --json` prints", TraceOverlap),
    "trace-overlap-comparison": (
        "overlap in two traces: what `trace overlap --compare --json` prints",
        OverlapComparison,
    ),
    "trace-record": ("traced program: what `trace record --json` prints", RecordDocument),
    "trace-stat": ("statistics of a trace: what `trace stat --json` prints", Stat),
    "trace-sync": ("clocks of a trace: what `trace sync --json` prints", Sync),
    "what-if": ("predicted changes: what `profile what-if --json` prints", WhatIf),
}
"""By name: the title, and the type; several where a command or the lines of a file have different ones."""


def schema_names() -> tuple[str, ...]:
    """The documents that have a JSON Schema."""
    return tuple(_DOCUMENTS)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, as plain data; UsageError for a name that is not in `schema_names`."""
    if name not in _DOCUMENTS:
        raise UsageError("is not a document", field="schema", value=name, hint=closest(name, _DOCUMENTS))
    title, *kinds = _DOCUMENTS[name]
    return json_schema(*kinds, title=title)
