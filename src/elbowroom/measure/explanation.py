"""What a run folder holds for an explanation: results, resamples of its raw samples, what is known of
frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.errors import UsageError
from elbowroom.explain.explainer import ObservedRun
from elbowroom.measure.measurements import collect
from elbowroom.measure.results import IMPORTED, Results
from elbowroom.results.resampled import LEAST, log_kept
from elbowroom.results.result import PointResult, mean_mhz
from elbowroom.store.folder import RunFolder


def observed(folder: RunFolder, results: Results) -> ObservedRun:
    """The run as `explain` takes it. Resamples are drawn over the plan's repetitions; UsageError where there
    is one or none, since nothing tells how sure a contrast is.
    """
    manifest = folder.manifest
    repetitions = int(manifest.plan["repetitions"])
    if manifest.launcher == IMPORTED or repetitions < LEAST:
        raise UsageError(
            "has one value of each, so the uncertainty of a contrast is unknown",
            field="run",
            value=str(folder.path),
            hint="measure with several repetitions: elbowroom run contrast",
        )
    samples = collect(folder.entries(), manifest.points).samples
    return ObservedRun(
        run=str(folder.path),
        results=results.points,
        logs=log_kept(manifest.points, samples, repetitions, manifest.seed, manifest.starts),
        trusted=results.verdict.trusted,
        reasons=results.verdict.reasons,
        frequency=frequency(results.points, manifest.observers),
    )


def frequency(points: Sequence[PointResult], observers: Mapping[str, Any]) -> str:
    """What was seen of the frequencies of the cores, as a clause."""
    reading = observers.get("frequency", {})
    if reading.get("status") != "ok":
        return f"cannot be read here: n/a, {reading.get('reason', 'no reason was recorded')}"
    alone = mean_mhz(points, "B", "communication")
    together = mean_mhz(points, "AB", "communication")
    traced = ""
    if alone is not None and together is not None:
        traced = f"; the communication core ran at {alone:.0f} MHz alone and at {together:.0f} together"
    moved = sum("frequency_moved" in item.flags for item in points)
    if moved:
        return f"moved by more than 2 % between alone and together at {moved} of {len(points)} points{traced}"
    return f"moved by less than 2 % between alone and together{traced}"
