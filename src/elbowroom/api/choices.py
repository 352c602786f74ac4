"""What options accept: the names of elbowroom's own and of installed packages' launchers."""

from elbowroom.launch.launchers import names as launcher_names

__all__ = ["launcher_names"]
