"""Every model there is, the best first: choices of --model, the file M.json and the report come from here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from elbowroom.models.base import ContentionModel
    from elbowroom.models.document import Document

ModelName = Literal["threshold", "robust", "flow"]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of model. `title`: in reports; `module` has its `fit` and `model`; `faithful`: it can also
    answer by the equations as published.
    """

    name: ModelName
    title: str
    module: str
    faithful: bool = False

    def fit(self, *data: Any) -> Any:
        """Its part of M.json, of curves and where they come from; UsageError where they do not allow it."""
        return import_module(self.module).fit(self.name, *data)

    def model(self, document: Document, *, faithful: bool = False) -> ContentionModel:
        """The model of that document."""
        model: ContentionModel = import_module(self.module).model(document, self.name, faithful)
        return model


KINDS = (
    Kind(name="flow", title="FLOW", module="elbowroom.models.flow.model"),
    Kind(
        name="robust",
        title="threshold, robust calibration",
        module="elbowroom.models.threshold.model",
    ),
    Kind(
        name="threshold",
        title="threshold, calibrated as in the thesis",
        module="elbowroom.models.threshold.model",
        faithful=True,
    ),
)
"""Best first: `flow` has intervals of its own, `threshold` is calibrated as the thesis does."""

NAMES: tuple[ModelName, ...] = tuple(kind.name for kind in KINDS)

CHOICES = NAMES[::-1]
"""As the command line lists them."""


def kind_of(name: ModelName) -> Kind:
    """The kind of that name."""
    return KINDS[NAMES.index(name)]
