"""What a point of `run overlap` and `run collectives` measures: when each rank did what, in each iteration.

All times are on the job's common clock, in s, as arrays (iterations, ranks).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from elbowroom.stats.bootstrap import RESAMPLES, weights
from elbowroom.stats.signed_ranks import FEWEST, Floats, Ints

KINDS = ("message", "computation", "together")


class Iterations(NamedTuple):
    """Iterations of one side alone: `enter` and `leave` (I, R), `repetition` (I,)."""

    enter: Floats
    leave: Floats
    repetition: Ints


class TogetherIterations(NamedTuple):
    """Iterations of both sides, all (I, R), in s. `posted`: the starting call has returned; `computed`: the
    computation is done; `tests_s`: time in calls of MPI_Test.
    """

    enter: Floats
    posted: Floats
    computed: Floats
    leave: Floats
    tests_s: Floats
    repetition: Ints


class OverlapSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The iterations of a point. `clock_bound`: largest error of a difference of two ranks' times, in s."""

    message: Iterations
    computation: Iterations
    together: TogetherIterations
    clock_bound: float = 0.0


class Resamples(NamedTuple):
    """How often each group of iterations is in each resample (groups, resamples), and the group of each
    iteration of a kind.
    """

    drawn: Any
    groups: Mapping[str, Ints]


def samples_of(answers: Sequence[Mapping[str, Any]]) -> OverlapSamples:
    """The samples of a point from its repetitions, each as the probe answers it (docs/reference/protocol.md).

    ValueError if there is no repetition, or one whose arrays do not have one shape.
    """
    if not answers:
        raise ValueError("there are no repetitions")
    together = _joined(answers, "together", ("enter", "posted", "computed", "leave", "tests_s"))
    return OverlapSamples(
        message=Iterations(**_joined(answers, "message", ("enter", "leave"))),
        computation=Iterations(**_joined(answers, "computation", ("enter", "leave"))),
        together=TogetherIterations(**together),
        clock_bound=max(float(answer.get("clock_bound", 0.0)) for answer in answers),
    )


def _joined(answers: Sequence[Mapping[str, Any]], kind: str, names: Sequence[str]) -> dict[str, Any]:
    columns: dict[str, list[Floats]] = {name: [] for name in names}
    repetitions = []
    for number, answer in enumerate(answers):
        given = answer[kind]
        enter = np.asarray(given["enter"], dtype=float)
        if enter.ndim != 2 or not enter.size:
            raise ValueError(f"{kind}.enter of repetition {number} is not a table of iterations and ranks")
        for name in names:
            values = np.zeros_like(enter) if name == "tests_s" and name not in given else given[name]
            column = np.asarray(values, dtype=float)
            if column.shape != enter.shape:
                raise ValueError(f"{kind}.{name} of repetition {number} has another shape than {kind}.enter")
            columns[name].append(column)
        repetitions.append(np.full(len(enter), number))
    if len({column.shape[1] for column in columns["enter"]}) > 1:
        raise ValueError("the repetitions have different numbers of ranks")
    joined: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    return {**joined, "repetition": np.concatenate(repetitions)}


def collective_time(enter: Floats, leave: Floats) -> Floats:
    """From the last arrival to the last departure of each iteration: shape (I,) of (I, R), in s.

    Skew of the arrivals is not part of it (Hunold and Carpen-Amarie, "MPI Benchmarking Revisited", 2015).
    """
    time: Floats = leave.max(axis=1) - enter.max(axis=1)
    return time


def arrival_skew(enter: Floats) -> Floats:
    """From the first arrival to the last one of each iteration: shape (I,) of (I, R), in s."""
    skew: Floats = enter.max(axis=1) - enter.min(axis=1)
    return skew


def resamples(samples: OverlapSamples, seed: int = 1, count: int = RESAMPLES) -> Resamples:
    """`count` resamples of whole repetitions; of iterations, if there are too few repetitions for that.

    Iterations of the three kinds with the same index were measured one after the other, so a resample draws
    them together: what moves all of them cancels in ratios.
    """
    kinds = {kind: getattr(samples, kind) for kind in KINDS}
    if len(np.unique(samples.together.repetition)) >= FEWEST:
        groups = {kind: rows.repetition for kind, rows in kinds.items()}
    else:
        groups = {kind: np.arange(len(rows.repetition)) for kind, rows in kinds.items()}
    drawn_from = 1 + max(int(numbers.max()) for numbers in groups.values())
    return Resamples(drawn=weights(drawn_from, seed, count), groups=groups)


def means(values: Floats, groups: Ints, drawn: Any) -> Floats:
    """The mean of all values, then of each resample: shape (1 + resamples, ...) of (I, ...)."""
    count = drawn.shape[0]
    sums = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, groups, values)
    total = np.bincount(groups, minlength=count) @ drawn.astype(np.int64)
    whole = values.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (np.tensordot(drawn.astype(float).T, sums, axes=1).T / total).T
    each[total == 0] = whole
    return np.concatenate([whole[None], each])
