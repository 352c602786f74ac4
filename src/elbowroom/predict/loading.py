"""What a document answers for any load: groups of cores, intensities, messages of any kind, copies."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.model.curves import STREAMS, Situation
from elbowroom.model.document import Document, FlowPart, LoadPart, ModelName
from elbowroom.model.flow import NAMES
from elbowroom.model.flow_extras import Extension
from elbowroom.model.flow_load import LoadRates, evaluate
from elbowroom.model.load import Load, LoadPrediction, check_load
from elbowroom.model.prediction import NORMAL_90, Interval
from elbowroom.plan.sizes import format_size
from elbowroom.predict.answering import EXTRAPOLATED, VIRTUAL, check_parameters, chosen, predict

Array = NDArray[np.float64]

UNKNOWN = {
    "send": "send not measured: as receiving",
    "both": "both directions not measured: as receiving",
    "threads": "several communication threads not measured: what one drives is taken for the NIC's limit",
    "copies": "copies not measured: served as messages are",
    "nodes": "cores of one socket on several nodes or of several kinds not measured",
}
"""Flags of what the model answers without a run of it."""

GOLDEN = 0.6180339887498949
"""Multiples of it modulo 1 are spread evenly however many there are."""


class LoadDraws(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths (MB/s) of L loads, (1 + D, L) each: row 0 the best fit, then sets of parameters drawn from
    their joint distribution; `groups` (G, 1 + D, L) and `copies` (C, 1 + D, L) together, in each load's
    order, 0 beyond it. `discrepancy` (4, L): relative standard deviation of what the model cannot follow, for
    each of STREAMS. A threshold model has no draws.
    """

    comp_alone: Array
    comm_alone: Array
    comp_together: Array
    comm_together: Array
    groups: Array
    copies: Array
    discrepancy: Array


def load_draws(document: Document, loads: Sequence[Load], *, name: ModelName | None = None) -> LoadDraws:
    """The best fit and the draws for every load, in order; thousands of loads at once are meant.

    UsageError for a load that does not fit the machine, or that the model has no runs for.
    """
    model = chosen(document, name)
    for load in loads:
        check_load(document.machine, load)
    if model != "flow":
        return _of_predictions(_threshold(document, loads, model))
    part = document.models.flow
    assert part is not None
    known = part.load
    for load in loads:
        _check_known(document, known, load)
    asked = _calibrated(document, loads)
    found = _rates(document, part, asked)
    four = found.streams
    return LoadDraws(
        comp_alone=four[0],
        comm_alone=four[1],
        comp_together=four[2],
        comm_together=four[3],
        groups=found.groups,
        copies=found.copies,
        discrepancy=_discrepancy(part, asked),
    )


def predict_loads(
    document: Document, loads: Sequence[Load], *, name: ModelName | None = None
) -> list[LoadPrediction]:
    """One prediction with 90 % intervals for each load, in order.

    UsageError for a load that does not fit the machine, or that the model has no runs for.
    """
    model = chosen(document, name)
    if model != "flow":
        for load in loads:
            check_load(document.machine, load)
        return _threshold(document, loads, model)
    draws = load_draws(document, loads, name=model)
    together = draws.discrepancy[2]
    streams = [_intervals(getattr(draws, stream), draws.discrepancy[k]) for k, stream in enumerate(STREAMS)]
    groups = [_intervals(rates, together) for rates in draws.groups]
    copies = [_intervals(rates, draws.discrepancy[3]) for rates in draws.copies]
    return [
        LoadPrediction(
            load=load,
            comp_alone=streams[0][place],
            comm_alone=streams[1][place],
            comp_together=streams[2][place],
            comm_together=streams[3][place],
            groups=tuple(groups[k][place] for k in range(len(load.computing))),
            copies=tuple(copies[k][place] for k in range(len(load.copies))),
            flags=_flags(document, load),
        )
        for place, load in enumerate(loads)
    ]


def extension_of(document: Document) -> Extension:
    """The parameters beyond FLOW's, best fit and draws; those that were not measured are neutral.

    A document that knows message sizes only by the law t0 + s/B has that law.
    """
    part = document.models.flow
    assert part is not None
    known, law, rows = part.load, document.message_size, 1 + len(part.draws)
    names: tuple[str, ...] = ()
    values = np.zeros((rows, 0))
    if known is not None:
        names, values = known.names, np.array([known.values, *known.draws])
    if law is not None and "latency_0" not in names:
        # Evenly over the interval, in an order of its own: FLOW's draws know nothing of t0.
        steps = law.low + (law.high - law.low) * (np.arange(1, rows) * GOLDEN % 1.0)
        names = (*names, "latency_0")
        values = np.column_stack([values, [law.t0, *steps]])
    return Extension(
        size=document.calibration.size,
        names=names,
        values=values,
        switches=() if known is None else known.switches,
        intensity=0.0 if known is None else known.intensity,
    )


def _check_known(document: Document, known: LoadPart | None, load: Load) -> None:
    """Refuses questions that the model has no runs for."""
    calibration = document.calibration
    asked = max((group.intensity for group in load.computing), default=0.0)
    if asked > 0 and (known is None or "intensity" not in known.measured):
        raise UsageError(
            f"{document.machine.name}'s model knows no other arithmetic intensity than that of "
            f"{calibration.kernel}",
            field="computing.intensity",
            value=asked,
            mend="fit it with the plan `intensity` too: elbowroom run intensity --out RUN2; "
            "elbowroom fit RUN RUN2",
        )
    size = None if load.messages is None else load.messages.size
    if size in (None, calibration.size):
        return
    if (known is None or "sizes" not in known.measured) and document.message_size is None:
        raise UsageError(
            f"is not the size of the model, {format_size(calibration.size)}, and it knows no other",
            field="messages.size",
            value=format_size(size) if size is not None else None,
            mend="fit it with the plan `sizes` too: elbowroom run sizes --out RUN2; elbowroom fit RUN RUN2",
        )


def _calibrated(document: Document, loads: Sequence[Load]) -> list[Load]:
    """Loads whose messages have the calibrated size have large ones: that is what FLOW was fitted to."""
    size = document.calibration.size
    return [
        msgspec.structs.replace(load, messages=msgspec.structs.replace(load.messages, size=None))
        if load.messages is not None and load.messages.size == size
        else load
        for load in loads
    ]


def _rates(document: Document, part: FlowPart, loads: Sequence[Load]) -> LoadRates:
    check_parameters(part)
    order = [part.names.index(name) for name in NAMES]
    vectors = np.array([part.values, *part.draws])[:, order]
    return evaluate(vectors, extension_of(document), document.machine, loads)


def _discrepancy(part: FlowPart, loads: Sequence[Load]) -> Array:
    """That of situations as FLOW was fitted; that of other loads as they were, and never less."""
    base = np.array(part.discrepancy)
    more = base if part.load is None else np.maximum(base, part.load.discrepancy)
    return np.stack([base if _situation(load) is not None else more for load in loads], axis=1)


def _intervals(rates: Array, discrepancy: Array) -> list[Interval]:
    """Of rates (1 + D, L): exp(+-1.645 s), s^2 = variance of the draws' logarithms + discrepancy^2."""
    logs = np.log(np.maximum(rates[1:], 1e-9))
    spread = np.sqrt((logs.var(axis=0) if len(logs) else 0.0) + discrepancy**2)
    factor = np.exp(NORMAL_90 * spread)
    low, high = rates[0] / factor, rates[0] * factor
    return [
        Interval(value=value, low=below, high=above)
        for value, below, above in zip(rates[0].tolist(), low.tolist(), high.tolist(), strict=True)
    ]


def _situation(load: Load) -> Situation | None:
    """The load as a situation: cores on one node, calibrated intensity and size, one thread that receives."""
    nodes = {group.node for group in load.computing}
    sockets = [group.socket for group in load.computing]
    messages = load.messages
    plain = (
        not load.copies
        and len(nodes) <= 1
        and len(set(sockets)) == len(sockets)
        and max(sockets, default=0) < 2
    )
    plain = plain and not any(group.intensity for group in load.computing)
    if not plain or (
        messages is not None and (messages.direction, messages.size, messages.threads) != ("receive", None, 1)
    ):
        return None
    counts = {group.socket: group.count for group in load.computing}
    comp = nodes.pop() if nodes else None
    # Where nobody communicates the cores' own node is as good as any; where nobody computes, the messages'.
    comm = messages.node if messages is not None else comp or 0
    return Situation(
        comp_node=comm if comp is None else comp,
        comm_node=comm,
        n=counts.get(0, 0),
        n_other=counts.get(1, 0),
    )


def _flags(document: Document, load: Load) -> tuple[str, ...]:
    """What the answer rests on less than on a run of it."""
    calibration, local = document.calibration, document.machine.local
    part = document.models.flow
    known = None if part is None else part.load
    counts = [sum(g.count for g in load.computing if g.socket == socket) for socket in (0, 1)]
    inside = counts[0] == 0 or calibration.n_low <= counts[0] <= calibration.n_high
    inside &= counts[1] <= calibration.n_other_high
    comps = {local(comp) for comp, _ in calibration.placements}
    inside &= all(local(group.node) in comps for group in load.computing)
    if load.messages is not None:
        inside &= local(load.messages.node) in {local(comm) for _, comm in calibration.placements}
        inside &= _size_inside(document, known, load.messages.size)
    inside &= known is None or all(group.intensity <= known.intensity_high for group in load.computing)
    flags = [] if inside else [EXTRAPOLATED]
    if document.machine.virtual:
        flags.append(VIRTUAL)
    measured = () if known is None else known.measured
    asked = {
        "send": load.messages is not None and load.messages.direction == "send",
        "both": load.messages is not None and load.messages.direction == "both",
        "threads": load.messages is not None and load.messages.threads > 1,
        "copies": bool(load.copies),
        "nodes": len({group.socket for group in load.computing}) < len(load.computing),
    }
    return (*flags, *(UNKNOWN[what] for what, there in asked.items() if there and what not in measured))


def _size_inside(document: Document, known: LoadPart | None, size: int | None) -> bool:
    if size in (None, document.calibration.size):
        return True
    assert size is not None
    if known is not None and "sizes" in known.measured:
        return known.size_low <= size <= known.size_high
    return document.message_size is not None and not document.message_size.extrapolated(size)


def _threshold(document: Document, loads: Sequence[Load], model: ModelName) -> list[LoadPrediction]:
    """Loads that the threshold model can answer: cores of the first socket on one node, and messages that
    arrive, of any size that the document knows.
    """
    return [_threshold_one(document, load, model) for load in loads]


def _threshold_one(document: Document, load: Load, model: ModelName) -> LoadPrediction:
    messages = load.messages
    size = None if messages is None else messages.size
    plain = (
        load
        if messages is None
        else msgspec.structs.replace(load, messages=msgspec.structs.replace(messages, size=None))
    )
    at = _situation(plain)
    if at is None:
        raise UsageError(
            f"the {model} model answers one group of cores at the calibrated intensity and messages that one "
            "thread receives",
            field="load",
            mend="fit FLOW to a run of the machine: elbowroom run model; elbowroom fit RUN",
        )
    # Without cores nobody loses: one core's alone is what messages reach.
    asked = at if at.n + at.n_other else msgspec.structs.replace(at, n=1)
    found = predict(document, (asked,), name=model, size=size)[0]
    zero = Interval(value=0.0, low=0.0, high=0.0)
    comp_alone, comm_alone = found.comp_alone, found.comm_alone
    comp, comm = found.comp_together, found.comm_together
    if asked is not at:
        comp_alone, comp, comm = zero, zero, comm_alone
    if messages is None:
        comp, comm_alone, comm = comp_alone, zero, zero
    return LoadPrediction(
        load=load,
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp,
        comm_together=comm,
        groups=(comp,) if load.computing else (),
        flags=found.flags,
    )


def _of_predictions(found: Sequence[LoadPrediction]) -> LoadDraws:
    """Predictions without draws: the half-widths of their intervals as discrepancy."""
    four = np.array([[getattr(one, stream).value for one in found] for stream in STREAMS])
    highs = np.array([[getattr(one, stream).high for one in found] for stream in STREAMS])
    wide = np.where(four > 0, highs / np.where(four > 0, four, 1.0), 1.0)
    return LoadDraws(
        comp_alone=four[0][None],
        comm_alone=four[1][None],
        comp_together=four[2][None],
        comm_together=four[3][None],
        groups=four[2][None, None],
        copies=np.zeros((0, 1, len(found))),
        discrepancy=np.log(wide) / NORMAL_90,
    )
