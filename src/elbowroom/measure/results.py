"""What a run folder says: one result per point, the findings, the figures and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

import msgspec

from elbowroom import experiments
from elbowroom.draw.figure import Figure, TextTable
from elbowroom.experiments.common import starts
from elbowroom.explain.chain import remote
from elbowroom.machine.topology import Machine
from elbowroom.measure import tails
from elbowroom.measure.measurements import Measurements, collect, observations
from elbowroom.measure.tails import PointTail
from elbowroom.plan.axes import is_control
from elbowroom.plan.information import most_informative
from elbowroom.plan.kernels import STORE_PAIRS
from elbowroom.points.point import Note, Point
from elbowroom.points.unit import Entry
from elbowroom.quantities import format_size
from elbowroom.results import stores
from elbowroom.results.family import without_chance
from elbowroom.results.grades import doubted, has_bound
from elbowroom.results.points import results
from elbowroom.results.quiet import Drift, drifts, imported, verdict
from elbowroom.results.result import Finding, PointResult, Verdict
from elbowroom.store.folder import Manifest, RunFolder

IMPORTED = "imported"
"""The launcher of a run whose values came from a file, and the flag of its points."""
UNTRUSTED = "This run is not trusted; the reasons are in its verdict."
"""The warning above every figure of such a run."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that is computed from a run folder; the folder itself stays as it is."""

    manifest: Manifest
    machine: Machine
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    notes: tuple[Note, ...]
    drifts: tuple[Drift, ...] = ()
    tails: tuple[PointTail, ...] = ()

    @property
    def experiment(self) -> experiments.Experiment:
        """The run's experiment; UsageError where it is not installed here."""
        return experiments.get(str(self.manifest.plan["experiment"]))

    def tables(self) -> tuple[TextTable, ...]:
        """The tables of the run's experiment, which sum its points up; of several starts, how they differ."""
        of_starts = starts.table(self.points) if self.manifest.starts > 1 else None
        tables = self.experiment.tables(self.points, self.machine)
        return tables if of_starts is None else (*tables, of_starts)

    def tail_tables(self) -> tuple[TextTable, ...]:
        """Percentiles and stalls of messages that were due at fixed times; if empty, see `no_tails`."""
        return tails.tables(self.tails, self.manifest.points)

    @property
    def no_tails(self) -> str:
        """Why there are no tails; empty where there are."""
        if self.tails:
            return ""
        return "no message is sent on a virtual machine" if self.machine.virtual else tails.NO_PERIOD

    def data(self) -> dict[str, Any]:
        """What the run's experiment adds to `show --json`, by key."""
        return self.experiment.data(self.points, self.machine)

    def figures(self) -> tuple[Figure, ...]:
        """The figures of the run's experiment. Those of a virtual machine say so in their title, those of a
        run that is not trusted carry a warning.
        """
        drawn = self.experiment.figures(self.points, self.machine)
        virtual = " (virtual machine)" * self.machine.virtual
        warning = "" if self.verdict.trusted else UNTRUSTED
        return tuple(
            msgspec.structs.replace(figure, title=f"{figure.title}{virtual}", warning=warning)
            for figure in drawn
        )


def point_results(manifest: Manifest, entries: Sequence[Entry]) -> tuple[list[PointResult], Measurements]:
    """One result for each point of the manifest, and what they were computed from.

    The points have the store factor of the machine if the run measured it.
    """
    collected = collect(entries, manifest.points)
    computed = results(
        manifest.points,
        collected.samples,
        collected.flags,
        failures=collected.failures,
        repetitions=manifest.budget.least if manifest.budget else int(manifest.plan["repetitions"]),
        entries=collected.entries,
        seed=manifest.seed,
        starts=manifest.starts > 1,
    )
    return stores.with_store_factor(computed, _store_factor(computed, manifest.machine)), collected


def _store_factor(points: Sequence[PointResult], machine: Machine) -> stores.StoreFactor | None:
    """What the run says of it; a link between sockets would limit reads and writes apart from each other."""
    kernels = {kernel.name for pair in STORE_PAIRS for kernel in pair}
    local = [item for item in points if item.kernel in kernels and "computation" not in remote(item, machine)]
    return stores.store_factor(local)


def evaluate(folder: RunFolder) -> Results:
    """Reads the journal and computes; raises UsageError for a damaged or newer folder."""
    manifest = folder.manifest
    entries = folder.entries()
    machine = manifest.machine
    all_points, collected = point_results(manifest, entries)
    left_out = left_out_points(manifest, all_points)
    points = [point for point in all_points if point.id not in left_out]
    findings = without_chance(
        experiments.get(str(manifest.plan["experiment"])).findings(points, machine), points
    )
    if manifest.starts > 1:
        findings = (*findings, starts.finding(points, manifest.starts))
    if factor := _store_factor(points, machine):
        findings = (*findings, stores.finding(factor))
    if manifest.launcher == IMPORTED:
        judged = imported(findings, points)
    else:
        cpus = sum(len(core.pus) for core in machine.cores)
        shortage = _shortage(manifest, entries, left_out)
        # Of a plan that asks for the control too, it is no answer where there was no time for anything else.
        only_controls = shortage and all(is_control(point, manifest.points) for point in points)
        judged = verdict(
            findings,
            [msgspec.structs.replace(point, role="control") for point in points] if only_controls else points,
            observations(entries, manifest.state, cpus),
            shortage,
        )
    findings = judged.findings
    if lacking := cut(manifest, entries):
        text = f"This run is not complete: {lacking}."
        judged = msgspec.structs.replace(
            judged,
            trusted=False,
            text=text,
            reasons=(text, *judged.reasons),
            grade=doubted(judged.grade),
        )
    if machine.virtual:
        text = f"Virtual machine {machine.name}, nothing was measured: {judged.text}"
        judged = msgspec.structs.replace(judged, text=text)
    return Results(
        manifest=manifest,
        machine=machine,
        points=tuple(points),
        findings=findings,
        verdict=judged,
        notes=(*manifest.notes, *left_out_notes(manifest, left_out)),
        drifts=tuple(drift for drift in drifts(all_points, collected.samples) if drift.point not in left_out),
        tails=tails.tails(entries, manifest.points),
    )


def cut(manifest: Manifest, entries: Sequence[Entry]) -> str:
    """What the journal of a finished run lacks, though every repetition was in it; empty where nothing is.
    Points of which a repetition failed may have fewer, and so may those of a run that was limited in time.
    """
    if not manifest.finished or manifest.budget or manifest.launcher == IMPORTED:
        return ""
    counts = Counter(entry.point for entry in entries if not entry.closing)
    failed = {entry.point for entry in entries if entry.record.get("status") == "failed"}
    wanted = int(manifest.plan["repetitions"])
    gone = {point.id: wanted - counts[point.id] for point in manifest.points if point.id not in failed}
    lacking = [count for count in gone.values() if count > 0]
    if not lacking:
        return ""
    return f"its journal lacks {sum(lacking)} repetitions of {len(lacking)} points; restore it from a copy"


def _shortage(manifest: Manifest, entries: Sequence[Entry], left_out: Set[str]) -> str:
    """What a budget that left points out was too short for."""
    if manifest.budget is None or not left_out:
        return ""
    return (
        f"the budget of {manifest.budget.seconds:.0f} s ended after {len(entries)} repetitions, before any "
        f"point other than the controls had the {manifest.budget.least} that an interval needs; continue "
        "with: --resume RUN --budget 60s"
    )


def left_out_points(manifest: Manifest, points: Sequence[PointResult]) -> frozenset[str]:
    """Ids of the points that a budget had no time for. The main point stays if it has the repetitions of a
    bound, which are worth more than none.
    """
    if manifest.budget is None or not manifest.budget.left_out:
        return frozenset()
    main = most_informative(manifest.points).id
    measured = next(point for point in points if point.id == main)
    bounded = all(has_bound(side.kept) for side in (measured.comp, measured.comm))
    return frozenset(manifest.budget.left_out) - ({main} if bounded else set())


def left_out_notes(manifest: Manifest, left_out: Set[str]) -> tuple[Note, ...]:
    """What there was no time for, one note for each kernel."""
    if manifest.budget is None:
        return ()
    reason = (
        f"no time was left of the budget of {manifest.budget.seconds:.0f} s; "
        "continue with: --resume RUN --budget 60s"
    )
    kernels: dict[str, list[Point]] = {}
    for point in manifest.points:
        if point.id in left_out:
            kernels.setdefault(point.kernel, []).append(point)
    return tuple(
        Note(what=_what(kernel, points), status="left out", reason=reason)
        for kernel, points in kernels.items()
    )


def _what(kernel: str, points: Sequence[Point]) -> str:
    if len(points) == 1:
        return points[0].id
    sizes = sorted({point.size for point in points})
    extent = (
        format_size(sizes[0]) if len(sizes) == 1 else f"{format_size(sizes[0])} to {format_size(sizes[-1])}"
    )
    return f"{len(points)} points of {kernel}, message size {extent}"
