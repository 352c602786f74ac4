"""G1: the curves that the thesis' model draws with its published parameters (appendix E), to the letter."""

from __future__ import annotations

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Situation, Streams
from elbowroom.models.threshold.law import Threshold, curve
from elbowroom.virtual.truth import Truth, check_situation


class PublishedCurves(Truth):
    """The threshold model as the truth, in its faithful mode unless told otherwise. It knows one computing
    socket only.

    All n of a placement are computed at once and kept.
    """

    def __init__(self, model: Threshold, *, faithful: bool = True) -> None:
        self.model = model
        self.faithful = faithful
        self.shape = msgspec.structs.replace(model.shape, virtual=True)
        self._curves: dict[tuple[int, int], tuple[Streams, ...]] = {}

    def streams(self, situation: Situation) -> Streams:
        """The four bandwidths, MB/s; UsageError for cores of the second socket."""
        check_situation(self.shape, situation)
        if situation.n_other:
            raise UsageError(
                "the published curves do not cover both sockets computing",
                field="n_other",
                value=situation.n_other,
                hint=f"use the network of credits: {self.shape.name}:credits",
            )
        return self._curve(situation.comp_node, situation.comm_node)[situation.n]

    def _curve(self, comp_node: int, comm_node: int) -> tuple[Streams, ...]:
        place = (comp_node, comm_node)
        if place not in self._curves:
            counts = range(self.shape.cores_first_socket + 1)
            rows = curve(self.model, comp_node, comm_node, counts, faithful=self.faithful).tolist()
            self._curves[place] = tuple((a, b, c, d) for a, b, c, d in rows)
        return self._curves[place]
