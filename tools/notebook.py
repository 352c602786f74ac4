"""The notebooks of docs/ as pages of the site: executed, with what their cells show.

    python tools/notebook.py NOTEBOOK        prints the page

Jupyter's own client executes them (extra `test` or `docs` of pyproject.toml).
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
"""A cell may take."""


def executed(notebook: Path) -> Any:
    """The notebook with the outputs of its cells, run in an empty folder; an error of a cell is one here."""
    import nbformat
    from nbclient import NotebookClient

    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            nbformat.read(notebook, as_version=4),
            timeout=SECONDS,
            resources={"metadata": {"path": folder}},
        )
        return client.execute(env={**os.environ, "PYTHONPATH": path})


def page(notebook: Any, name: str) -> str:
    """An executed notebook as Markdown, with a link to its file, `name`."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += filter(None, map(_output, cell.outputs))
    head, *rest = parts
    return "\n\n".join((head, f"Download it: {{download}}`{name}`.", *rest)) + "\n"


def _output(output: Any) -> str:
    """What a cell shows: HTML before pictures before text; nothing of what it prints on stderr."""
    data = output.get("data", {})
    if "text/html" in data:
        return "".join(line.strip() for line in data["text/html"].splitlines())  # a blank line would end it
    if "image/png" in data:
        picture = "".join(data["image/png"].split())
        return f'<img alt="The figure of this cell" src="data:image/png;base64,{picture}">'
    text = data.get("text/plain") or (output.get("text", "") if output.get("name") == "stdout" else "")
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


if __name__ == "__main__":
    source = Path(sys.argv[1])
    print(page(executed(source), source.name))
