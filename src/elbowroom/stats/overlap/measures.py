"""All numbers of one overlap, with 95 % bootstrap intervals: times, what is hidden, what is lost and why.

The OSU Micro-Benchmarks and the Intel MPI Benchmarks subtract the computation as it was measured beside the
message. What the message costs the computation is therefore in neither of their overlaps. Both are shares
here; the tools print per cent.
"""

from __future__ import annotations

import msgspec
import numpy as np

from elbowroom.stats.bootstrap import estimate, medians
from elbowroom.stats.interval import Interval
from elbowroom.stats.overlap.losses import Loss, Reason, account, losses, progress_share, reason_of
from elbowroom.stats.overlap.samples import (
    Iterations,
    OverlapSamples,
    Resamples,
    TogetherIterations,
    arrival_skew,
    collective_time,
    means,
    resamples,
)
from elbowroom.stats.signed_ranks import Floats


class OverlapMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """An overlap measured. Times in s, from the last arrival to the last departure; the rest are shares.

    `kept_comp`: computation alone / together. `kept_comm`: message alone / (message alone + what it is
    exposed for beyond tail and lateness); 1 if the computation hides it wholly, whatever time it took then.
    `progressed`: share of what could be hidden that proceeded outside of MPI. `fraction_of_ideal` is the
    overlap, unless a sequence was measured; None if there is then nothing to hide.
    """

    message: Interval
    computation: Interval
    together: Interval
    skew: Interval
    overlap: Interval
    osu_overlap: Interval
    imb_overlap: Interval
    fraction_of_ideal: Interval | None
    kept_comp: Interval
    kept_comm: Interval
    progressed: Interval
    reason: Reason
    losses: tuple[Loss, ...]
    clock_bound: float


def measures(
    samples: OverlapSamples,
    *,
    sequence: float | None = None,
    progressed: float | None = None,
    seed: int = 1,
) -> OverlapMeasures:
    """The numbers of one point's samples.

    `sequence`: time of both one after the other, where it was measured (the blocking form), in s; default:
    the sum of both alone. `progressed`: that of the same point beside a computation in registers, if it was
    measured; see `losses`.
    """
    drawn = resamples(samples, seed)
    message, computation, together = (
        _middles(samples, kind, drawn) for kind in ("message", "computation", "together")
    )
    serial = message + computation
    shorter, longer = np.minimum(message, computation), np.maximum(message, computation)
    parts = account(samples, drawn)
    all_losses = losses(parts, progressed=progressed)
    return OverlapMeasures(
        message=_interval(message),
        computation=_interval(computation),
        together=_interval(together),
        skew=_interval(medians(arrival_skew(samples.together.enter), drawn.groups["together"], drawn.drawn)),
        overlap=_interval((serial - together) / shorter),
        osu_overlap=_interval(osu_overlaps(samples, drawn)),
        imb_overlap=_interval(imb_overlaps(samples, drawn)),
        fraction_of_ideal=_of_ideal(serial if sequence is None else serial * 0 + sequence, together, longer),
        kept_comp=_interval(parts.computation / parts.computing),
        kept_comm=_interval(parts.message / (parts.message + parts.rest)),
        progressed=_interval(progress_share(parts)),
        reason=reason_of(all_losses, parts, samples.clock_bound),
        losses=all_losses,
        clock_bound=samples.clock_bound,
    )


def _middles(samples: OverlapSamples, kind: str, drawn: Resamples) -> Floats:
    rows: Iterations | TogetherIterations = getattr(samples, kind)
    return medians(collective_time(rows.enter, rows.leave), drawn.groups[kind], drawn.drawn)


def _of_ideal(serial: Floats, together: Floats, longer: Floats) -> Interval | None:
    hidable = serial - longer
    return _interval((serial - together) / hidable) if hidable[0] > 0 else None


def _interval(values: Floats) -> Interval:
    return estimate(float(values[0]), values[1:])


def osu_overlaps(samples: OverlapSamples, drawn: Resamples) -> Floats:
    """max(0, 1 - (t_overall - (t_compute - t_test)) / t_pure) of all iterations, then of each resample.

    All times are averages over ranks and iterations (OSU Micro-Benchmarks 7, osu_iallreduce.c and
    print_stats_nbc of osu_util_mpi.c): `t_overall` from before the starting call to after MPI_Wait,
    `t_compute` the computation between both, with `t_test` in MPI_Test, `t_pure` the operation alone.
    """
    together, message = samples.together, samples.message
    overall = together.leave - together.enter
    compute = together.computed - together.posted - together.tests_s
    exposed = means((overall - compute).mean(axis=1), drawn.groups["together"], drawn.drawn)
    pure = means((message.leave - message.enter).mean(axis=1), drawn.groups["message"], drawn.drawn)
    return np.maximum(0.0, 1.0 - exposed / pure)


def imb_overlaps(samples: OverlapSamples, drawn: Resamples) -> Floats:
    """max(0, min(1, (t_pure + t_CPU - t_ovrl) / min(t_pure, t_CPU))) of all iterations, then of each
    resample.

    Times are averages over the iterations of the rank with the longest `t_ovrl`, and `t_CPU` is measured
    beside the message (Intel MPI Benchmarks, User Guide, "Measuring Communication and Computation Overlap").
    """
    together, message = samples.together, samples.message
    groups = drawn.groups["together"]
    overlapped = means(together.leave - together.enter, groups, drawn.drawn)
    cpu = means(together.computed - together.posted, groups, drawn.drawn)
    pure = means(message.leave - message.enter, drawn.groups["message"], drawn.drawn)
    slowest = overlapped.argmax(axis=1)[:, None]
    ovrl, busy, alone = (
        np.take_along_axis(table, slowest, axis=1)[:, 0] for table in (overlapped, cpu, pure)
    )
    return np.clip((alone + busy - ovrl) / np.minimum(alone, busy), 0.0, 1.0)
