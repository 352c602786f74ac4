"""A run of kernels with both kinds of stores counts its traffic with the store factor that it measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.experiments.plans import Overrides
from elbowroom.results.stores import StoreFactor


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On a virtual machine whose plain stores move twice their bytes, and whose cores saturate memory."""
    out = tmp_path_factory.mktemp("stores") / "r"
    overrides = Overrides(
        kernels=("triad", "triad_nt"),
        repeat=5,
        sizes=(64_000_000,),
        settings={"n": "1,8,all"},
    )
    api.run("contrast", overrides=overrides, machine="pyxis", out=str(out), report=False, tell=lambda _: None)
    return out


def test_every_point_has_the_factor_and_a_sentence_says_how_it_was_measured(run: Path) -> None:
    opened = api.open(run)
    (factor,) = {item.store_factor for item in opened.points()}
    assert factor == pytest.approx(2, abs=0.1)
    (note,) = [finding for finding in opened.findings if finding.key == "store-factor"]
    assert note.values["source"] == "measured"
    assert "triad_nt reaches 1.3" in note.text


def test_a_model_of_the_run_has_the_factor(run: Path) -> None:
    calibration = api.fit(run, kernel="triad").document.calibration
    assert calibration.store_factor == pytest.approx(2, abs=0.1)


def test_a_factor_measured_apart_from_the_run_replaces_that_of_the_run(run: Path, tmp_path: Path) -> None:
    factor = StoreFactor(value=1.2, low=1.1, high=1.3, source="measured", reason="as planted")
    document = api.fit(run, tmp_path / "m.json", kernel="triad", store_factor=factor).document
    assert document.calibration.store_factor == 1.2
    assert factor.sentence in document.validity
