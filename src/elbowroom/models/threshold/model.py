"""The threshold model, fitted to curves and asked for loads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.base import LoadDraws, Provenance, Reach, draws_of
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.document import Document, at_size
from elbowroom.models.load import Bands, Load, LoadPrediction, load_at, situation_of
from elbowroom.models.threshold import fit as calibration
from elbowroom.models.threshold import law
from elbowroom.models.threshold.law import ThresholdPart
from elbowroom.stats.interval import Interval

FROM_CALIBRATION = "calibration residuals"
SAMPLES_ONLY = "interval: sample placements only"
"""The run measured no other placement, so the interval is that of those the model was calibrated on."""

PLACES = 1024
"""Placements and sizes of messages whose tables are kept."""

Name = Literal["threshold", "robust"]
Notes = tuple[str, ...]
ZERO = Interval(value=0.0, low=0.0, high=0.0)


def fit(name: Name, curves: Curves, _source: Provenance) -> ThresholdPart:
    """Calibrated as the thesis does (`threshold`) or against noise (`robust`); see threshold/fit.py."""
    fitted = calibration.fit(curves, "thesis" if name == "threshold" else "robust")
    bands = dict(fitted.bands)
    other = _other_band(fitted.model, curves)
    if other is not None:
        bands["other"] = other
    return ThresholdPart(
        local=fitted.model.local,
        remote=fitted.model.remote,
        intervals=fitted.intervals,
        bands=bands,
        bands_from=FROM_CALIBRATION,
        flags=fitted.flags,
    )


def _other_band(model: law.Threshold, curves: Curves) -> Bands | None:
    """Relative half-widths that hold 90 % of what was measured with data elsewhere than where the model was
    calibrated; None where nothing was.
    """
    shape = model.shape
    samples = {(0, 0), (shape.numa_per_socket, shape.numa_per_socket)}
    places: dict[tuple[int, int], list[Row]] = {}
    for row in curves.rows:
        at = row.situation
        place = (at.comp_node, at.comm_node)
        sides = {shape.local(node) for node in place}
        known = (model.local or True not in sides) and (model.remote or False not in sides)
        if place not in samples and at.n and not at.n_other and known:
            places.setdefault(place, []).append(row)
    off: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]] = []
    for (comp, comm), rows in places.items():
        predicted = law.curve(model, comp, comm, [row.situation.n for row in rows])
        measured = np.array([row.streams for row in rows], dtype=np.float64)
        off.append(np.abs(predicted / measured - 1))
    if not off:
        return None
    table = np.concatenate(off)
    widths = [column[np.isfinite(column)] for column in table.T]
    if not all(len(column) for column in widths):
        return None
    bands = [float(np.quantile(column, 0.9, method="higher")) for column in widths]
    return bands[0], bands[1], bands[2], bands[3]


def model(document: Document, name: Name, faithful: bool) -> ThresholdModel:
    """The model of a document that has it; `faithful`: the thesis' equations to the letter."""
    return ThresholdModel(document, name, faithful)


class ThresholdModel:
    """Answers cores of one socket on one node and messages that one thread receives, of any size that the
    document knows.
    """

    def __init__(self, document: Document, name: Name, faithful: bool) -> None:
        self.document, self.name, self.faithful = document, name, faithful
        self.reach = Reach()
        self._place = lru_cache(PLACES)(self._computed_place)

    def answers(self, load: Load) -> bool:
        """Whether it is such a load, with data where the model was calibrated."""
        part, local = self._part(self.document), self.document.machine.local
        known = {near for near, side in ((True, part.local), (False, part.remote)) if side is not None}
        at = situation_of(_unsized(load))
        return at is not None and not at.n_other and {local(at.comp_node), local(at.comm_node)} <= known

    def answered(self, load: Load) -> Load:
        """The situation: without cores, or messages, with one core, or messages, on the other's node."""
        return load_at(self._situation(load), None if load.messages is None else load.messages.size)

    def predict(self, loads: Sequence[Load], *, plain: bool = False) -> list[LoadPrediction]:
        """From the table of each placement."""
        predictions = []
        for load in loads:
            at = self._situation(load)
            law.check_one_socket(at)
            size = None if load.messages is None else load.messages.size
            values, notes = self._place(size, at.comp_node, at.comm_node)[at.n]
            predictions.append(_prediction(load, values, notes))
        return predictions

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """The threshold model has none: the half-widths of its intervals are the discrepancy."""
        return draws_of(self.predict(loads))

    def _part(self, document: Document) -> ThresholdPart:
        part: ThresholdPart = getattr(document.models, self.name)
        return part

    def _computed_place(self, size: int | None, comp: int, comm: int) -> list[tuple[list[Interval], Notes]]:
        """For 0, 1 … all cores of the first socket the four bandwidths, and flags."""
        document, shape = self.document, self.document.machine
        fitted = self._part(document if size is None else at_size(document, size)).model(shape)
        ns = range(shape.cores_first_socket + 1)
        rows = law.curve(fitted, comp, comm, ns, faithful=self.faithful).tolist()
        changed = [False] * len(rows) if self.faithful else law.repaired(fitted, comp, comm, ns).tolist()
        bands, notes = band(self._part(document), shape, comp, comm)
        return [
            (
                [interval(value, width) for value, width in zip(row, bands, strict=True)],
                (law.REPAIRED, *notes) if repaired else notes,
            )
            for row, repaired in zip(rows, changed, strict=True)
        ]

    def _situation(self, load: Load) -> Situation:
        """The load as the situation that answers it; UsageError where the model knows no such load."""
        at = situation_of(_unsized(load))
        if at is None:
            raise UsageError(
                f"the {self.name} model answers one group of cores at the calibrated intensity and messages "
                "that one thread receives",
                field="load",
                hint="fit FLOW to a run of the machine: elbowroom run model; elbowroom fit RUN",
            )
        # Without cores nobody loses: one core's alone is what messages reach.
        return at if load.computing else msgspec.structs.replace(at, n=1)


def _unsized(load: Load) -> Load:
    if load.messages is None:
        return load
    return msgspec.structs.replace(load, messages=msgspec.structs.replace(load.messages, size=None))


def _prediction(load: Load, values: Sequence[Interval], notes: tuple[str, ...]) -> LoadPrediction:
    """Of the situation's four bandwidths; without computing cores or messages theirs are 0."""
    comp_alone, comm_alone, comp, comm = values
    if not load.computing:
        comp_alone, comp, comm = ZERO, ZERO, comm_alone
    if load.messages is None:
        comp, comm_alone, comm = comp_alone, ZERO, ZERO
    return LoadPrediction(
        load=load,
        comp_alone=comp_alone,
        comm_alone=comm_alone,
        comp_together=comp,
        comm_together=comm,
        groups=(comp,) if load.computing else (),
        flags=notes,
    )


def band(part: ThresholdPart, shape: Shape, comp_node: int, comm_node: int) -> tuple[Bands, tuple[str, ...]]:
    """Relative half-widths for a placement, and what to say of them."""
    notes = (f"interval: {part.bands_from}",) if part.bands_from else ()
    if comp_node == comm_node and comp_node in (0, shape.numa_per_socket):
        side = "local" if comp_node == 0 else "remote"
        if side in part.bands:
            return part.bands[side], notes
    if "other" in part.bands:
        return part.bands["other"], notes
    widest = np.max([part.bands[side] for side in sorted(part.bands)], axis=0).tolist()
    return (widest[0], widest[1], widest[2], widest[3]), (*notes, SAMPLES_ONLY)


def interval(value: float, width: float) -> Interval:
    """value (1 +- width); a bandwidth is not below 0."""
    return Interval(value=value, low=max(value * (1 - width), 0.0), high=value * (1 + width))
