"""Predicted steps: times of both sides and of the whole, for every draw of the model, of many setups at once.

A step computes W bytes and communicates N bytes; the share s of W comes first (the separator), the rest is
shared with the accelerators, which would take T_A for all of it:
    separator = s W / comp_alone,  T_M = (1 - s)(1 - w) W / comp_alone,  T_N = N / comm_alone,
    total = separator + max(w T_A, both),
where both is T_tot of models/overlap/law.py with L_M and L_N alone/together, or T_M + T_N without overlap.
A collective operation adds what of it is exposed (collectives.py).
On r times as many nodes as the job has now W is a share 1/r of that, and N a share 1/r^e.
All computing cores share the work so that they end together. Sources: Langguth 2018, sections IV and VI.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.collectives import exposed
from elbowroom.advise.job import BEST, Accelerator, Job, JobStep, Setup
from elbowroom.advise.setups import load_of, reference_of
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document
from elbowroom.models.predict import load_draws

Array = NDArray[np.float64]

MEGA = 1e6
"""B/s in a MB/s."""

STEP = 1e-4
"""Of the logarithm of a bandwidth, in differences."""


class SetupRates(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths (MB/s) of S setups: `streams` (4, 1 + D, S), in the order of STREAMS, row 0 the best fit;
    `moved`: bytes that a step computes (1 + D,); `discrepancy` (4, S): relative standard deviation of what
    the model cannot follow.
    """

    streams: Array
    moved: Array
    discrepancy: Array


class SetupTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times (s) and loss ratios of S setups, each (1 + D, S); `collective`: what of it is exposed; `w`: the
    accelerators' share, (S,).
    """

    separator: Array
    t_comp: Array
    t_comm: Array
    l_comp: Array
    l_comm: Array
    t_acc: Array
    collective: Array
    total: Array
    w: Array


def rates(document: Document, job: Job, setups: Sequence[Setup], *, name: str | None = None) -> SetupRates:
    """The predicted bandwidths of these setups. UsageError if the model cannot predict one."""
    loads = [load_of(setup, job.step) for setup in setups]
    distinct = list(dict.fromkeys(loads))
    reference = reference_of(job.step)
    wanted = distinct if reference is None else [*distinct, reference]
    draws = load_draws(document, wanted, name=name)
    streams = np.stack([getattr(draws, stream) for stream in STREAMS])
    position = {load: index for index, load in enumerate(distinct)}
    where = np.array([position[load] for load in loads])
    discrepancy = np.broadcast_to(np.asarray(draws.discrepancy, dtype=float).reshape(4, -1), (4, len(wanted)))
    return SetupRates(
        streams=streams[:, :, where],
        moved=_moved(job.step, None if reference is None else streams[0, :, -1]),
        discrepancy=discrepancy[:, where],
    )


def _moved(step: JobStep, reference: Array | None) -> Array:
    """Bytes of the computation: as given, or the measured time times its predicted bandwidth."""
    if step.t_comp is None:
        assert step.moved is not None
        return np.array([step.moved])
    assert reference is not None
    if not (reference > 0).all():
        raise UsageError(
            "has no computation there according to the model",
            field="step.t_comp",
            hint="check its cores and node",
        )
    return reference * MEGA * step.t_comp.seconds


def steps(job: Job, setups: Sequence[Setup], given: SetupRates) -> SetupTimes:
    """The steps of these setups at these rates; the accelerators' best shares are those of the best fit."""
    overlap = np.array([setup.overlap for setup in setups])
    fixed = np.array([np.nan if setup.w == BEST else setup.w for setup in setups], dtype=float)
    more = more_nodes(job, setups)
    return _steps(job, setups, more, overlap, fixed, given.streams, given.moved[:, None] / more)


def more_nodes(job: Job, setups: Sequence[Setup]) -> Array:
    """How many times the nodes that the job has now, of each setup."""
    return np.array([setup.nodes / job.now.nodes for setup in setups])


def _steps(
    job: Job,
    setups: Sequence[Setup],
    more: Array,
    overlap: NDArray[np.bool_],
    fixed: Array,
    streams: Array,
    moved: Array,
) -> SetupTimes:
    """`more`: of nodes; `fixed`: the accelerators' share, nan for the best one; `moved`: (1 + D or 1, S)."""
    comp_alone, comm_alone, comp, comm = np.maximum(streams, 1e-9) * MEGA
    step = job.step
    whole = (1.0 - step.separator) * moved / comp_alone
    t_comm = step.comm_bytes / more**step.comm_exponent / comm_alone
    # Nothing gets more together than alone; what a model says beyond that is rounding or an interval's end.
    l_comp, l_comm = np.maximum(comp_alone / comp, 1.0), np.maximum(comm_alone / comm, 1.0)
    t_acc = accelerator_time(job.accelerator, step.separator, moved) * np.ones_like(whole)
    best = best_share(whole[0], t_comm[0], l_comp[0], l_comm[0], t_acc[0], overlap)
    w = np.where(np.isnan(fixed), best, fixed)
    t_comp = whole * (1.0 - w)
    separator = step.separator * moved / comp_alone
    # Without accelerator t_acc is infinite and w is 0.
    busy = np.where(w > 0, w * np.where(w > 0, t_acc, 0.0), 0.0)
    collective = exposed(job.collective, [setup.way for setup in setups], t_comp)
    both = np.where(overlap, overlapped(t_comp, t_comm, l_comp, l_comm), t_comp + t_comm)
    return SetupTimes(
        separator=separator,
        t_comp=t_comp,
        t_comm=t_comm,
        l_comp=l_comp,
        l_comm=l_comm,
        t_acc=busy,
        collective=collective,
        total=separator + np.maximum(busy, both) + collective,
        w=w,
    )


def accelerator_time(accelerator: Accelerator | None, separator: float, moved: Array) -> Array:
    """T_A (s): all of the computation behind the separator on the accelerators; infinite without any."""
    if accelerator is None:
        return np.full_like(moved, np.inf)
    if accelerator.seconds is not None:
        return np.full_like(moved, (1.0 - separator) * accelerator.seconds)
    assert accelerator.bandwidth is not None
    return (1.0 - separator) * moved / (accelerator.bandwidth * MEGA)


def overlapped(t_comp: Array, t_comm: Array, l_comp: Array, l_comm: Array) -> Array:
    """T_tot of models/overlap/law.py (`Step.total`), element by element."""
    comp, comm = l_comp * t_comp, l_comm * t_comm
    return np.where(comp <= comm, t_comm + comp * (1 - 1 / l_comm), t_comp + comm * (1 - 1 / l_comp))


def best_share(
    whole: Array, t_comm: Array, l_comp: Array, l_comm: Array, t_acc: Array, overlap: NDArray[np.bool_]
) -> Array:
    """The accelerators' share at which both sides end at once; 1 where even the communication alone ends
    later than they do with everything. What `overlap.Node.best_split` finds by bisection: each of the two
    branches of T_tot is linear in w, and the side that ends last decides which one holds.
    """
    with np.errstate(invalid="ignore"):
        # Computation ends last: t_acc w = (1 - w) whole + t_comm l_comm (1 - 1/l_comp); also of no overlap.
        beside = np.where(overlap, t_comm * l_comm * (1 - 1 / l_comp), t_comm)
        last = (whole + beside) / (whole + t_acc)
        # Communication ends last: t_acc w = t_comm + (1 - w) whole l_comp (1 - 1/l_comm).
        lost = whole * l_comp * (1 - 1 / l_comm)
        first = (t_comm + lost) / (lost + t_acc)
        computes_last = ~overlap | (l_comp * (1 - last) * whole >= l_comm * t_comm)
        share = np.where(computes_last, last, first)
    return np.where(np.isfinite(t_acc), np.clip(share, 0.0, 1.0), 0.0)


def slopes(job: Job, setups: Sequence[Setup], given: SetupRates, w: Array) -> Array:
    """d log total / d log of each of the four bandwidths, and of the bytes computed, at the best fit: (5, S).
    The accelerators' share `w` (S,) is held.
    """
    overlap, more = np.array([setup.overlap for setup in setups]), more_nodes(job, setups)
    relative = np.empty((5, len(setups)))
    for k in range(5):
        ends = []
        for sign in (1.0, -1.0):
            streams, moved = given.streams[:, :1].copy(), given.moved[:1, None] / more
            (streams[k] if k < 4 else moved)[...] *= np.exp(sign * STEP)
            ends.append(_steps(job, setups, more, overlap, w, streams, moved).total[0])
        relative[k] = np.log(ends[0] / ends[1]) / (2 * STEP)
    return relative
