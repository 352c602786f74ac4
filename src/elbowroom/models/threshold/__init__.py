"""The threshold model, calibrated as the thesis does, and against noise."""

from elbowroom.models.registry import Kind

MODULE = "elbowroom.models.threshold.model"

KINDS = (
    Kind(name="robust", title="threshold, robust calibration", module=MODULE, preference=2),
    Kind(
        name="threshold",
        title="threshold, calibrated as in the thesis",
        module=MODULE,
        faithful=True,
        preference=1,
    ),
)
