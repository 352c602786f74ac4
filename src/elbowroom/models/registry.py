"""Models of contention: a folder each here, and those that installed packages declare
(docs/reference/extend.md). Choices of --model, the file M.json and the report come from here.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from elbowroom import models, plugins
from elbowroom.models.kind import Kind

if TYPE_CHECKING:
    from elbowroom.models.document import Document


@cache
def _own() -> dict[str, Kind]:
    """Those of the folders, the best first."""
    folders = [module.name for module in pkgutil.iter_modules(models.__path__) if module.ispkg]
    declared = [import_module(f"{models.__name__}.{folder}") for folder in folders]
    kinds = [kind for module in declared for kind in getattr(module, "KINDS", ())]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: -kind.preference)}


MODELS = plugins.Registry(
    "models",
    "model",
    built_in=lambda: tuple(_own()),
    own=lambda name: _own()[name],
    added=plugins.instance_of(Kind),
)
names = MODELS.names


def fitted_models(document: Document) -> tuple[str, ...]:
    """The models that a document holds, best first."""
    return tuple(name for name in names() if document.models.part(name) is not None)


def choices() -> tuple[str, ...]:
    """The names as the command line lists them."""
    return names()[::-1]
