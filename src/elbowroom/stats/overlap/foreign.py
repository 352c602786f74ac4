"""The overlap as the OSU Micro-Benchmarks and the Intel MPI Benchmarks print it, from our samples.

Both subtract the computation as it was measured beside the message. What the message costs the computation is
therefore in neither of them. Both are shares here; the tools print per cent.
"""

from __future__ import annotations

import numpy as np

from elbowroom.stats.overlap.samples import OverlapSamples, Resamples, means
from elbowroom.stats.signed_ranks import Floats


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
