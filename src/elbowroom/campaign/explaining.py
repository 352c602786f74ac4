"""What a run folder holds for an explanation: results, resamples of its raw samples, what is known of
frequencies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elbowroom.campaign.collecting import collect
from elbowroom.campaign.results import IMPORTED, Results
from elbowroom.explain.explaining import Observed
from elbowroom.stats.resampled import log_kept
from elbowroom.stats.result import PointResult
from elbowroom.stats.traces import mean_mhz
from elbowroom.store.folder import RunFolder


def observed(folder: RunFolder, results: Results) -> Observed:
    """The run as `explain` takes it. Resamples are drawn over the plan's repetitions; imported values have
    none.
    """
    manifest = folder.manifest
    logs = None
    if manifest.launcher != IMPORTED:
        samples = collect(folder.entries(), manifest.points).samples
        logs = log_kept(manifest.points, samples, int(manifest.plan["repetitions"]), seed=manifest.seed)
    return Observed(
        run=str(folder.path),
        results=results.points,
        logs=logs,
        trusted=results.verdict.trusted,
        reasons=results.verdict.reasons,
        frequency=_frequency(results.points, manifest.observers),
    )


def _frequency(points: Sequence[PointResult], observers: Mapping[str, Any]) -> str:
    """What was seen of the frequencies of the cores, as a clause."""
    reading = observers.get("frequency", {})
    if reading.get("status") != "ok":
        return f"cannot be read here: n/a, {reading.get('reason', 'nothing was said of them')}"
    alone = mean_mhz(points, "B", "communication")
    together = mean_mhz(points, "AB", "communication")
    traced = ""
    if alone is not None and together is not None:
        traced = f"; the communication core ran at {alone:.0f} MHz alone and at {together:.0f} together"
    moved = sum("frequency_moved" in item.flags for item in points)
    if moved:
        return f"moved by more than 2 % between alone and together at {moved} of {len(points)} points{traced}"
    return f"moved by less than 2 % between alone and together{traced}"
