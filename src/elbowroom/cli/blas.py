"""Fits are long rows of small matrices: threads of the linear algebra library only wait for one another."""

from __future__ import annotations

import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def one_thread() -> None:
    """Loads numpy and scipy with one thread for linear algebra, where the user has not asked for several.

    The libraries read these variables once, when they are loaded; the environment is left as it was, since
    programs that are started later inherit it. On a busy machine of two cores, fits then take a tenth of the
    time; on a quiet one, as long.
    """
    ours = [name for name in _SETTINGS if name not in os.environ and "OMP_NUM_THREADS" not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        import numpy.linalg  # noqa: F401
        import scipy.linalg  # noqa: F401 (both are loaded for what they read from the environment)
    finally:
        for name in ours:
            del os.environ[name]
