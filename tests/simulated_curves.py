"""Curves as the simulator of memory requests answers them."""

from __future__ import annotations

from elbowroom.virtual.simulated import SimulatedCurve, SimulatedRow


def curve(*kept: tuple[int, float, float], use: float = 1.0) -> SimulatedCurve:
    """Shares that both sides keep by number of cores: (cores, computation, communication) each."""
    rows = tuple(
        SimulatedRow(
            n=n,
            size=None,
            comp_alone=1000.0 * n,
            comm_alone=10_000.0,
            comp_together=1000.0 * n * comp,
            comm_together=10_000.0 * comm,
            copies=(),
            latencies=(),
            stations={"uplink": 0.3, "controller of node 0": use * n / kept[-1][0]},
        )
        for n, comp, comm in kept
    )
    return SimulatedCurve(comp_node=0, comm_node=0, rows=rows)
