"""Models of contention: a folder each here, and those that installed packages declare
(docs/reference/extend.md). Choices of --model, the file M.json and the report come from here.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom import models, plugins

if TYPE_CHECKING:
    from elbowroom.models.document import Document


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of model; its folder declares it in `KINDS`, or a package as an entry point of the group
    `elbowroom.models`.

    `title`: in reports; `module` has its `fit` and `model`, and of cases `evaluate`; `faithful`: it can also
    answer by the equations as published; the model with the highest `preference` of a document is the
    default; `cases`: it is asked for cases on an accelerator (gpu/case.py) and not for loads.
    """

    name: str
    title: str
    module: str
    faithful: bool = False
    preference: int = 0
    cases: bool = False

    def fit(self, *data: Any) -> Any:
        """Its part of M.json, of curves and where they come from; UsageError where they do not allow it. None
        where they tell nothing of what it models.
        """
        return import_module(self.module).fit(self.name, *data)

    def model(self, document: Document, *, faithful: bool = False) -> Any:
        """The model of that document: a ContentionModel (base.py), or that of cases."""
        return import_module(self.module).model(document, self.name, faithful)

    def evaluate(self, document: Document, measured: Any) -> Any:
        """Of cases: how far the document's model is from the MeasuredCases of a run (base.py). All models of
        loads are compared at once, by models/evaluate.py.
        """
        return import_module(self.module).evaluate(document, measured)


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


def names() -> tuple[str, ...]:
    """The models that are asked for loads, best first."""
    own = _own()
    return tuple(name for name in MODELS.names() if name not in own or not own[name].cases)


def fitted_models(document: Document) -> tuple[str, ...]:
    """The models of loads that a document holds, best first."""
    return tuple(name for name in names() if document.models.part(name) is not None)


def accelerator() -> Kind:
    """The kind of model whose part a document has beside its `models`."""
    return MODELS.get("gpu")


def choices() -> tuple[str, ...]:
    """The names as the command line lists them."""
    return names()[::-1]
