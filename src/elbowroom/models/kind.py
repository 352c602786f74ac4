"""What a kind of model declares of itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from elbowroom.models.base import ContentionModel
    from elbowroom.models.document import Document


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of model; its folder declares it in `KINDS`, or a package as an entry point of the group
    `elbowroom.models`.

    `title`: in reports; `module` has its `fit` and `model`; `faithful`: it can also answer by the equations
    as published; the model with the highest `preference` of a document is the default.
    """

    name: str
    title: str
    module: str
    faithful: bool = False
    preference: int = 0

    def fit(self, *data: Any) -> Any:
        """Its part of M.json, of curves and where they come from; UsageError where they do not allow it."""
        return import_module(self.module).fit(self.name, *data)

    def model(self, document: Document, *, faithful: bool = False) -> ContentionModel:
        """The model of that document."""
        model: ContentionModel = import_module(self.module).model(document, self.name, faithful)
        return model
