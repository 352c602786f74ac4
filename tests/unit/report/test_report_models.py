"""The page's sections of models, without a browser; and which models a report shows."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import msgspec
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape
from elbowroom.models.document import Document
from elbowroom.models.evaluate import Errors, ErrorTable, ModelErrors
from elbowroom.report import sections
from elbowroom.report.page import Page, render
from elbowroom.store.models import read_model, write_model

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))
CORES = 6
CURVES = f"""# name: toy
# cores_first_socket: {CORES}
# numa_per_socket: 1
comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together
"""


def page(*parts: sections.ModelSection) -> Page:
    made: Page = msgspec.structs.replace(PAGES["page"](24, PAGES["small"]()), models=parts)
    return made


@pytest.fixture
def run(tmp_path: Path) -> api.Run:
    """Curves of a machine of six cores whose local and remote memory carry 30 and 20 GB/s."""
    lines = []
    for node, capacity in ((0, 30_000.0), (1, 20_000.0)):
        for n in range(1, CORES + 1):
            alone = min(6000.0 * n, capacity - 1000)
            comm = max(min(10_000.0, capacity - alone), 4000.0)
            lines.append(f"{node},{node},{n},{alone},10000,{min(alone, capacity - comm)},{comm}")
    (tmp_path / "curves.csv").write_text(CURVES + "\n".join(lines))
    return api.import_curves(tmp_path / "curves.csv", tmp_path / "run")


def test_a_page_without_models_has_neither_sections_nor_their_scripts() -> None:
    html = render(page())
    assert 'id="what-if"' not in html
    assert "const Models" not in html


def test_the_document_is_in_the_page_as_it_is_in_the_file() -> None:
    document = PAGES["document"]()
    html = render(page(PAGES["modelled"](document)))
    found = re.search(r'<script type="application/json" id="models">(.*?)</script>', html, re.S)
    assert found
    (file,) = json.loads(found.group(1))["files"]
    assert msgspec.convert(file["document"], Document) == document


def test_markup_in_a_model_stays_text() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    document = PAGES["document"]()
    shape = msgspec.structs.replace(document.machine, name=evil)
    calibration = msgspec.structs.replace(document.calibration, run=evil, kernel=evil)
    made = msgspec.structs.replace(document, machine=shape, calibration=calibration, validity=(evil,))
    assert "<img" not in render(page(PAGES["modelled"](made, evil)))


def test_figures_of_two_models_have_names_of_their_own() -> None:
    part = PAGES["modelled"](PAGES["document"]())
    found = re.findall(r'<svg [^>]*data-figure="([^"]+)"', render(page(part, part)))
    models = [name for name in found if "henri" in name]
    assert len(models) == len(set(models)) == 8


def test_errors_are_shown_in_percent_with_a_dash_for_what_is_unknown() -> None:
    some = Errors(samples=0.01234, others=None, all=0.02, covered=0.9)
    table = ErrorTable(
        machine="henri",
        samples=((0, 0), (1, 1)),
        rows=72,
        lines=(
            ModelErrors(model="flow", comm=some, comp=some, average=0.0162, rows=70, unanswered=2),
            ModelErrors(model="no contention", comm=some, comp=some, average=None, rows=72, baseline=True),
        ),
    )
    part = msgspec.structs.replace(PAGES["modelled"](PAGES["document"]()), errors=table)
    view = sections.model_view(part)["errors"]
    assert view["lines"][0]["cells"] == [
        *("1.23 %", "–", "2.00 %") * 2,
        "1.62 %",
        "90 %",
    ]
    assert view["lines"][1]["cells"][-2] == "–"
    assert view["unanswered"] == ["FLOW: 2 of 72"]


def test_a_side_that_was_not_calibrated_has_no_parameters() -> None:
    document = PAGES["document"]()
    part = msgspec.structs.replace(document.models.threshold, remote=None)
    lame = msgspec.structs.replace(document, models=msgspec.structs.replace(document.models, threshold=part))
    shown = msgspec.structs.replace(PAGES["modelled"](document), document=lame)
    rows = sections.model_view(shown)["thresholds"][0]["rows"]
    assert {row["cells"][1] for row in rows} == {"not calibrated"}
    assert "not calibrated" not in {row["cells"][0] for row in rows}


def test_every_parameter_of_the_models_is_explained() -> None:
    view = sections.model_view(PAGES["modelled"](PAGES["document"]()))
    assert all(row["text"] for row in view["flow"])
    assert {row["name"] for row in view["thresholds"][0]["rows"]} == set(sections.MEANINGS)


def test_the_report_shows_the_models_of_the_run_folder(run: api.Run) -> None:
    assert "The model of toy" not in run.report().read_text()
    api.fit(run)
    html = run.report().read_text()
    assert "The model of toy" in html
    assert "Stacked bandwidths, local data" in html
    assert "plain max-min" in html
    assert html.count("calibrated here") >= 2
    assert "The model was fitted to this very run" in html
    assert "Points: measured." in html


def test_the_report_shows_a_model_that_is_named(run: api.Run, tmp_path: Path) -> None:
    model = api.fit(run, tmp_path / "other.json")
    assert model.path is not None
    assert "The model of toy" in run.report(models=[model.path]).read_text()


def test_a_broken_model_in_the_folder_is_a_note_and_a_named_one_an_error(run: api.Run) -> None:
    api.fit(run)
    broken = run.path / "models" / "broken.json"
    broken.write_text("{")
    html = run.report().read_text()
    assert "the model broken.json" in html
    assert "is not JSON" in html
    assert "The model of toy" in html
    with pytest.raises(UsageError, match="is not JSON"):
        run.report(models=[broken])


def test_a_model_of_another_machine_is_refused(run: api.Run, tmp_path: Path) -> None:
    model = api.fit(run, tmp_path / "other.json")
    assert model.path is not None
    shape: Shape = msgspec.structs.replace(model.machine, name="elsewhere")
    write_model(model.path, msgspec.structs.replace(read_model(model.path), machine=shape))
    with pytest.raises(UsageError, match="another machine"):
        run.report(models=[model.path])


def test_a_model_of_another_kernel_is_shown_without_points(run: api.Run, tmp_path: Path) -> None:
    model = api.fit(run, tmp_path / "other.json")
    assert model.path is not None
    found = read_model(model.path)
    calibration = msgspec.structs.replace(found.calibration, kernel="triad")
    write_model(model.path, msgspec.structs.replace(found, calibration=calibration))
    html = run.report(models=[model.path]).read_text()
    assert "Lines: the model" in html
    assert "Points: measured." not in html
    assert "plain max-min" not in html
