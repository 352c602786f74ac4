"""Studies: all runs behind the figures and tables of a paper, and its statements beside what was measured."""

from __future__ import annotations

from elbowroom import plugins
from elbowroom.studies.study import Study

STUDIES = plugins.Registry.of_modules("studies", "study", Study, "elbowroom.studies.papers", field="paper")
"""The papers by name, and those of installed packages (entry points `elbowroom.studies`)."""
