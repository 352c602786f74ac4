"""What a run folder says: one result per point, the findings, the figures and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom import experiments
from elbowroom.campaign.collecting import Collected, collect, observations
from elbowroom.draw.figure import Figure
from elbowroom.machine.topology import Machine
from elbowroom.plan.point import Note
from elbowroom.stats.drift import Drift, drifts
from elbowroom.stats.points import results
from elbowroom.stats.quiet import imported, verdict
from elbowroom.stats.result import Finding, PointResult, Verdict
from elbowroom.store.folder import Manifest, RunFolder
from elbowroom.store.journal import Entry

IMPORTED = "imported"
"""The launcher of a run whose values came from a file, and the flag of its points."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that is computed from a run folder; the folder itself stays as it is."""

    manifest: Manifest
    machine: Machine
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    notes: tuple[Note, ...]
    drifts: tuple[Drift, ...] = ()

    def figures(self) -> tuple[Figure, ...]:
        """The figures of the run's experiment; their titles say where nothing was measured."""
        found = experiments.get(str(self.manifest.plan["experiment"])).figures(self.points, self.machine)
        if not self.machine.virtual:
            return found
        return tuple(
            msgspec.structs.replace(figure, title=f"{figure.title} (virtual machine)") for figure in found
        )


def point_results(manifest: Manifest, entries: Sequence[Entry]) -> tuple[list[PointResult], Collected]:
    """One result for each point of the manifest, and what they were computed from."""
    collected = collect(entries, manifest.points)
    found = results(
        manifest.points,
        collected.samples,
        collected.flags,
        failures=collected.failures,
        repetitions=int(manifest.plan["repetitions"]),
        traces=collected.traces,
        facts=collected.facts,
        times=collected.times,
        seed=manifest.seed,
    )
    return found, collected


def evaluate(folder: RunFolder) -> Results:
    """Reads the journal and computes; raises UsageError for a damaged or newer folder."""
    manifest = folder.manifest
    entries = folder.entries()
    machine = manifest.machine
    points, collected = point_results(manifest, entries)
    findings = experiments.get(str(manifest.plan["experiment"])).findings(points, machine)
    if manifest.launcher == IMPORTED:
        judged = imported(findings)
    else:
        cpus = sum(len(core.pus) for core in machine.cores)
        judged = verdict(findings, points, observations(entries, manifest.state, cpus))
    if machine.virtual:
        said = f"Virtual machine {machine.name}, nothing was measured: {judged.text}"
        judged = msgspec.structs.replace(judged, text=said)
    return Results(
        manifest=manifest,
        machine=machine,
        points=tuple(points),
        findings=findings,
        verdict=judged,
        notes=manifest.notes,
        drifts=drifts(points, collected.samples),
    )
