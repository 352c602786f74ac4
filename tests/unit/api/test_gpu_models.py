"""Models of accelerators from runs, and what they are asked through the public interface."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Core, Machine, NumaNode
from elbowroom.models.base import Provenance
from elbowroom.models.fit import accelerator_part
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.gpu.samples import accelerator_runs
from elbowroom.models.published import of_published
from elbowroom.store.models import write_model
from elbowroom.verbs import calibrate, gpu_models
from elbowroom.verbs.model_file import Model, evaluation
from gpu_results import Workload, result, side
from gpu_samples import document, published_part, two_node_part


def idle(count: int, kept: float, **facts: float) -> Any:
    case = Workload(victim="gemm", mover="sm_idle", sms=count, first="mover")
    return result(case, side(800.0, 800.0 * kept, "TFLOP/s"), side(1.0, 1.0), facts=facts)


MACHINE = Machine(
    name="made",
    model="",
    cores=tuple(
        Core(number=core, logical=core, package=core // 16, node=core // 16, pus=(core,))
        for core in range(32)
    ),
    nodes=tuple(NumaNode(number=node, package=node, memory=1 << 34, cores=()) for node in (0, 1)),
    caches=(),
    nics=(),
    allowed=tuple(range(32)),
    memory=1 << 35,
)
"""As gpu_samples.document has it."""


def run(*points: Any, **hello: Any) -> Any:
    return SimpleNamespace(
        points=lambda: list(points),
        manifest=SimpleNamespace(hello=hello, points=()),
        machine=MACHINE,
        path=Path("runs/made"),
    )


def fitted(runs: Any, sms: int | None = None) -> GpuPart | None:
    """The part of a model that `fit` makes of these runs."""
    facts = [(item.points(), item.manifest.hello.get("gpu") or {}) for item in runs]
    return accelerator_part(Provenance(run="runs/made", accelerator=accelerator_runs(facts, sms)))


POINTS = [idle(sms, 1 - sms / 100, sms=100.0) for sms in (4, 8, 16, 32)]


def test_a_run_that_says_its_sms_is_fitted() -> None:
    part = fitted([run(*POINTS)])
    assert part is not None
    assert (part.sms, len(part.measured), part.origin) == (100, 4, "measured")


def test_what_the_program_says_of_its_device_names_it() -> None:
    part = fitted([run(*POINTS, gpu={"device": {"name": "made GPU", "sms": 100}})])
    assert part is not None
    assert part.device == "made GPU"


def test_runs_without_an_accelerator_have_no_model_of_one() -> None:
    assert fitted([run()]) is None


@pytest.mark.parametrize(
    ("points", "sms", "message"),
    [
        ([], 100, "only valid with runs of an accelerator"),
        ([idle(4, 0.9)], None, "do not record the number of SMs"),
        (POINTS, 1, "is not a valid number of SMs"),
        ([idle(4, 0.9, sms=100.0), idle(8, 0.9, sms=132.0)], None, "do not record the number of SMs"),
    ],
)
def test_a_number_of_sms_that_cannot_be_is_refused(points: Any, sms: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fitted([run(*points)], sms)


def test_runs_of_different_accelerators_are_refused() -> None:
    other = run(idle(4, 0.9, sms=132.0))
    with pytest.raises(UsageError, match="accelerators with 100 and 132 SMs"):
        fitted([run(*POINTS), other])


def test_an_evaluation_predicts_by_the_law_and_says_where_a_rule_is_as_good() -> None:
    part = fitted([run(*POINTS)])
    assert part is not None
    model = Model(document(part))
    errors = evaluation(run(idle(12, 0.88), idle(24, 0.76)), model)
    (line,) = errors.table.lines
    assert (line.family, line.cases, line.mover) == ("gemm/sm_idle", 2, None)
    assert line.victim < 0.1
    assert line.share_rule == pytest.approx(0.0, abs=1e-9)
    assert not line.better
    assert any("rule without a fit" in note for note in errors.notes)


def test_an_evaluation_of_what_the_model_does_not_know_is_refused() -> None:
    without = msgspec.structs.replace(document(published_part()), gpu=None)
    with pytest.raises(UsageError, match="nothing to compare with"):
        evaluation(run(idle(4, 0.9)), Model(without))


def test_a_run_of_another_machine_is_not_evaluated() -> None:
    with pytest.raises(UsageError, match="henri"):
        evaluation(run(idle(4, 0.9)), Model(of_published("henri")))


def test_another_run_is_not_one_of_an_accelerator() -> None:
    with pytest.raises(UsageError, match="it has no points"):
        evaluation(run(), Model(document(published_part())))


def test_a_file_of_an_accelerator_alone_is_no_model_of_a_profiled_machine(tmp_path: Path) -> None:
    (tmp_path / "run" / "models").mkdir(parents=True)
    path = tmp_path / "run" / "models" / "made.json"
    write_model(path, document(two_node_part()))
    calibrate.check_machine(Model(document(two_node_part()), path), ("made",), path)
    found = calibrate.earlier_models(("made",), 4096, tmp_path)
    assert found.newest is None
    assert found.refused[0][1] == "has models of an accelerator only"


def test_a_copy_has_the_rate_of_its_link() -> None:
    model = Model(document(two_node_part()))
    copy = gpu_models.copy_of(model, "d2h@1")
    assert copy.node == 1
    assert copy.demand == pytest.approx(21000.0, rel=1e-3)
    assert gpu_models.copy_of(model, "500@0").demand == 500.0


def triad_document(kernel: str) -> Model:
    """A model whose cores ran that kernel, with the published accelerator."""
    whole = of_published("henri")
    calibration = msgspec.structs.replace(whole.calibration, kernel=kernel)
    return Model(msgspec.structs.replace(whole, calibration=calibration, gpu=published_part()))


def test_the_accelerator_has_the_rate_of_its_triad_beside_cores_that_ran_it() -> None:
    assert gpu_models.accelerator_rate(triad_document("triad")) == 3991e3


def test_rates_of_different_kernels_are_not_one_work() -> None:
    with pytest.raises(UsageError, match="not the same work"):
        gpu_models.accelerator_rate(triad_document("memset_nt"))


def test_cases_without_a_number_of_sms_are_predicted_for_several() -> None:
    found = gpu_models.predict_cases(
        Model(document(published_part())), [DeviceCase(victim="gemm", mover="sm_idle")]
    )
    assert [item.case.sms for item in found] == [1, 2, 4, 8, 12, 16, 20, 24, 28, 32]
