"""Calibrates the threshold model (thesis, 6.2.1 and 6.3.1) from measured curves, as the thesis does or
robustly.

Both learn from the sample placements only, data of both on node 0 (local) and on the first node of the second
socket (remote); what other placements do is left to be predicted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.model.curves import STREAMS, Curves, Row, Shape
from elbowroom.model.prediction import Interval
from elbowroom.model.threshold import Floats, Parameters, Threshold, bandwidths

Method = Literal["thesis", "robust"]
Bands = tuple[float, float, float, float]

COUNTS_NEEDED = 3
"""Counts of cores a side needs, where the machine has that many: nine free parameters (delta_l follows from
the others), three bandwidths a count (communications alone do not depend on it).
"""
RESAMPLES = 100
"""Of the residuals, for the intervals of the robust calibration."""
STEADY = 0.05
"""Communications alone that vary more than this over n (standard deviation / median) are called unstable."""
UNTOUCHED = 0.02
"""Both streams keep all but this at every n: there is no contention to learn from."""


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """A calibrated model and how far to trust it.

    `intervals`: 90 % interval of each parameter, by side (`local`, `remote`) and name; empty for the thesis'
    calibration, which has none. `bands`: by side, for each of STREAMS the relative half-width that holds 90 %
    of the measured values. `rows`: how many were used. `flags`: SIDE:WHAT, see `fit`.
    """

    model: Threshold
    method: Method
    flags: tuple[str, ...]
    intervals: dict[str, dict[str, Interval]]
    bands: dict[str, Bands]
    rows: int


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


def fit(curves: Curves, method: Method = "thesis", *, seed: int = 0, resamples: int = RESAMPLES) -> Fitted:
    """Calibrates from the sample placements that were measured; a side without enough of them is left out.

    Flags, each as `local:...` or `remote:...`: `not_measured`; `too_few_counts`; `one_core`; `no_contention`
    (t_par_max is a lower bound); `n_par_above_n_seq`; `negative_slope` (more cores, more bandwidth);
    `unstable_network`; `missing_counts`; `interpolated` (both streams at n_seq_max were not measured).
    `resamples`: how often residuals are drawn for the intervals of the robust calibration; 0: no intervals.
    Raises UsageError when no side has the counts of cores that its parameters need (TooFew), or neither was
    measured, and for rows that cannot be.
    """
    from elbowroom.model.threshold_robust import calibrate

    sides: dict[str, Parameters | None] = {}
    flags: list[str] = []
    intervals: dict[str, dict[str, Interval]] = {}
    bands: dict[str, Bands] = {}
    rows = 0
    short: UsageError | None = None
    for word, node in (("local", 0), ("remote", curves.shape.numa_per_socket)):
        sides[word] = None
        try:
            found = sample(curves, word, node)
        except TooFew as error:
            flags.append(f"{word}:too_few_counts")
            short = short or error
            continue
        if found is None:
            flags += [f"{word}:not_measured"] if node < curves.shape.nodes else []
            continue
        if method == "thesis":
            sides[word], notes = _as_the_thesis(found)
        else:
            start, notes = _as_the_thesis(found)
            sides[word], intervals[word] = calibrate(found, start, seed=seed, resamples=resamples)
        bands[word] = _bands(found, sides[word])
        flags += [f"{word}:{note}" for note in (*notes, *_oddities(found, sides[word]))]
        rows += len(found.ns)
    if not rows:
        raise short or _nothing_to_learn_from(curves.shape)
    model = Threshold(shape=curves.shape, local=sides["local"], remote=sides["remote"])
    return Fitted(model=model, method=method, flags=tuple(flags), intervals=intervals, bands=bands, rows=rows)


def sample(curves: Curves, word: str, node: int) -> Sample | None:
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
    found = Sample(
        word=word,
        ns=np.array([row.situation.n for row in chosen], dtype=np.int64),
        streams=np.array(
            [[np.nan if value is None else value for value in row.streams] for row in chosen],
            dtype=np.float64,
        ),
        cores=cores,
    )
    _enough(found)
    return found


def _check(row: Row, shape: Shape) -> None:
    where = row.source or f"n = {row.situation.n}"
    if not 0 <= row.situation.n <= shape.cores_first_socket:
        raise UsageError(
            f"{shape.name} has {shape.cores_first_socket} cores on its first socket",
            field=f"{where}: n",
            value=row.situation.n,
            mend="correct the row or the number of cores",
        )
    for name, value in zip(STREAMS, row.streams, strict=True):
        meant = row.situation.n or "comp" not in name
        if meant and value is not None and not (np.isfinite(value) and value > 0):
            raise UsageError(
                "is no bandwidth",
                field=f"{where}: {name}",
                value=value,
                mend="give MB/s above 0, or leave it out",
            )


def _enough(found: Sample) -> None:
    """Refuses samples that say less than the parameters ask."""
    complete = found.ns[(found.ns > 0) & np.isfinite(found.streams[:, (0, 2, 3)]).all(axis=1)]
    have, need = len(set(complete.tolist())), min(COUNTS_NEEDED, found.cores)
    if not np.isfinite(found.streams[:, 1]).any():
        raise TooFew(
            "communications alone were not measured",
            field=f"{found.word} rows",
            mend="measure comm_alone at one n at least",
        )
    if have < need:
        raise TooFew(
            f"{have} of the {need} counts of computing cores needed have computations alone and both streams "
            "together (nine parameters, three bandwidths a count)",
            field=f"{found.word} rows",
            value=have,
            mend=f"measure {need - have} more, best 1, {found.cores} and some between",
        )


def _nothing_to_learn_from(shape: Shape) -> UsageError:
    node = shape.numa_per_socket
    return UsageError(
        "the threshold model learns from data of both on one node, and none was measured",
        field="rows",
        mend=f"measure comp_node 0 with comm_node 0, and {node} with {node}",
    )


def by_count(found: Sample) -> tuple[NDArray[np.int64], Floats]:
    """Counts from 1, rising, and the mean of what was measured at each: (m,), (m, 4); NaN where nothing."""
    ns = np.unique(found.ns[found.ns > 0])
    table = np.full((len(ns), 4), np.nan)
    for index, n in enumerate(ns):
        there = found.streams[found.ns == n]
        known = np.isfinite(there)
        sums = np.where(known, there, 0.0).sum(axis=0)
        np.divide(sums, known.sum(axis=0), out=table[index], where=known.any(axis=0))
    return ns, table


def _as_the_thesis(found: Sample) -> tuple[Parameters, tuple[str, ...]]:
    """Section 6.3.1 to the letter: "it mostly looks for minimums and maximums".

    How B_seq^comm is taken over n is not said; it is their maximum here. What communications keep is
    relative to it, as alpha's formula has it.
    """
    notes = []
    ns, table = by_count(found)
    if len(ns) < found.cores:
        notes.append("missing_counts")
    comp_alone, comm_together, both = table[:, 0], table[:, 3], table[:, 2] + table[:, 3]
    b_comm = float(np.nanmax(found.streams[:, 1]))
    par, seq = int(np.nanargmax(both)), int(np.nanargmax(comp_alone))
    known = np.flatnonzero(np.isfinite(both))
    if np.isnan(both[seq]):
        notes.append("interpolated")
    at_seq = float(np.interp(ns[seq], ns[known], both[known]))
    n_par, n_seq, n_last = int(ns[par]), int(ns[seq]), int(ns[known[-1]])
    first = int(np.flatnonzero(np.isfinite(comp_alone))[0])
    t_par, t_last = float(both[par]), float(both[known[-1]])
    return Parameters(
        n_par_max=n_par,
        t_par_max=t_par,
        n_seq_max=n_seq,
        t_seq_max=float(comp_alone[seq]),
        t_par_max2=at_seq,
        alpha=float(np.nanmin(comm_together)) / b_comm,
        delta_l=(t_par - at_seq) / (n_seq - n_par) if n_seq != n_par else 0.0,
        delta_r=(at_seq - t_last) / (n_last - n_seq) if n_last > n_seq else 0.0,
        b_comp_seq=float(comp_alone[first]) / int(ns[first]),
        b_comm_seq=b_comm,
    ), tuple(notes)


def _oddities(found: Sample, parameters: Parameters | None) -> list[str]:
    """What makes these parameters less than they seem."""
    assert parameters is not None
    p = parameters
    said = bandwidths(p, found.cores)
    kept = np.minimum(said.comp_together[1:] / said.comp_alone[1:], said.comm_together[1:] / p.b_comm_seq)
    alone = found.streams[:, 1]
    alone = alone[np.isfinite(alone)]
    seen = {
        "one_core": found.cores == 1,
        "no_contention": bool((kept >= 1 - UNTOUCHED).all()),
        "n_par_above_n_seq": p.n_par_max > p.n_seq_max,
        "negative_slope": p.delta_r < 0 or p.delta_l < 0,
        "unstable_network": float(alone.std() / np.median(alone)) > STEADY,
    }
    return [word for word, is_so in seen.items() if is_so]


def _bands(found: Sample, parameters: Parameters | None) -> Bands:
    """Relative half-width of each stream that holds 90 % of what was measured, widened for the nine
    parameters that were chosen to fit it.
    """
    assert parameters is not None
    off = np.abs(residuals(found, parameters))
    widen = np.sqrt(found.measured / max(found.measured - 9, 1))
    widths = [float(np.quantile(column[np.isfinite(column)], 0.9) * widen) for column in off.T]
    return widths[0], widths[1], widths[2], widths[3]


def residuals(found: Sample, parameters: Parameters) -> Floats:
    """predicted / measured - 1, in the order of STREAMS: (m, 4), NaN where not measured."""
    said = bandwidths(parameters, found.cores)
    alone = np.full(found.cores + 1, parameters.b_comm_seq)
    table = np.stack((said.comp_alone, alone, said.comp_together, said.comm_together), axis=1)[found.ns]
    measured = np.where((found.ns[:, None] > 0) | [False, True, False, True], found.streams, np.nan)
    off: Floats = table / measured - 1
    return off
