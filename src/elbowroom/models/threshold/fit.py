"""Calibrates the threshold model (thesis, 6.2.1 and 6.3.1) from measured curves, as the thesis does or
robustly.

Both learn from the sample placements only, data of both on node 0 (local) and on the first node of the second
socket (remote); what other placements do is left to be predicted.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves, Shape
from elbowroom.models.load import Bands
from elbowroom.models.threshold.law import Floats, Parameters, Threshold, bandwidths
from elbowroom.models.threshold.robust import calibrate
from elbowroom.models.threshold.samples import COUNTS_NEEDED, Sample, TooFew, by_count, sample_of
from elbowroom.stats.interval import Interval

Method = Literal["thesis", "robust"]

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


def fit(curves: Curves, method: Method = "thesis", *, seed: int = 0, resamples: int = RESAMPLES) -> Fitted:
    """Calibrates from the sample placements that were measured; a side without enough of them is left out.

    Flags, each as `local:...` or `remote:...`: `not_measured`; `too_few_counts`; `one_core`; `no_contention`
    (t_par_max is a lower bound); `n_par_above_n_seq`; `negative_slope` (more cores, more bandwidth);
    `unstable_network`; `missing_counts`; `interpolated` (both streams at n_seq_max were not measured).
    `resamples`: how often residuals are drawn for the intervals of the robust calibration; 0: no intervals.
    Raises UsageError when no side has the counts of cores that its parameters need (TooFew), or neither was
    measured, and for rows that cannot be.
    """
    sides: dict[str, Parameters | None] = {}
    flags: list[str] = []
    intervals: dict[str, dict[str, Interval]] = {}
    bands: dict[str, Bands] = {}
    rows = 0
    short: UsageError | None = None
    for word, node in (("local", 0), ("remote", curves.shape.numa_per_socket)):
        sides[word] = None
        try:
            sample = sample_of(curves, word, node)
        except TooFew as error:
            flags.append(f"{word}:too_few_counts")
            short = short or error
            continue
        if sample is None:
            flags += [f"{word}:not_measured"] if node < curves.shape.nodes else []
            continue
        if method == "thesis":
            sides[word], notes = _as_the_thesis(sample)
        else:
            start, notes = _as_the_thesis(sample)
            sides[word], bounds = calibrate(sample, start, seed=seed, resamples=resamples)
            # Fewer counts are met exactly: resampled residuals are 0, which would say that all is known.
            if len(set(sample.ns[sample.ns > 0].tolist())) >= COUNTS_NEEDED:
                intervals[word] = bounds
        bands[word] = _bands(sample, sides[word])
        flags += [f"{word}:{note}" for note in (*notes, *_oddities(sample, sides[word]))]
        rows += len(sample.ns)
    if not rows:
        raise short or _nothing_to_learn_from(curves.shape)
    model = Threshold(shape=curves.shape, local=sides["local"], remote=sides["remote"])
    return Fitted(model=model, method=method, flags=tuple(flags), intervals=intervals, bands=bands, rows=rows)


def _nothing_to_learn_from(shape: Shape) -> UsageError:
    node = shape.numa_per_socket
    return UsageError(
        "the threshold model learns from data of both on one node, and none was measured",
        field="rows",
        hint=f"measure comp_node 0 with comm_node 0, and {node} with {node}",
    )


def _as_the_thesis(sample: Sample) -> tuple[Parameters, tuple[str, ...]]:
    """Section 6.3.1 to the letter: "it mostly looks for minimums and maximums".

    How B_seq^comm is taken over n is not said; it is their maximum here. What communications keep is
    relative to it, as alpha's formula has it.
    """
    notes = []
    ns, table = by_count(sample)
    if len(ns) < sample.cores:
        notes.append("missing_counts")
    comp_alone, comm_together, both = table[:, 0], table[:, 3], table[:, 2] + table[:, 3]
    b_comm = float(np.nanmax(sample.streams[:, 1]))
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


def _oddities(sample: Sample, parameters: Parameters | None) -> list[str]:
    """What makes these parameters less than they seem."""
    assert parameters is not None
    p = parameters
    model = bandwidths(p, sample.cores)
    kept = np.minimum(model.comp_together[1:] / model.comp_alone[1:], model.comm_together[1:] / p.b_comm_seq)
    alone = sample.streams[:, 1]
    alone = alone[np.isfinite(alone)]
    oddities = {
        "one_core": sample.cores == 1,
        "no_contention": bool((kept >= 1 - UNTOUCHED).all()),
        "n_par_above_n_seq": p.n_par_max > p.n_seq_max,
        "negative_slope": p.delta_r < 0 or p.delta_l < 0,
        "unstable_network": float(alone.std() / np.median(alone)) > STEADY,
    }
    return [word for word, is_so in oddities.items() if is_so]


def _bands(sample: Sample, parameters: Parameters | None) -> Bands:
    """Relative half-width of each stream that holds 90 % of what was measured, widened for the nine
    parameters that were chosen to fit it.
    """
    assert parameters is not None
    off = np.abs(residuals(sample, parameters))
    widen = np.sqrt(sample.measured / max(sample.measured - 9, 1))
    widths = [float(np.quantile(column[np.isfinite(column)], 0.9) * widen) for column in off.T]
    return widths[0], widths[1], widths[2], widths[3]


def residuals(sample: Sample, parameters: Parameters) -> Floats:
    """predicted / measured - 1, in the order of STREAMS: (m, 4), NaN where not measured."""
    table = bandwidths(parameters, sample.cores).streams(parameters.b_comm_seq)
    off: Floats = table[sample.ns] / sample.meant - 1
    return off
