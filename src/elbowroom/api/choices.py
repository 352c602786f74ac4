"""What options accept: the names of launchers, models and formats, elbowroom's own and those of packages."""

from elbowroom.launch.launchers import names as launcher_names
from elbowroom.measure.formats import ENDINGS as RUN_ENDINGS
from elbowroom.measure.formats import FORMATS as FORMATS
from elbowroom.models.registry import choices as model_names
from elbowroom.store.exporters import names as format_names

__all__ = ["format_names", "launcher_names", "model_names"]

PENALTIES = "gpu-penalties"
"""The format of `export` that is made of a model, and not of a run."""

ENDINGS = {**RUN_ENDINGS, PENALTIES: (".json",)}
"""Of the names of files that `export` writes, by format; figures are written into a folder."""
