"""lib/predict answers cases on an accelerator as Python does, and refuses what Python refuses."""

from __future__ import annotations

import errno
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models.gpu.case import DeviceCase
from elbowroom.models.gpu.model import GpuModel
from elbowroom.store.models import write_model
from gpu_samples import document, of_first_product, two_node_part

TOOLS = runpy.run_path(str(Path(__file__).parents[2] / "predict_library.py"))

pytestmark = pytest.mark.skipif(bool(TOOLS["missing"]()), reason=f"{TOOLS['missing']()} is not installed")

CASES = [
    *(item.case for item in of_first_product() if item.case.direction != "d2h"),
    DeviceCase(victim="gemm", mover="sm_idle", sms=100),
    DeviceCase(victim="gemm", mover="sm_idle", sms=6, first="victim"),
    DeviceCase(victim="gemm", mover="sm_target", sms=12, shape=(1000, 3000, 512)),
    DeviceCase(victim="gemm", mover="copy", direction="d2h", node=1, pace_mb_s=5000),
    DeviceCase(victim="triad", mover="copy", direction="h2d"),
    DeviceCase(victim="triad", mover="sm_copy", direction="hbm", sms=40),
    DeviceCase(victim="triad", mover="sm_copy", direction="host", sms=12),
]
WRONG = {
    "sms": DeviceCase(victim="gemm", mover="sm_idle", sms=132),
    "direction": DeviceCase(victim="gemm", mover="copy", direction="hbm"),
    "node": DeviceCase(victim="gemm", mover="copy", direction="d2h", node=7),
    "shape": DeviceCase(victim="triad", mover="sm_idle", sms=1, shape=(1, 1, 1)),
    "victim": DeviceCase(victim="chain", mover="sm_idle", sms=1),
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("gpu") / "M.json"
    write_model(path, document(two_node_part()))
    with TOOLS["LoadedGpu"](TOOLS["load"](), path) as gpu:
        yield gpu


@pytest.mark.parametrize("case", CASES, ids=DeviceCase.text)
def test_the_library_says_of_a_case_what_python_says(loaded: Any, case: DeviceCase) -> None:
    expected, answer = GpuModel(two_node_part()).predict((case,))[0], loaded.ask(case)
    for name in TOOLS["GPU_RATES"]:
        wanted, got = getattr(expected, name), getattr(answer, name)
        values = (0.0, 0.0, 0.0) if wanted is None else msgspec.structs.astuple(wanted)
        assert (got.value, got.low, got.high) == pytest.approx(values, rel=1e-9)
    flags = {name for name, bit in TOOLS["GPU_FLAGS"].items() if answer.flags & bit}
    assert flags == set(expected.flags) & set(TOOLS["GPU_FLAGS"])


@pytest.mark.parametrize("field", WRONG)
def test_the_library_refuses_what_python_refuses(loaded: Any, field: str) -> None:
    with pytest.raises(UsageError) as refused:
        GpuModel(two_node_part()).predict((WRONG[field],))
    code, sentence = loaded.ask(WRONG[field])
    assert refused.value.field == field
    assert sentence.startswith(field)
    assert code == (errno.ENOTSUP if field in ("node", "victim") else errno.EINVAL)


def test_a_file_of_an_accelerator_alone_has_no_other_model(loaded: Any, tmp_path: Path) -> None:
    write_model(tmp_path / "M.json", document(two_node_part()))
    assert loaded.library.elbow_predict_model_load(str(tmp_path / "M.json").encode(), None) is None
    assert b"elbow_predict_gpu_load" in loaded.library.elbow_predict_error()
