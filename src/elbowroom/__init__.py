"""elbowroom: how much computation and communication slow each other down."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from elbowroom import api
from elbowroom.api import PUBLIC
from elbowroom.version import __version__ as __version__

__all__ = ["__version__", *sorted(PUBLIC)]


def __getattr__(name: str) -> Any:
    """The public names are those of `api`, imported when they are first used."""
    if name in PUBLIC:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return ["__version__", *sorted(PUBLIC)]


class _Package(ModuleType):
    """`elbowroom.advise` and `elbowroom.explain` are functions, although packages have the same names: the
    import of such a package does not put it in the function's place.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in PUBLIC or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
