"""The examples of Python in the guide are typed: `mypy --strict` accepts a program of all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import quotes
from quotes import ROOT

GUIDE = ROOT / "docs" / "guide"


def sources() -> str:
    """The cells of the notebook, then the examples of the page, as functions of a module."""
    cells = json.loads((GUIDE / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    notebook = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    page = "".join(
        quote.command for quote in quotes.python_quotes((GUIDE / "python.md").read_text(encoding="utf-8"))
    )
    bodies = (("notebook", notebook), ("page", page))
    return "\n\n".join(
        "\n".join((f"def {name}() -> None:", *(f"    {line}" for line in body.splitlines())))
        for name, body in bodies
    )


@pytest.mark.slow
def test_the_examples_of_the_guide_have_no_type_errors(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy (extra `test`) is not installed")
    example = tmp_path / "example.py"
    example.write_text(sources() + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--ignore-missing-imports"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", str(example)],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
