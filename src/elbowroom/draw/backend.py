"""matplotlib, imported whatever MPLBACKEND says."""

from __future__ import annotations

import os
import sys
from types import ModuleType


def load_matplotlib() -> ModuleType:
    """matplotlib; where MPLBACKEND names no backend the variable is ignored: figures need none.

    A backend that exists is left to matplotlib, for the notebook that asked for it.
    """
    try:
        import matplotlib
    except ValueError:
        backend = os.environ.pop("MPLBACKEND", None)
        if backend is None:
            raise
        # What is left of the failed import would spoil the second one.
        for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
            del sys.modules[name]
        try:
            import matplotlib
        finally:
            os.environ["MPLBACKEND"] = backend
    return matplotlib
