"""Sets of FLOW's parameters, and its rates, for tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from elbowroom.models.curves import Shape, Situation
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.load import load_at

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
        return draw(st.floats(low, high, allow_subnormal=False))

    return np.array([[one(name) for name in NAMES]])


def situation_rates(vectors: NDArray[np.float64], shape: Shape, *asked: Situation) -> NDArray[np.float64]:
    """Bandwidths (4, D, S) of situations, as the law has them."""
    loads = prepare(shape, [load_at(item) for item in asked], plain=True)
    return evaluate(vectors, Extension(), loads).streams
