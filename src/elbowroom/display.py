"""How results show themselves: as text when they are printed, and as a cell of a notebook.

What a result says is written beside the commands, so that Python and the terminal use the same sentences.
Results are of lower layers than commands: what describes them is looked up when it is needed.
"""

from __future__ import annotations

import importlib
from typing import Any


def text(result: Any) -> str:
    """`__str__` of a result: what it is, the verdict, some facts, and the command that leads on."""
    shown: str = importlib.import_module("elbowroom.verbs.summaries").text(result)
    return shown


def html(result: Any) -> str:
    """`_repr_html_` of a result: the same with its figure. Never raises: a sentence says what is wrong."""
    shown: str = importlib.import_module("elbowroom.verbs.summaries").html(result)
    return shown
