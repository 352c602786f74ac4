"""Benchmarks as modules: their folder comes last in the path, since some have names of other modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name: str) -> Any:
    """The module benchmarks/NAME.py."""
    if str(BENCHMARKS) not in sys.path:
        sys.path.append(str(BENCHMARKS))
    return importlib.import_module(name)
