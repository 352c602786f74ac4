"""The page's section of an accelerator's model: errors and parameters, and no sliders for it."""

from __future__ import annotations

import runpy
from pathlib import Path

import msgspec
import pytest

import elbowroom
from elbowroom import cli
from elbowroom.report.page import render

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> elbowroom.Run:
    """A virtual run of an accelerator, with its model in the folder."""
    folder = tmp_path_factory.mktemp("gpu") / "run"
    done = elbowroom.run(
        "gpu-overlap",
        machine="h200-nvl",
        overrides=elbowroom.Overrides(quick=True, settings={"victims": "gemm", "movers": "sm_idle,sm_hbm"}),
        out=str(folder),
        report=False,
        tell=lambda _: None,
    )
    assert cli.run(["fit", str(folder)]) == 0
    return done


def test_a_model_of_an_accelerator_alone_has_errors_and_parameters_and_no_sliders(run: elbowroom.Run) -> None:
    page = run.report().read_text()
    section = page[page.index('<section id="model">') :]
    assert "132 SMs" in section
    assert "held out" in section
    assert "<summary>Parameters: accelerator</summary>" in section
    assert 'id="what-if"' not in page


def test_a_model_of_cores_beside_it_keeps_its_sliders(run: elbowroom.Run) -> None:
    gpu = next((run.path / "models").glob("*.json"))
    part = elbowroom.load_model(gpu).document.gpu
    both = PAGES["modelled"](msgspec.structs.replace(PAGES["document"](), gpu=part))
    page = render(msgspec.structs.replace(PAGES["page"](24, PAGES["small"]()), models=(both,)))
    assert 'id="what-if"' in page
    assert "<summary>Parameters: accelerator</summary>" in page


def test_a_job_needs_a_model_of_cores(run: elbowroom.Run, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        'name = "s"\nstep = {comp_bytes = "2GB", comm_bytes = "64MB"}\n'
        'now = {cores = 6, comp_node = 0, comm_node = 0, size = "64KiB"}\nmay = {cores = "every"}\n'
    )
    with pytest.raises(elbowroom.errors.UsageError, match="has no model to ask"):
        run.report(tmp_path / "r.html", job=job)
