"""What every model of contention is to the rest of elbowroom: fitted to curves, then asked for loads.

A model is a folder here and an entry of `registry.py`. Its module has `fit`, which makes the model's part of
the file M.json, and `model`, which makes of such a part what answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document, Origin
from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.samples import AcceleratorRuns, GpuSample
from elbowroom.models.load import NORMAL_90, Load, LoadPrediction, LoadRow
from elbowroom.models.message_size import MessageBandwidth


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where curves come from: what Calibration says and the curves do not. `doubts`: why the run itself is
    not trusted; `sizes`: messages alone, of all sizes; `loads`: runs of other loads than situations;
    `intensity` (flop/B), `pattern`, `with_runs`, `store_factor`: as FitData and Calibration have them;
    `accelerator`: what the runs measured of one.
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
    store_factor: float | msgspec.UnsetType = msgspec.UNSET
    accelerator: AcceleratorRuns | None = None


class MeasuredCases(msgspec.Struct, frozen=True, kw_only=True):
    """What a run measured of an accelerator: cases whose victim computes on it, and its copies beside cores
    or messages.
    """

    samples: tuple[GpuSample, ...]
    copies: tuple[LoadRow, ...] = ()


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


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """Where the runs of a model end, beyond those of its calibration: the least and the largest message
    (bytes; None: those of `Document.message_size`), the highest arithmetic intensity (flop/B).
    """

    sizes: tuple[int, int] | None = None
    intensity: float = math.inf


class ContentionModel(Protocol):
    """A fitted model of one machine. Loads fit the machine: models/predict.py checks that before, and adds
    the flags that are the same for every model.
    """

    document: Document
    reach: Reach

    def answers(self, load: Load) -> bool:
        """Whether it can predict that load."""

    def answered(self, load: Load) -> Load:
        """The load that it predicts in the place of that one: where it was measured decides the flags."""

    def predict(self, loads: Sequence[Load], *, plain: bool = False) -> list[LoadPrediction]:
        """Bandwidths with 90 % intervals and the model's own flags for each load, in order; UsageError for a
        load that it cannot predict. `plain`: all loads are situations, which have two sockets at most.
        """

    def draws(self, loads: Sequence[Load]) -> LoadDraws:
        """The best fit and the draws of the loads; thousands at once are meant. UsageError as `predict`."""


def draws_of(predictions: Sequence[LoadPrediction]) -> LoadDraws:
    """Predictions of a model without draws: the half-widths of their intervals as discrepancy."""
    four = np.array([[getattr(item, stream).value for item in predictions] for stream in STREAMS])
    highs = np.array([[getattr(item, stream).high for item in predictions] for stream in STREAMS])
    wide = np.where(four > 0, highs / np.where(four > 0, four, 1.0), 1.0)
    return LoadDraws(
        **{stream: values[None] for stream, values in zip(STREAMS, four, strict=True)},
        groups=four[2][None, None],
        copies=np.zeros((0, 1, len(predictions))),
        discrepancy=np.log(wide) / NORMAL_90,
    )
