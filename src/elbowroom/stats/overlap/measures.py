"""All numbers of one overlap, with 95 % bootstrap intervals: times, what is hidden, what is lost and why.

The OSU Micro-Benchmarks and the Intel MPI Benchmarks subtract the computation as it was measured beside the
message. What the message costs the computation is therefore in neither of their overlaps. Both are shares
here; the tools print per cent.

Where the time goes that a step takes beyond its computation alone is an account that adds up.
A rank's time together, from entering to leaving, less its computation alone, is what communicating costs it.
It consists of the computation's slowdown and of the time inside MPI (starting call, MPI_Test, final wait):

    cost = slowdown + in MPI
    in MPI = late + tail + rest

- `late`: the last rank arrived later than this one, and this one waited: min(skew, wait). The message cannot
  be complete before the last arrival, so it would have been complete by so much earlier.
- `tail`: what perfect overlap of these two sides leaves exposed: max(0, message - computation), each alone.
- the rest is what overlap could have hidden and did not. Of it, time in the starting call and in MPI_Test is
  `no_progress`: the message proceeds inside calls of MPI. So is the final wait, if hardly anything of the
  message (less than PROGRESSES) proceeded outside of MPI: it then takes what it takes alone. If more
  proceeded, the message did proceed, but slower: `contention`, to which the computation's slowdown belongs.

Each is a mean over ranks and a median over iterations. Nothing is clamped before the medians, so noise adds
nothing to `slowdown` and `rest`; it adds equally to `in MPI` and to `tail`, which come from equal
distributions if nothing is lost.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
import numpy as np

from elbowroom.stats.bootstrap import estimate, medians
from elbowroom.stats.interval import Interval
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

Reason = Literal["contention", "no_progress", "late", "tail", "none"]
REASONS: tuple[Reason, ...] = ("contention", "no_progress", "late", "tail")

PROGRESSES = 0.2
"""Share of what could be hidden: below, the message does not proceed outside of MPI. The strongest contention
of the published machines leaves communications 0.27 of their rate (alpha; Swartvagher 2022, chapter 6)."""
NAMED = 0.05
"""Share of the shorter side (of contention: of the longer one) below which a loss is no reason."""
NAMED_TAIL = 0.25
"""The same of the tail, of the computation: a computation is made as long as a message only roughly."""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """What one reason costs a step: `seconds`, and its share of what all reasons cost (0 to 1)."""

    reason: Reason
    seconds: Interval
    share: float


class OverlapParts(NamedTuple):
    """Parts of a step's cost in s, each (1 + resamples,): of all iterations, then of each resample."""

    message: Floats
    computation: Floats
    computing: Floats
    late: Floats
    tail: Floats
    calls: Floats
    rest: Floats


def account(samples: OverlapSamples, drawn: Resamples) -> OverlapParts:
    """The parts of the module's first paragraph; `rest` includes `calls`."""
    together, alone = samples.together, samples.message
    start = together.posted - together.enter
    wait = together.leave - together.computed
    late = np.minimum(_behind(together.enter), start + wait)
    computing = together.computed - together.posted - together.tests_s
    exposed = (start + together.tests_s + wait - late).mean(axis=1)
    message = alone.leave - alone.enter
    message = message - np.minimum(_behind(alone.enter), message)
    computation = samples.computation.leave - samples.computation.enter
    pairs = min(len(message), len(computation))
    tails = np.maximum(message[:pairs] - computation[:pairs], 0.0).mean(axis=1)

    def middle(kind: str, values: Floats) -> Floats:
        return medians(values, drawn.groups[kind][: len(values)], drawn.drawn)

    tail = middle("message", tails)
    return OverlapParts(
        message=middle("message", message.mean(axis=1)),
        computation=middle("computation", computation.mean(axis=1)),
        computing=middle("together", computing.mean(axis=1)),
        late=middle("together", late.mean(axis=1)),
        tail=tail,
        calls=middle("together", (start + together.tests_s).mean(axis=1)),
        rest=middle("together", exposed) - tail,
    )


def _behind(enter: Floats) -> Floats:
    """How long before the last rank each one arrived: (I, R)."""
    behind: Floats = enter.max(axis=1, keepdims=True) - enter
    return behind


def losses(parts: OverlapParts, *, progressed: float | None = None) -> tuple[Loss, ...]:
    """What each reason costs, in the order of REASONS.

    `progressed`: share of the message that proceeded outside of MPI beside a computation in registers, same
    form and policy, where that was measured (`progress_share`). Contention cannot explain what is exposed
    there, so it divides the rest better than PROGRESSES does.
    """
    rest = np.maximum(parts.rest, 0.0)
    if progressed is not None:
        waited = (1.0 - np.clip(progressed, 0.0, 1.0)) * (parts.message - parts.tail)
    else:
        waited = rest if float(progress_share(parts)[0]) < PROGRESSES else np.zeros_like(rest)
    no_progress = np.minimum(rest, np.maximum(waited, parts.calls))
    contention = parts.computing - parts.computation + parts.rest - no_progress
    costs: dict[Reason, Floats] = {
        "contention": contention,
        "no_progress": no_progress,
        "late": parts.late,
        "tail": parts.tail,
    }
    whole = sum(max(float(cost[0]), 0.0) for cost in costs.values())
    return tuple(
        Loss(
            reason=reason,
            seconds=estimate(float(costs[reason][0]), costs[reason][1:]),
            share=max(float(costs[reason][0]), 0.0) / whole if whole > 0 else 0.0,
        )
        for reason in REASONS
    )


def progress_share(parts: OverlapParts) -> Floats:
    """Share of what could be hidden that proceeded while the ranks computed: 0 none, 1 all; unclamped."""
    hidable = np.maximum(parts.message - parts.tail, np.finfo(float).tiny)
    return 1.0 - parts.rest / hidable


def reason_of(candidates: tuple[Loss, ...], parts: OverlapParts, clock_bound: float = 0.0) -> Reason:
    """The reason that costs most, of those that count; `none` if none does.

    A loss counts if its whole interval is above 0 and it is at least NAMED of the shorter side alone;
    contention: of the longer one, because a computation's slowdown is measured against the step; the tail:
    NAMED_TAIL of the computation; lateness also only beyond the error of the clocks.
    """
    message, computation = float(parts.message[0]), float(parts.computation[0])
    least = {
        "contention": NAMED * max(message, computation),
        "no_progress": NAMED * min(message, computation),
        "late": max(NAMED * min(message, computation), clock_bound),
        "tail": NAMED_TAIL * computation,
    }
    counted = [
        loss for loss in candidates if loss.seconds.above(0.0) and loss.seconds.value >= least[loss.reason]
    ]
    return max(counted, key=lambda loss: loss.seconds.value).reason if counted else "none"


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
