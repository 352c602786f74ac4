"""`elbowroom schema`: the JSON Schema of each document, generated from the types in use."""

from __future__ import annotations

import importlib
from typing import Any

import click

from elbowroom.cli.console import print_json
from elbowroom.cli.options import completion
from elbowroom.errors import UsageError, closest
from elbowroom.schemas import json_schema
from elbowroom.verbs.declaration import Verb, argument

_DOCUMENTS: dict[str, tuple[str, *tuple[str, ...]]] = {
    "accept": (
        "nodes of a site: what `accept --json` prints and `accept -o` writes",
        "accept.document:AcceptanceDocument",
    ),
    "advice": ("advice: what `advise --json` prints and `advise -o` writes", "advise.advice:Advice"),
    "broadcast": (
        "simulated broadcast: what `broadcast simulate --json` prints",
        "broadcast.simulated:BroadcastDocument",
    ),
    "broadcast-tree": (
        "tree of a broadcast: what `broadcast draw --json` prints",
        "broadcast.drawn:BroadcastTree",
    ),
    "factorization": (
        "simulated factorization: what `broadcast factorize --json` prints",
        "broadcast.factorizations:FactorizationDocument",
    ),
    "broadcast-network": (
        "network for broadcasts: what `broadcast tune` prints with --json and writes with -o",
        "broadcast.network:NetworkDocument",
    ),
    "broadcast-bench": (
        "measured broadcasts: one entry of what `broadcast bench --json` prints",
        "broadcast.measured:BroadcastEntry",
    ),
    "bundle": ("bundle.json of a bundle: what `study --bundle` writes", "verbs.bundles:Bundle"),
    "bundle-comparison": (
        "comparison of two bundles: what `compare A.zip B.zip --json` prints",
        "verbs.bundles:BundleComparison",
    ),
    "calibrate": ("calibration: what `calibrate --json` prints", "measure.adaptive:CalibrationDocument"),
    "compare": ("comparison of runs: what `compare --json` prints", "results.comparison:Comparison"),
    "demand": ("demand.json of a profile: what `colocate demand --json` prints", "models.demand:Demand"),
    "diagnose-lint": (
        "what is wrong with a launch line: what `diagnose --lint --json` prints",
        "diagnose.lint:LintReport",
    ),
    "diagnosis": (
        "diagnosed program: what `diagnose --json` prints",
        "verbs.diagnosis_document:Diagnosis",
        "verbs.foreign_diagnosis:ForeignDiagnosis",
    ),
    "doctor": ("this machine: what `doctor --json` prints", "machine.doctor:Diagnoses"),
    "dry-run": ("what a run would do: what `run --dry-run --json` prints", "verbs.run:DryRun"),
    "planned-starts": (
        "what would be built and started: what other commands print with --dry-run --json",
        "launch.planned_starts:PlannedStarts",
    ),
    "error": ("error: what a command that fails prints with --json", "errors:ErrorDocument"),
    "explanation": ("explanation: what `explain --json` prints", "explain.explanation:Explanation"),
    "evaluate": ("errors of models: what `evaluate --json` prints", "models.evaluate:EvaluationDocument"),
    "fit": ("fitted models: what `fit --json` prints", "models.fit:FitDocument"),
    "files": ("files that a command wrote: what `export --json` prints", "verbs.report:FileList"),
    "gpu-advice": (
        "advice for a job of an accelerator: what `advise --json` prints",
        "advise.gpu_job:GpuAdvice",
    ),
    "gpu-evaluate": (
        "errors of an accelerator's model: what `evaluate --json` prints",
        "models.gpu.kind:GpuEvaluationDocument",
    ),
    "gpu-penalties": (
        "slowdowns of kernels and copies: what `export --format gpu-penalties` writes",
        "models.gpu.model:PenaltyTable",
    ),
    "gpu-prediction": (
        "predicted cases on an accelerator: what `predict --gpu --json` prints",
        "verbs.gpu_models:GpuPredictionDocument",
    ),
    "guard-receipt": (
        "receipt of a guarded run: what `guard --json` prints and `guard --receipt` writes",
        "guard.receipt:Receipt",
    ),
    "job": (
        "job.toml: what a job does, how it runs now, and what it may choose",
        "advise.job:JobFile",
        "advise.gpu_job:GpuJobFile",
    ),
    "list": ("runs in a folder: what `list --json` prints", "verbs.show:RunList"),
    "machine": (
        "virtual machine: what `machine show --json` prints",
        "virtual.definition:VirtualMachineDocument",
    ),
    "machines": (
        "virtual machines: what `machine list --json` prints",
        "virtual.definition:VirtualMachineList",
    ),
    "manifest": ("manifest.json of a run folder", "store.folder:Manifest"),
    "model": ("M.json: models fitted to a run", "models.document:Document"),
    "overlap": (
        "overlapped steps: what `overlap --json` prints",
        "models.overlap.documents:StepDocument",
        "models.overlap.documents:PredictedStepDocument",
        "models.overlap.documents:StepTableDocument",
    ),
    "colocation": (
        "measured slowdowns of pairs: what `colocate measure --json` prints",
        "schedule.measured:MeasuredMatrix",
    ),
    "colocation-plan": (
        "what `colocate measure --dry-run --json` prints",
        "verbs.colocate_measure:PlannedRuns",
    ),
    "colocation-forecast": (
        "slowdowns of pairs: what `colocate predict --json` prints",
        "verbs.colocate_predict:ForecastDocument",
    ),
    "nic-calibration": (
        "a calibrated NIC: what `nic measure` prints and writes",
        "profile.curve:ProfileCalibration",
    ),
    "papers": ("items of the papers: what `papers --json` prints", "studies.items:PaperItems"),
    "pairing": (
        "pairs of applications: what `colocate schedule --matrix --json` prints",
        "schedule.pairing:Pairing",
    ),
    "plans": ("named plans: what `plans --json` prints", "experiments.plans:PlanList"),
    "prediction": (
        "predictions: what `predict --json` prints",
        "models.prediction_documents:SituationDocument",
        "models.prediction_documents:SituationsDocument",
        "models.prediction_documents:LoadDocument",
    ),
    "profile": ("profile.json of a profile folder", "profile.summary:ProfileManifest"),
    "profile-memory": (
        "memory.json of a profile folder: samples of memory traffic",
        "profile.summary:MemoryTraffic",
    ),
    "profile-summary": ("profile: what `profile show --json` prints", "profile.summary:ProfileSummary"),
    "profile-record": (
        "profiled program: what `profile --json -- CMD` prints",
        "verbs.profile:ProfileRecordDocument",
    ),
    "samples": (
        "samples.jsonl of a run folder: line 1 is a header, every other line is one repetition of a point",
        "store.journal:JournalHeader",
        "store.journal:WrittenLine",
    ),
    "schedule": (
        "jobs on nodes: what `colocate schedule JOBS.toml --json` prints and -o writes",
        "schedule.plan:SchedulePlan",
    ),
    "show": ("results of a run: what `show --json` prints", "verbs.run_folder:show_type"),
    "simulate": ("simulated curves: what `simulate --json` prints", "virtual.simulated:SimulationDocument"),
    "simulated-node": (
        "simulated node: what `simulate --parameters --json` prints",
        "virtual.simulated:NodeDocument",
    ),
    "study": ("study of a paper: what `study --json` prints", "studies.document:StudyDocument"),
    "study-folder": ("study.json of a study's folder", "measure.study:StudyFolder"),
    "study-plan": (
        "what a study would measure: what `study --dry-run --json` prints",
        "studies.document:StudyPlan",
    ),
    "tour": ("tour: what `tour --json` prints", "verbs.tour:Tour"),
    "trace-activity": (
        "activity in a trace: what `trace activity --json` prints",
        "trace.activity_figures:ActivityOverTime",
    ),
    "trace-check": ("check of a trace: what `trace check --json` prints", "trace.documents:TraceCheck"),
    "trace-merge": ("merged trace: what `trace merge --json` prints", "verbs.trace:MergeDocument"),
    "trace-flushes": ("cost of flushes: what `trace flushes --json` prints", "trace.flushes:FlushCosts"),
    "trace-overhead": ("cost of recording: what `trace overhead --json` prints", "trace.overhead:Overhead"),
    "trace-overlap": (
        "overlap in a trace: what `trace overlap --json` prints",
        "trace.overlap.document:TraceOverlap",
    ),
    "trace-overlap-comparison": (
        "overlap in two traces: what `trace overlap --compare --json` prints",
        "trace.overlap.document:OverlapComparison",
    ),
    "trace-record": (
        "traced program: what `trace record --json` prints",
        "verbs.trace_record:RecordDocument",
    ),
    "trace-stat": ("statistics of a trace: what `trace stat --json` prints", "trace.documents:Stat"),
    "trace-sync": ("clocks of a trace: what `trace sync --json` prints", "trace.documents:Sync"),
    "trial-request": (
        "trials.json of a diagnosis: what it was trying when it was stopped",
        "verbs.diagnose_trials:TrialRequest",
    ),
    "what-if": ("predicted changes: what `profile what-if --json` prints", "advise.what_if:WhatIf"),
}
"""By name: the title, and the place of the type or of a function that makes it; several where a command, or
the lines of a file, have different ones.
"""


def schema_names() -> tuple[str, ...]:
    """The documents that have a JSON Schema."""
    return tuple(_DOCUMENTS)


class Schema(Verb):
    """Print the JSON Schema of a document; without NAME, list the documents."""

    name = "schema"
    has_document = False

    document_name: str | None = argument(None, metavar="[NAME]", shell_complete=completion(schema_names))

    def do(self) -> dict[str, Any] | None:
        """The schema of the document that is named, if any."""
        return None if self.document_name is None else schema(self.document_name)

    def print(self, result: dict[str, Any] | None) -> None:
        """The schema, or the names of the documents."""
        if result is None:
            click.echo("\n".join(schema_names()))
        else:
            print_json(result)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, as plain data; UsageError for a name that is not in `schema_names`."""
    if name not in _DOCUMENTS:
        raise UsageError("is not a document", field="schema", value=name, hint=closest(name, _DOCUMENTS))
    title, *places = _DOCUMENTS[name]
    return json_schema(*map(_type_at, places), title=title)


def _type_at(place: str) -> type[Any]:
    """The type that a module of elbowroom defines, or that a function of it makes."""
    module, _, name = place.partition(":")
    kind = getattr(importlib.import_module(f"elbowroom.{module}"), name)
    return kind if isinstance(kind, type) else kind()
