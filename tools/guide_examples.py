"""Prints the guide's examples of Python as one module, whose types `./elbowroom lint` checks.

python tools/guide_examples.py >guide_examples.py
"""

from __future__ import annotations

import json

import quotes

GUIDE = quotes.ROOT / "docs" / "guide"


def source() -> str:
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


if __name__ == "__main__":
    print(source())
