"""The notebook of the guide runs from its first cell to its last, and is a page of the site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import notebook
import pytest

NOTEBOOK = Path(__file__).parents[3] / "docs" / "guide" / "notebook.ipynb"

# Jupyter's kernel warns of what Debian's Python and its own event loop do; that is none of ours.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@pytest.fixture(scope="module")
def executed() -> Any:
    pytest.importorskip("nbclient", reason="nbclient (extra `test`) is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel (extra `test`) is not installed")
    return notebook.executed(NOTEBOOK)


def test_the_stored_notebook_has_no_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)


def test_each_cell_shows_a_result(executed: Any) -> None:
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    shown = [[output.data for output in cell.outputs if "data" in output] for cell in code]
    run, points, model, prediction, advice, figure = (outputs[-1] for outputs in shown)
    for result in (run, model, prediction, advice):
        assert "<svg" in result["text/html"]
        assert "There is no figure" not in result["text/html"]
    assert re.search(r"\d+ rows of \d+ columns", points["text/html"])
    assert "image/png" in figure


def test_its_page_has_the_cells_and_what_they_show(executed: Any) -> None:
    page = notebook.page(executed, NOTEBOOK.name)
    assert page.startswith("# elbowroom in a notebook\n")
    assert "{download}`notebook.ipynb`" in page
    assert page.count("```python") == 6
    assert page.count('<div class="elbowroom">') == 4
    assert not re.search(r"^<div(?!.*</div>$)", page, re.MULTILINE)
