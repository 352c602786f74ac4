"""Commands that are asked about an accelerator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import cli
from elbowroom.advise.gpu_job import GpuAdvice
from elbowroom.models.gpu.model import PenaltyTable
from elbowroom.store.models import write_model
from elbowroom.verbs.gpu_models import GpuPredictionDocument
from gpu_samples import document, published_part, two_node_part

JOB = Path(__file__).parents[3] / "docs" / "guide" / "gpu-job.toml"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "M.json"
    write_model(path, document(published_part()))
    return str(path)


def printed(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(list(words)) == 0
    return capfd.readouterr().out


def test_a_case_is_predicted_as_text_and_as_a_document(model: str, capfd: Any) -> None:
    words = ("predict", model, "--gpu", "gemm", "--mover", "sm_copy", "--moves", "hbm", "--sms", "20",
             "--pace", "50000")  # fmt: skip
    text = printed(capfd, *words)
    assert "0.489" in text
    assert "measured" in text
    found = msgspec.json.decode(printed(capfd, *words, "--json"), type=GpuPredictionDocument)
    assert found.predictions[0].kept.value == 0.489
    assert (found.device, found.sms) == ("H200 NVL", 132)


def test_cases_of_a_file_are_predicted_victim_by_victim(model: str, capfd: Any, tmp_path: Path) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(
        '[[gpu]]\nvictim = "gemm"\nmover = "sm_target"\nsms = 8\n'
        '[[gpu]]\nvictim = "triad"\nmover = "copy"\ndirection = "d2h"\n'
    )
    text = printed(capfd, "predict", model, "--load", str(file))
    assert "gemm 8192x4096x7168 beside" in text
    assert "triad beside" in text


def test_a_job_of_an_accelerator_is_advised(model: str, capfd: Any) -> None:
    text = printed(capfd, "advise", model, "--job", str(JOB))
    assert "Use a copy engine" in text
    assert "NUMA node of the pinned buffer: n/a" in text
    found = msgspec.json.decode(printed(capfd, "advise", model, "--job", str(JOB), "--json"), type=GpuAdvice)
    assert found.significant


@pytest.mark.parametrize("name", ["advice.json", "nccl_tuner.conf"])
def test_advice_is_written_for_people_and_for_nccl(model: str, capfd: Any, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    printed(capfd, "advise", model, "--job", str(JOB), "-o", str(out))
    text = out.read_text()
    if name.endswith(".json"):
        assert json.loads(text)["schema"] == "elbowroom/gpu-advice"
    else:
        assert "colltype,minbytes,maxbytes" in text


def test_penalties_are_exported(model: str, capfd: Any, tmp_path: Path) -> None:
    out = tmp_path / "penalties.json"
    printed(capfd, "export", model, "--format", "gpu-penalties", "-o", str(out))
    assert msgspec.json.decode(out.read_bytes(), type=PenaltyTable).penalties


def test_the_split_has_the_measured_rate_of_the_accelerator(capfd: Any, tmp_path: Path) -> None:
    from elbowroom.models.published import of_published

    whole = of_published("henri")
    path = tmp_path / "M.json"
    ran_triad = msgspec.structs.replace(whole.calibration, kernel="triad")
    write_model(path, msgspec.structs.replace(whole, calibration=ran_triad, gpu=two_node_part()))
    step = ("predict-step", str(path), "--cores", "8", "--comp-node", "0", "--comm-node", "0",
            "--comp-bytes", "100GB", "--comm-bytes", "1GB", "--json")  # fmt: skip
    measured = json.loads(printed(capfd, *step, "--split"))
    given = json.loads(printed(capfd, *step, "--p-acc", "3991000"))
    assert measured["w"] == pytest.approx(given["w"])
    assert measured["w"] > 0.9
