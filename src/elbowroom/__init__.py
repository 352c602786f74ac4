"""elbowroom measures, explains and predicts how much computation and communication slow each other down."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from elbowroom import api
from elbowroom.api import FIRST, PUBLIC, TASKS
from elbowroom.version import __version__ as __version__

__all__ = ["__version__", *TASKS[FIRST]]


def _document() -> str:
    """What `help(elbowroom)` begins with: the names, those that most people need first."""
    lines = [__doc__, "", "    run = elbowroom.run('quick', machine='henri')", "    print(run)"]
    for task, names in TASKS.items():
        lines += ["", f"{task}:"]
        line = "   "
        for name in names:
            if len(line) + len(name) > 78:
                lines.append(line)
                line = "   "
            line += f" {name}"
        lines.append(line)
    return "\n".join([*lines, "", "help(elbowroom.run) says more of one; dir(elbowroom.api) has all."])


__doc__ = _document()


def __getattr__(name: str) -> Any:
    """The public names are those of `api`, imported when they are first used."""
    if name in PUBLIC:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names that most people need, imported or not; `api` has the others."""
    return ["api", *__all__]


class _Package(ModuleType):
    """`elbowroom.advise` and `elbowroom.explain` are functions, although packages have the same names: the
    import of such a package does not put it in the function's place.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in PUBLIC or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
