"""A model whose answers can be computed by hand: cores of 10 GB/s at a controller of 15 GB/s."""

from __future__ import annotations

from elbowroom.models.curves import Shape
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.part import FlowPart

CORE, CONTROLLER = 10_000.0, 15_000.0
"""MB/s."""
PLENTY = ("uplink", "link", "port", "crossing", "root", "core_remote", "comm_first", "comm_second")
"""What never limits."""


def node_model(
    *, cores: int = 4, sockets: int = 1, kernel: str = "memset_nt", discrepancy: float = 0.0, **changed: float
) -> Document:
    """Knees are sharp and over-demand costs nothing; `changed`: other parameters of FLOW."""
    values = dict.fromkeys(NAMES, 1.0) | dict.fromkeys(PLENTY, 1e6)
    values |= {name: 0.0 for name in NAMES if name.split("_")[0] in ("dip", "rise", "excess")}
    values |= {"core_local": CORE, "controller": CONTROLLER} | changed
    row = tuple(values[name] for name in NAMES)
    return Document(
        elbowroom="",
        created="",
        machine=Shape(name="made", cores_first_socket=cores, numa_per_socket=1, sockets=sockets),
        calibration=Calibration(
            run="", plan="", origin="measured", kernel=kernel, size=1, runs=1, n_low=1, n_high=cores
        ),
        models=Models(
            flow=FlowPart(names=NAMES, values=row, low=row, high=row, discrepancy=(discrepancy,) * 4)
        ),
    )
