"""Sets of FLOW's parameters for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from elbowroom.models.flow.law import NAMES

RANGES = {
    "MB/s": (1e3, 1e5),
    "floor": (0.0, 1.0),
    "weight": (0.0, 20.0),
    "cost": (0.3, 3.0),
    "dip": (0.0, 0.3),
    "rise": (0.0, 0.9),
    "excess": (-0.05, 0.6),
}


@st.composite
def parameters(draw: st.DrawFn) -> NDArray[np.float64]:
    """One set, (1, P) in the order of NAMES."""

    def one(name: str) -> float:
        if name in ("remote_weight", "remote_cost"):
            return draw(st.floats(0.3, 3.0))
        low, high = RANGES.get(name.split("_")[0], RANGES["MB/s"])
        return draw(st.floats(low, high))

    return np.array([[one(name) for name in NAMES]])
