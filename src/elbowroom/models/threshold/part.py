"""The threshold model as the model file has it."""

from __future__ import annotations

import msgspec

from elbowroom.models.curves import Shape
from elbowroom.models.prediction import Bands
from elbowroom.models.threshold.law import Parameters, Threshold
from elbowroom.stats.interval import Interval


class ThresholdPart(msgspec.Struct, frozen=True, kw_only=True):
    """The thesis' model: parameters for data local and remote to the computing cores; None: not measured.

    `intervals`: 90 % interval of each parameter by side and name, empty for a calibration that has none;
    `bands`: by `local` and `remote` (data of both on the node that was sampled) and `other` placements;
    `bands_from`: where those come from.
    """

    local: Parameters | None
    remote: Parameters | None
    intervals: dict[str, dict[str, Interval]] = {}
    bands: dict[str, Bands] = {}
    bands_from: str = ""
    flags: tuple[str, ...] = ()

    def model(self, shape: Shape) -> Threshold:
        """The model that predicts."""
        return Threshold(shape=shape, local=self.local, remote=self.remote)
