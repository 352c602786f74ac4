"""Results in print and in notebooks: a verdict, a few facts, a figure, and a sentence for what is broken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import elbowroom
from elbowroom.verbs import summaries
from elbowroom.verbs.model_answers import fit_answer
from elbowroom.verbs.run_answer import run_answer
from made_profiles import MS, MadeJob

ROOT = Path(__file__).parents[3]


def changed_manifest(run: Path, **changes: Any) -> None:
    path = run / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    run = elbowroom.open(ROOT / "tests" / "data" / "quick")
    model = elbowroom.load_model("henri")
    return {
        "Run": run,
        "Model": model,
        "Prediction": model.predict(14, 0, 0),
        "Advice": model.advise(ROOT / "docs" / "guide" / "job.toml"),
        "Explanation": elbowroom.explain(run),
        "Changes": elbowroom.compare(run, run),
    }


NAMES = ("Run", "Model", "Prediction", "Advice", "Explanation", "Changes")


@pytest.mark.parametrize("name", NAMES)
def test_a_result_prints_in_a_few_lines(name: str, results: dict[str, Any]) -> None:
    lines = str(results[name]).splitlines()
    assert 2 <= len(lines) <= 10
    assert all(lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_names_itself_in_one_line(name: str, results: dict[str, Any]) -> None:
    assert re.fullmatch(rf"{name}\(.{{5,200}}\)", repr(results[name]))


@pytest.mark.parametrize("name", NAMES[:5])
def test_a_notebook_shows_the_figure_too(name: str, results: dict[str, Any]) -> None:
    page = results[name]._repr_html_()
    assert page.count("<svg") == 1
    assert page.count("<div") == page.count("</div>") == 1
    assert "There is no figure" not in page


def test_the_losses_of_a_prediction_are_its_verdict(results: dict[str, Any]) -> None:
    verdict = str(results["Prediction"]).splitlines()[1]
    assert verdict.startswith(
        "The communication loses 3.8 % (0.0 to 9.0 %) and the computation loses nothing"
    )


@pytest.mark.parametrize(("name", "answer"), [("Model", fit_answer), ("Run", run_answer)])
def test_a_result_says_what_the_terminal_says(name: str, answer: Any, results: dict[str, Any]) -> None:
    printed = answer(results[name])
    lines = str(results[name]).splitlines()
    assert lines[1:3] == [printed.verdict, printed.why]
    assert lines[-1] == f"next: {printed.next}"


def test_dark_notebooks_have_their_colours(results: dict[str, Any]) -> None:
    page = results["Run"]._repr_html_()
    assert '[data-jp-theme-light="false"]' in page
    assert "prefers-color-scheme:dark" in page
    assert ":root" not in page  # the notebook keeps its own colours


def test_markup_in_names_stays_text(recorded: Path) -> None:
    plan = json.loads((recorded / "manifest.json").read_text())["plan"]
    changed_manifest(recorded, plan=plan | {"name": "<script>alert(1)</script>"})
    page = elbowroom.open(recorded)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_an_unfinished_run_says_so_and_how_to_go_on(recorded: Path) -> None:
    changed_manifest(recorded, finished="")
    run = elbowroom.open(recorded)
    assert "unfinished" in str(run).splitlines()[0]
    assert str(run).splitlines()[-1] == f"next: elbowroom run --resume {recorded}"
    assert "unfinished" in run._repr_html_()


@pytest.mark.parametrize("damage", ["damaged", "missing"])
def test_a_broken_run_is_a_sentence(damage: str, recorded: Path) -> None:
    run = elbowroom.open(recorded)
    for file in recorded.glob("samples.*"):
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(b"\x00 no samples\n" * 9)
    page = run._repr_html_()
    assert "samples" in page
    assert "Traceback" not in page
    assert "samples" in str(run)
    assert repr(run).startswith("Run(")


def test_a_figure_that_cannot_be_drawn_is_a_sentence(tmp_path: Path) -> None:
    elbowroom.load_model("henri").save(tmp_path / "M.json")
    advice = elbowroom.advise(tmp_path / "M.json", ROOT / "docs" / "guide" / "job.toml")
    (tmp_path / "M.json").unlink()
    page = advice._repr_html_()
    assert "There is no figure: " in page
    assert "M.json" in page
    assert advice.sentence.split()[0] in page


def test_the_same_figure_of_two_results_has_two_names(results: dict[str, Any]) -> None:
    model = results["Model"]
    pages = (model.predict(n, 0, 0)._repr_html_() for n in (3, 4))
    first, second = (set(re.findall(r' id="([^"]+)"', page)) for page in pages)
    assert first
    assert not first & second


def test_every_summary_is_one_of_a_result_that_shows_it() -> None:
    """The classes assign `text` and `html` of `elbowroom.display` themselves."""
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in summaries.SUMMARIES:
        body = re.search(rf"^class {name}\b.*?(?=^\S|\Z)", sources, re.MULTILINE | re.DOTALL)
        assert body is not None, name
        assert "display.html" in body[0], name


def test_a_profile_shows_where_its_time_goes(tmp_path: Path) -> None:
    job = MadeJob(4)
    for _ in range(10):
        job.compute(8 * MS)
        job.exchange(1_000_000)
    folder = job.write(tmp_path / "profile")
    shown = elbowroom.show_profile(folder)
    assert str(shown).splitlines()[-1].startswith("next: elbowroom diagnose --profile ")
    assert repr(shown) == f"ShownProfile({str(folder)!r}, ranks=4)"
    page = shown._repr_html_()
    assert "<svg" in page
    assert "There is no figure" not in page
    assert len(shown.intervals()) == 80
    assert "sent" in shown.windows().columns
