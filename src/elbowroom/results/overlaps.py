"""Calls beside computations: from the times of all ranks in each iteration to what a point shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from elbowroom.results.result import PointResult
from elbowroom.stats.overlap.measures import OverlapMeasures, measures
from elbowroom.stats.overlap.samples import KINDS, samples_of


def with_overlaps(
    results: Sequence[PointResult], calls: Mapping[str, Sequence[Mapping[str, Any]]], seed: int
) -> list[PointResult]:
    """The results with the numbers of their overlaps; None for one whose call had no computation beside it,
    or was not measured.
    """
    return [
        _with_measures(result, _measured(calls.get(result.id, ()), seed))
        if result.workload.overlaps_calls
        else result
        for result in results
    ]


def _measured(answers: Sequence[Mapping[str, Any]], seed: int) -> OverlapMeasures | None:
    whole = [answer for answer in answers if all(kind in answer for kind in KINDS)]
    return measures(samples_of(whole), seed=seed) if whole else None


def _with_measures(result: PointResult, found: OverlapMeasures | None) -> PointResult:
    ideal = None if found is None else found.fraction_of_ideal
    return msgspec.structs.replace(
        result,
        overlapped=found,
        overlap=None if found is None else found.overlap.value,
        osu_overlap=None if found is None else found.osu_overlap.value,
        fraction_of_ideal=None if ideal is None else ideal.value,
    )
