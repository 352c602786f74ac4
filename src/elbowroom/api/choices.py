"""What options accept: the names of launchers, models and formats, elbowroom's own and those of packages."""

from elbowroom.launch.launchers import names as launcher_names
from elbowroom.models.registry import choices as model_names
from elbowroom.store.exporters import names as format_names

__all__ = ["format_names", "launcher_names", "model_names"]
