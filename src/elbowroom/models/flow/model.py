"""FLOW, fitted to curves and asked for loads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.base import LoadDraws, Provenance, Reach
from elbowroom.models.curves import STREAMS, Curves, Shape, Situation
from elbowroom.models.document import Document
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import NAMES, Array
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.flow.prior import questions
from elbowroom.models.load import NORMAL_90, Load, LoadPrediction, load_at, situation_of
from elbowroom.quantities import format_size
from elbowroom.stats.interval import Interval

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


def fit(_name: str, curves: Curves, source: Provenance) -> FlowPart:
    """FLOW, where there are at least as many measured bandwidths as it has parameters, with what other loads
    tell; their bandwidths count where they tell of something.
    """
    own = sum(value is not None for row in curves.rows for value in row.streams)
    others = sum(value is not None for row in source.loads for value in (*row.streams, *row.copies_together))
    informative = bool(questions(source.loads, curves.size, source.intensity))
    values = own + others if informative else own
    if values < len(NAMES):
        raise UsageError(
            f"{values} measured bandwidths are fewer than the {len(NAMES)} parameters of FLOW",
            field="rows",
            value=len(curves.rows),
            hint=f"measure at least {-(-len(NAMES) // len(STREAMS))} runs with all four bandwidths",
        )
    return flow_fit.fit(curves, source.loads, intensity=source.intensity)


def model(document: Document, _name: str, _faithful: bool) -> FlowModel:
    """The model of a document that has it."""
    return FlowModel(document)


class FlowModel:
    """Answers any load that its runs tell of."""

    def __init__(self, document: Document) -> None:
        part = document.models.flow
        assert part is not None
        self.document, self.part = document, part
        self.measured = () if part.load is None else part.load.measured
        self.reach = Reach()
        if part.load is not None:
            sizes = (part.load.size_low, part.load.size_high) if "sizes" in self.measured else None
            self.reach = Reach(sizes=sizes, intensity=part.load.intensity_high)

    @cached_property
    def _parameters(self) -> tuple[Array, Extension, Array]:
        """FLOW's and those beyond it, best fit and draws, and their discrepancies."""
        return self.part.vectors, extension_of(self.document), discrepancies(self.part)

    def answers(self, load: Load) -> bool:
        """It has an answer to everything, if a flagged one."""
        return True

    def answered(self, load: Load) -> Load:
        """The load itself."""
        return load

    def predict(self, loads: Sequence[Load], *, plain: bool = False) -> list[LoadPrediction]:
        """One prediction for each load, in order."""
        draws = self._draws(loads, plain=True) if plain else self.draws(loads)
        streams = _intervals([getattr(draws, name) for name in STREAMS], draws.discrepancy)
        groups = _intervals(draws.groups, draws.discrepancy[2])
        copies = _intervals(draws.copies, draws.discrepancy[3])
        return [
            LoadPrediction(
                load=load,
                **{name: table[place] for name, table in zip(STREAMS, streams, strict=True)},
                groups=tuple(groups[k][place] for k in range(len(load.computing))),
                copies=tuple(copies[k][place] for k in range(len(load.copies))),
                flags=self._unknown(load),
            )
            for place, load in enumerate(loads)
        ]

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """Thousands of loads at once are meant."""
        for load in loads:
            self._check_known(load)
        return self._draws(_calibrated(self.document, loads))

    def _draws(self, loads: Sequence[Load], *, plain: bool = False) -> LoadDraws:
        vectors, extension, unlike = self._parameters
        shape = self.document.machine
        rates = evaluate(vectors, extension, prepare(shape, loads, plain=plain))
        return LoadDraws(
            **dict(zip(STREAMS, rates.streams, strict=True)),
            groups=rates.groups,
            copies=rates.copies,
            discrepancy=unlike[:, _kinds(loads, shape.numa_per_socket)],
        )

    def _check_known(self, load: Load) -> None:
        """Refuses questions that the model has no runs for."""
        document, calibration = self.document, self.document.calibration
        intensity = max((group.intensity for group in load.computing), default=0.0)
        if intensity > 0 and "intensity" not in self.measured:
            raise UsageError(
                f"{document.machine.name}'s model knows no other arithmetic intensity than that of "
                f"{calibration.kernel}",
                field="computing.intensity",
                value=intensity,
                hint="fit it with the plan `intensity` too: elbowroom run intensity --out RUN2; "
                "elbowroom fit RUN RUN2",
            )
        size = None if load.messages is None else load.messages.size
        if size in (None, calibration.size):
            return
        if "sizes" not in self.measured and document.message_size is None:
            raise UsageError(
                f"is not the size of the model, {format_size(calibration.size)}, and it knows no other",
                field="messages.size",
                value=format_size(size) if size is not None else None,
                hint="fit it with the plan `sizes` too: elbowroom run sizes --out RUN2; "
                "elbowroom fit RUN RUN2",
            )

    def _unknown(self, load: Load) -> tuple[str, ...]:
        """What it answers without a run of it."""
        messages = load.messages
        asks = {
            "send": messages is not None and messages.direction == "send",
            "both": messages is not None and messages.direction == "both",
            "threads": messages is not None and messages.threads > 1,
            "copies": bool(load.copies),
            "nodes": len({group.socket for group in load.computing}) < len(load.computing),
        }
        return tuple([UNKNOWN[name] for name in asks if asks[name] and name not in self.measured])


def discrepancies(part: FlowPart) -> Array:
    """The discrepancy, (4, 4), of situations where cores compute on local data, on remote data, and on both,
    and of other loads: that of their own runs, and never less than that of situations.
    """
    sides, other = part.discrepancies, part.load
    rows = [part.discrepancy] * 3 if sides is None else [sides.local, sides.remote, sides.both]
    more = part.discrepancy if other is None else np.maximum(part.discrepancy, other.discrepancy)
    return np.array([*rows, more]).T


def _kinds(loads: Sequence[Load], local_nodes: int) -> list[int]:
    """The column of `discrepancies` for each load; nodes below `local_nodes`: of the first socket."""
    kinds = []
    for load in loads:
        local = {(group.node < local_nodes) == (group.socket == 0) for group in load.computing if group.count}
        kinds.append(3 if situation_of(load) is None else 2 if len(local) > 1 else int(local == {False}))
    return kinds


def bands(part: FlowPart, shape: Shape, situations: Sequence[Situation]) -> tuple[Array, Array, Array]:
    """Values, lower and upper ends for situations, (4, S) each in MB/s. Nothing is checked."""
    loads = [load_at(item) for item in situations]
    rates = evaluate(part.vectors, Extension(), prepare(shape, loads, plain=True)).streams
    return _ends(rates, discrepancies(part)[:, _kinds(loads, shape.numa_per_socket)])


def _calibrated(document: Document, loads: Sequence[Load]) -> list[Load]:
    """Loads whose messages have the calibrated size have large ones: that is what FLOW was fitted to."""
    size = document.calibration.size
    return [
        msgspec.structs.replace(load, messages=msgspec.structs.replace(load.messages, size=None))
        if load.messages is not None and load.messages.size == size
        else load
        for load in loads
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


def _ends(rates: Array, discrepancy: Array) -> tuple[Array, Array, Array]:
    """Values and ends, (..., L), of rates (..., 1 + D, L), the best fit's first: exp(+-1.645 s), with s^2 =
    variance of the draws' logarithms + discrepancy^2.
    """
    logs = np.log(np.maximum(rates[..., 1:, :], 1e-9))
    variance: Array | float = logs.var(axis=-2) if logs.shape[-2] else 0.0
    value, factor = rates[..., 0, :], np.exp(NORMAL_90 * np.sqrt(variance + discrepancy**2))
    return value, value / factor, value * factor


def _intervals(rates: Sequence[Array] | Array, discrepancy: Array) -> list[list[Interval]]:
    """Of rates (K, 1 + D, L)."""
    if not len(rates):
        return []
    tables = [table.tolist() for table in _ends(np.asarray(rates), discrepancy)]
    return [
        [Interval(value=value, low=low, high=high) for value, low, high in zip(*rows, strict=True)]
        for rows in zip(*tables, strict=True)
    ]
