"""Models say what they were not shown: too few values, nothing lost, other equations, nowhere to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import api, cli
from elbowroom.errors import UsageError
from elbowroom.models.base import Provenance
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.models.fit import fit

ONE = Row(
    situation=Situation(comp_node=0, comm_node=0, n=1),
    comp_alone=12000.0,
    comm_alone=9000.0,
    comp_together=11000.0,
    comm_together=7000.0,
)
SMALL = Shape(name="vm", cores_first_socket=1, numa_per_socket=1, sockets=1)


def test_a_model_of_one_point_says_how_many_values_its_parameters_lack() -> None:
    document = fit(Curves(shape=SMALL, rows=(ONE,)), Provenance(), created="")
    said = " ".join(document.validity)
    assert "has 10 parameters for a side, but 4 values were measured" in said
    assert "elbowroom run model" in said


def test_a_model_of_one_point_claims_no_interval() -> None:
    document = fit(Curves(shape=SMALL, rows=(ONE,)), Provenance(), created="")
    assert document.models.robust is not None
    assert document.models.robust.intervals == {}


@pytest.mark.parametrize(
    ("place", "kind", "sentence"),
    [("none/M.json", UsageError, "its parent folder must exist"), ("", UsageError, "is a folder")],
)
def test_a_calibration_that_cannot_write_its_model_measures_nothing(
    tmp_path: Path, place: str, kind: type[Exception], sentence: str
) -> None:
    run = tmp_path / "run"
    with pytest.raises(kind, match=sentence):
        api.calibrate(machine="henri", points=5, run=str(run), out=tmp_path / place, tell=lambda _: None)
    assert not run.exists()


def test_a_resumed_calibration_tries_its_output_first(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="its parent folder must exist"):
        api.resume_calibration(tmp_path / "run", out=tmp_path / "none" / "M.json", tell=lambda _: None)


def test_a_repaired_prediction_shows_the_published_value_beside_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["predict", "henri", "--cores", "14", "--comp-node", "0", "--comm-node", "1"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    exact = api.load_model("henri").predict(14, 0, 1, model="threshold", faithful=True)
    kept = exact.comm_together.value / exact.comm_alone.value
    assert f"kept {kept:.2f}" in out.partition("as published:")[2]


def test_an_evaluation_where_nothing_was_lost_says_that_it_shows_little(tmp_path: Path) -> None:
    rows = "".join(f"0,0,{n},{n * 1000},9000,{n * 1000},9000\n" for n in range(1, 5))
    head = "comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together\n"
    shape = "# name: toy\n# cores_first_socket: 4\n# numa_per_socket: 1\n"
    (tmp_path / "c.csv").write_text(shape + head + rows)
    run = api.import_curves(tmp_path / "c.csv", tmp_path / "run")
    model = api.fit(run, tmp_path / "M.json")
    assert any("Hardly anything slowed down in this run" in note for note in api.evaluate(run, model).notes)


def test_an_evaluation_with_losses_makes_no_such_remark(tmp_path: Path) -> None:
    run = api.run("model", machine="henri", out=str(tmp_path / "run"), tell=lambda _: None)
    notes = api.evaluate(run, api.fit(run, tmp_path / "M.json")).notes
    assert not any("contention" in note for note in notes)
