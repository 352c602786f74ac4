"""FLOW, fitted to curves and asked for loads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.base import LoadDraws, Provenance, flags
from elbowroom.models.curves import STREAMS, Curves
from elbowroom.models.document import Document
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow import load_fit
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.intervals import ends
from elbowroom.models.flow.law import NAMES, Array, cases
from elbowroom.models.flow.law import evaluate as by_law
from elbowroom.models.flow.load_prior import questions
from elbowroom.models.flow.loads import evaluate
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.load import Load, LoadPrediction, situation_of
from elbowroom.plan.sizes import format_size
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
    others = sum(value is not None for row in source.loads for value in row.streams)
    informative = bool(questions(source.loads, curves.size, source.intensity))
    values = own + others if informative else own
    if values < len(NAMES):
        raise UsageError(
            f"{values} measured bandwidths are fewer than the {len(NAMES)} parameters of FLOW",
            field="rows",
            value=len(curves.rows),
            hint=f"measure at least {-(-len(NAMES) // len(STREAMS))} runs with all four bandwidths",
        )
    flow = flow_fit.fit(curves)
    return load_fit.fit(flow, curves, source.loads, intensity=source.intensity) or flow


def model(document: Document, _name: str, _faithful: bool) -> FlowModel:
    """The model of a document that has it."""
    return FlowModel(document)


class FlowModel:
    """Answers any load that its runs tell of."""

    def __init__(self, document: Document) -> None:
        part = document.models.flow
        assert part is not None
        self.document, self.part = document, part

    def answers(self, load: Load) -> bool:
        """It has an answer to everything, if a flagged one."""
        return True

    def predict(self, loads: Sequence[Load], *, plain: bool = False) -> list[LoadPrediction]:
        """One prediction for each load, in order; `plain` ones by the law of two sockets, as in lib/predict.
        The law of loads differs from it where there are more sockets.
        """
        draws = self._draws_of_situations(loads) if plain else self.draws(loads)
        streams = [_intervals(getattr(draws, name), draws.discrepancy[k]) for k, name in enumerate(STREAMS)]
        groups = [_intervals(rates, draws.discrepancy[2]) for rates in draws.groups]
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
                flags=(*flags(self.document, load, self.part.load), *self._unknown(load)),
            )
            for place, load in enumerate(loads)
        ]

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """Thousands of loads at once are meant."""
        for load in loads:
            self._check_known(load)
        calibrated = _calibrated(self.document, loads)
        rates = evaluate(self.part.vectors, extension_of(self.document), self.document.machine, calibrated)
        return LoadDraws(
            comp_alone=rates.streams[0],
            comm_alone=rates.streams[1],
            comp_together=rates.streams[2],
            comm_together=rates.streams[3],
            groups=rates.groups,
            copies=rates.copies,
            discrepancy=self._discrepancy(calibrated),
        )

    def _draws_of_situations(self, loads: Sequence[Load]) -> LoadDraws:
        situations = [at for load in loads if (at := situation_of(load)) is not None]
        streams = by_law(self.part.vectors, cases(self.document.machine, situations))
        return LoadDraws(
            comp_alone=streams[0],
            comm_alone=streams[1],
            comp_together=streams[2],
            comm_together=streams[3],
            groups=np.zeros((2, *streams.shape[1:])),
            copies=np.zeros((0, *streams.shape[1:])),
            discrepancy=self._discrepancy(loads),
        )

    def _check_known(self, load: Load) -> None:
        """Refuses questions that the model has no runs for."""
        document, known = self.document, self.part.load
        calibration = document.calibration
        intensity = max((group.intensity for group in load.computing), default=0.0)
        if intensity > 0 and (known is None or "intensity" not in known.measured):
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
        if (known is None or "sizes" not in known.measured) and document.message_size is None:
            raise UsageError(
                f"is not the size of the model, {format_size(calibration.size)}, and it knows no other",
                field="messages.size",
                value=format_size(size) if size is not None else None,
                hint="fit it with the plan `sizes` too: elbowroom run sizes --out RUN2; "
                "elbowroom fit RUN RUN2",
            )

    def _discrepancy(self, loads: Sequence[Load]) -> Array:
        """That of situations as FLOW was fitted, by who computes; that of other loads as they were, and never
        less.
        """
        part = self.part
        base = np.array(part.discrepancy)
        more = base if part.load is None else np.maximum(base, part.load.discrepancy)
        discrepancy = np.repeat(more[:, None], len(loads), axis=1)
        known = [(index, at) for index, load in enumerate(loads) if (at := situation_of(load)) is not None]
        plain = cases(self.document.machine, [at for _, at in known])
        places = [index for index, _ in known]
        discrepancy[:, places] = part.discrepancies_of(plain.local > 0, plain.remote > 0)
        return discrepancy

    def _unknown(self, load: Load) -> tuple[str, ...]:
        """What it answers without a run of it."""
        measured = () if self.part.load is None else self.part.load.measured
        asks = {
            "send": load.messages is not None and load.messages.direction == "send",
            "both": load.messages is not None and load.messages.direction == "both",
            "threads": load.messages is not None and load.messages.threads > 1,
            "copies": bool(load.copies),
            "nodes": len({group.socket for group in load.computing}) < len(load.computing),
        }
        return tuple(UNKNOWN[name] for name, there in asks.items() if there and name not in measured)


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


def _intervals(rates: Array, discrepancy: Array) -> list[Interval]:
    """Of rates (1 + D, L)."""
    rows = zip(*(table.tolist() for table in ends(rates, discrepancy)), strict=True)
    return [Interval(value=value, low=low, high=high) for value, low, high in rows]
