"""What every model of contention is to the rest of elbowroom: fitted to curves, then asked for loads.

A model is a folder here and an entry of `registry.py`. Its module has `fit`, which makes the model's part of
the file M.json, and `model`, which makes of such a part what answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document, Origin
from elbowroom.models.flow.part import LoadPart
from elbowroom.models.load import Load, LoadPrediction, LoadRow
from elbowroom.models.message_size import MessageBandwidth
from elbowroom.models.prediction import NORMAL_90

Array = NDArray[np.float64]

EXTRAPOLATED, VIRTUAL = "extrapolated", "virtual"


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where curves come from: what Calibration says and the curves do not. `doubts`: why the run itself is
    not trusted; `sizes`: messages alone, of all sizes; `loads`: runs of other loads than situations;
    `intensity` (flop/B), `pattern`, `with_runs`: as FitData and Calibration have them.
    """

    run: str = ""
    plan: str = ""
    origin: Origin = "measured"
    nodes: tuple[int, ...] = ()
    left_out: dict[str, int] = {}
    doubts: tuple[str, ...] = ()
    sizes: tuple[MessageBandwidth, ...] = ()
    loads: tuple[LoadRow, ...] = ()
    intensity: float = 0.0
    pattern: str = "receive"
    with_runs: tuple[str, ...] = ()


class LoadDraws(msgspec.Struct, frozen=True, kw_only=True):
    """Bandwidths (MB/s) of L loads, (1 + D, L) each: row 0 the best fit, then sets of parameters drawn from
    their joint distribution; `groups` (G, 1 + D, L) and `copies` (C, 1 + D, L) together, in each load's
    order, 0 beyond it. `discrepancy` (4, L): relative standard deviation of what the model cannot follow, for
    each of STREAMS.
    """

    comp_alone: Array
    comm_alone: Array
    comp_together: Array
    comm_together: Array
    groups: Array
    copies: Array
    discrepancy: Array


class ContentionModel(Protocol):
    """A fitted model of one machine. Loads fit the machine: that was checked before (models/predict.py)."""

    document: Document

    def answers(self, load: Load) -> bool:
        """Whether it can predict that load."""

    def predict(self, loads: Sequence[Load], *, plain: bool = False) -> list[LoadPrediction]:
        """Bandwidths with 90 % intervals and flags for each load, in order; UsageError for a load that it
        cannot predict. `plain`: all loads are situations, which the law that was fitted answers.
        """

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """The best fit and the draws of the loads; thousands at once are meant. UsageError as `predict`."""


def flags(document: Document, load: Load, known: LoadPart | None = None) -> tuple[str, ...]:
    """`extrapolated` outside what was measured (more or fewer cores, data on a socket where none was, other
    message sizes and intensities than `known`), `virtual` where no real machine was.
    """
    calibration, local = document.calibration, document.machine.local
    counts = [sum(group.count for group in load.computing if group.socket == socket) for socket in (0, 1)]
    inside = counts[0] == 0 or calibration.n_low <= counts[0] <= calibration.n_high
    inside &= counts[1] <= calibration.n_other_high
    comps = {local(comp) for comp, _ in calibration.placements}
    # As in lib/predict, the node of no cores counts beside messages of the calibrated size only.
    sized = load.messages is not None and load.messages.size not in (None, calibration.size)
    inside &= all(local(group.node) in comps for group in load.computing if group.count or not sized)
    if load.messages is not None:
        inside &= local(load.messages.node) in {local(comm) for _, comm in calibration.placements}
        inside &= _size_inside(document, known, load.messages.size)
    inside &= known is None or all(group.intensity <= known.intensity_high for group in load.computing)
    return (*(() if inside else (EXTRAPOLATED,)), *((VIRTUAL,) if document.machine.virtual else ()))


def _size_inside(document: Document, known: LoadPart | None, size: int | None) -> bool:
    if size is None or size == document.calibration.size:
        return True
    if known is not None and "sizes" in known.measured:
        return known.size_low <= size <= known.size_high
    return document.message_size is not None and not document.message_size.extrapolated(size)


def draws_of(predictions: Sequence[LoadPrediction]) -> LoadDraws:
    """Predictions of a model without draws: the half-widths of their intervals as discrepancy."""
    four = np.array([[getattr(item, stream).value for item in predictions] for stream in STREAMS])
    highs = np.array([[getattr(item, stream).high for item in predictions] for stream in STREAMS])
    wide = np.where(four > 0, highs / np.where(four > 0, four, 1.0), 1.0)
    return LoadDraws(
        comp_alone=four[0][None],
        comm_alone=four[1][None],
        comp_together=four[2][None],
        comm_together=four[3][None],
        groups=four[2][None, None],
        copies=np.zeros((0, 1, len(predictions))),
        discrepancy=np.log(wide) / NORMAL_90,
    )
