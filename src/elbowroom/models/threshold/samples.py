"""What the threshold model is calibrated on: the rows with the data of both sides on one node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS, Curves, Row, Shape
from elbowroom.models.threshold.law import Floats

COUNTS_NEEDED = 3
"""Counts of cores a side needs, where the machine has that many: nine free parameters (delta_l follows from
the others), three bandwidths a count (communications alone do not depend on it).
"""


class TooFew(UsageError):
    """A side was measured at fewer counts of cores than its parameters need."""


class Sample(NamedTuple):
    """The measured rows of one sample placement: counts (m,) and bandwidths (m, 4), MB/s, NaN where not
    measured.
    """

    word: str
    ns: NDArray[np.int64]
    streams: Floats
    cores: int

    @property
    def measured(self) -> int:
        """How many bandwidths there are."""
        return int(np.isfinite(self.streams).sum())

    @property
    def meant(self) -> Floats:
        """The bandwidths without those of computations on no core."""
        return np.where((self.ns[:, None] > 0) | [False, True, False, True], self.streams, np.nan)


def sample_of(curves: Curves, word: str, node: int) -> Sample | None:
    """The rows with data of both on that node and computing cores on the first socket only; None without."""
    chosen = [
        row
        for row in curves.rows
        if row.situation.comp_node == node == row.situation.comm_node and not row.situation.n_other
    ]
    if node >= curves.shape.nodes or not any(row.situation.n for row in chosen):
        return None
    chosen.sort(key=lambda row: row.situation.n)
    cores = curves.shape.cores_first_socket
    for row in chosen:
        _check(row, curves.shape)
    sample = Sample(
        word=word,
        ns=np.array([row.situation.n for row in chosen], dtype=np.int64),
        streams=np.array(
            [[np.nan if value is None else value for value in row.streams] for row in chosen],
            dtype=np.float64,
        ),
        cores=cores,
    )
    _enough(sample)
    return sample


def _check(row: Row, shape: Shape) -> None:
    where = row.source or f"n = {row.situation.n}"
    if not 0 <= row.situation.n <= shape.cores_first_socket:
        raise UsageError(
            f"{shape.name} has {shape.cores_first_socket} cores on its first socket",
            field=f"{where}: n",
            value=row.situation.n,
            hint="correct the row or the number of cores",
        )
    for name, value in zip(STREAMS, row.streams, strict=True):
        meant = row.situation.n or "comp" not in name
        if meant and value is not None and not (np.isfinite(value) and value > 0):
            raise UsageError(
                "is not a bandwidth",
                field=f"{where}: {name}",
                value=value,
                hint="give a positive number of MB/s, or leave it out",
            )


def _enough(sample: Sample) -> None:
    """Refuses samples that say less than the parameters ask."""
    complete = sample.ns[(sample.ns > 0) & np.isfinite(sample.streams[:, (0, 2, 3)]).all(axis=1)]
    have, need = len(set(complete.tolist())), min(COUNTS_NEEDED, sample.cores)
    if not np.isfinite(sample.streams[:, 1]).any():
        raise TooFew(
            "communications alone were not measured",
            field=f"{sample.word} rows",
            hint="measure comm_alone at one n at least",
        )
    if have < need:
        raise TooFew(
            f"{have} of the {need} counts of computing cores needed have computations alone and both streams "
            "together (nine parameters, three bandwidths a count)",
            field=f"{sample.word} rows",
            value=have,
            hint=f"measure {need - have} more, best 1, {sample.cores} and some between",
        )


def by_count(sample: Sample) -> tuple[NDArray[np.int64], Floats]:
    """Counts from 1, rising, and the mean of what was measured at each: (m,), (m, 4); NaN where nothing."""
    ns = np.unique(sample.ns[sample.ns > 0])
    table = np.full((len(ns), 4), np.nan)
    for index, n in enumerate(ns):
        there = sample.streams[sample.ns == n]
        known = np.isfinite(there)
        sums = np.where(known, there, 0.0).sum(axis=0)
        np.divide(sums, known.sum(axis=0), out=table[index], where=known.any(axis=0))
    return ns, table
