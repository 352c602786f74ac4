"""What cores get from memory, from a probe that answers by a law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.launch.topologies import KernelRate
from elbowroom.machine.layout import regular_machine
from elbowroom.machine.topology import Machine
from elbowroom.measure.core_rates import CURSORS, core_rates, count_starts, measured_store_factor
from elbowroom.models.base import Provenance
from elbowroom.models.curves import Curves, Row, Situation
from elbowroom.models.fit import fit
from elbowroom.models.node_sharing import NodeUse, share_node
from elbowroom.models.run_data import FitData, layout_of
from elbowroom.plan.kernels import find
from elbowroom.verbs.colocate_measure import CalibrateForJobs, calibrate_for_jobs

CORE, NODE, PEAK = 10_000.0, 15_000.0, 4_000.0
"""MB/s, MB/s, Mflop/s."""


def machine() -> Machine:
    return regular_machine(name="made", model="made", cores_per_socket=2, numa_per_socket=1, sockets=1)


def data(kernel: str = "triad") -> FitData:
    layout = layout_of(machine())
    row = Row(
        situation=Situation(comp_node=0, comm_node=0, n=1),
        comp_alone=CORE,
        comm_alone=4000.0,
        comp_together=CORE,
        comm_together=4000.0,
    )
    curves = Curves(shape=layout.shape, rows=(row,), kernel=kernel)
    return FitData(curves=curves, layout=layout, left_out={}, intensity=2 / 24)


def law(
    _probe: object, name: str, cores: Sequence[int], *, cursor: int, working_set: int, seconds: float
) -> KernelRate:
    """A roofline; the cores share the node's bandwidth."""
    assert working_set > 0
    assert seconds > 0
    one = min(CORE, NODE / len(cores))
    if name == "triad_cursor":
        one = min(one, PEAK / (2 * cursor / 24))
    return KernelRate(rate=one * len(cores), unit="MB/s", status="ok")


def test_every_number_of_cores_is_measured_at_every_intensity() -> None:
    rows = core_rates("probe", machine(), data(), seconds=0.1, repeat=2, measure=law)
    assert len(rows) == 2 * (1 + len(CURSORS))
    assert {row.load.computing[0].count for row in rows} == {1, 2}
    both = next(row for row in rows if row.load.computing[0].count == 2 and not row.kernel)
    assert both.comp_alone == pytest.approx(NODE)


def test_a_model_of_these_rows_knows_what_two_jobs_leave_each_other() -> None:
    found = data()
    rows = core_rates("probe", machine(), found, seconds=0.1, repeat=2, measure=law)
    document = fit(found.curves, Provenance(loads=tuple(rows), intensity=found.intensity), created="")
    # A triad's 10 GB/s are 13.3 on the bus.
    traffic = CORE * 1e6 * 4 / 3
    slower = share_node(document, NodeUse(cores=1, memory=traffic), NodeUse(cores=1, memory=traffic)).slower
    assert slower[0].value == pytest.approx(20 / 15, rel=0.05)
    light = share_node(document, NodeUse(cores=1, memory=traffic / 4), NodeUse(cores=1, memory=traffic))
    assert light.slower[0].value == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("planted", [1.0, 2.0])
def test_the_store_factor_is_measured_where_the_cores_saturate_memory(planted: float) -> None:
    def bus(
        _probe: object, name: str, cores: Sequence[int], *, cursor: int, working_set: int, seconds: float
    ) -> KernelRate:
        assert cursor == 1
        kernel = find(name)
        assert kernel is not None
        rate = min(CORE * len(cores), NODE) * kernel.bus_share(planted)
        return KernelRate(rate=rate, unit="MB/s", status="ok")

    found = measured_store_factor("probe", machine(), range(8), seconds=0.1, repeat=5, measure=bus)
    assert found.measured == pytest.approx(planted)
    few = measured_store_factor("probe", machine(), range(2), seconds=0.1, repeat=5, measure=bus)
    assert few.measured is msgspec.UNSET


def test_a_model_of_a_machine_that_avoids_reads_counts_its_kernel_without_them() -> None:
    found = data()
    rows = core_rates("probe", machine(), found, seconds=0.1, repeat=2, measure=law)
    source = Provenance(loads=tuple(rows), intensity=found.intensity, store_factor=1.0)
    document = fit(found.curves, source, created="")
    assert document.calibration.store_factor == 1.0
    traffic = CORE * 1e6
    slower = share_node(document, NodeUse(cores=1, memory=traffic), NodeUse(cores=1, memory=traffic)).slower
    assert slower[0].value == pytest.approx(20 / 15, rel=0.05)


def test_a_kernel_without_memory_traffic_calibrates_nothing() -> None:
    with pytest.raises(UsageError, match="moves no memory"):
        core_rates("probe", machine(), data("prime"), seconds=0.1, repeat=1, measure=law)


def test_a_calibration_for_jobs_starts_the_probe_as_often_as_planned_and_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[str] = []
    said: list[str] = []

    def counted(path: str, name: str, *words: Any, **options: Any) -> KernelRate:
        starts.append(name)
        return law(path, name, *words, **options)

    def fitted(*_words: object, computing: Callable[[FitData], object], **_options: object) -> object:
        return computing(data())

    monkeypatch.setattr(CalibrateForJobs, "_place", lambda *_words: ("run", "probe", machine()))
    monkeypatch.setattr("elbowroom.verbs.colocate_measure.kernel_rate", counted)
    monkeypatch.setattr("elbowroom.verbs.colocate_measure.fit", fitted)
    calibrate_for_jobs("run", repeat=3, tell=said.append)
    assert len(starts) == 3 * count_starts(2)
    assert said[0].startswith(f"measuring {len(starts)} repetitions, about ")
    assert said[-1].startswith(f"{len(starts)} of {len(starts)} repetitions")
