"""What HTML pages are made with: assets of a package, jinja2 templates, and data inside a page."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Any

import msgspec

from elbowroom.draw.figure import Figure
from elbowroom.draw.svg import DARK, LIGHT, figure_rules, style, svg


@lru_cache
def asset(package: str, name: str) -> str:
    """A text file of a package, such as `asset("elbowroom.report", "page.css")`."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


@lru_cache
def template(package: str, name: str) -> Any:
    """A compiled template; jinja2 is imported here since `elbowroom --help` must not wait for it."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_keep_percent,
    )
    return environment.from_string(asset(package, name))


def _keep_percent(value: object) -> object:
    """Texts with a space before `%` at which no line ends; markup (SVG, styles, scripts) as it is."""
    return re.sub(r"(?<=\d) %(?!\w)", "\u00a0%", value) if type(value) is str else value


def embed(data: object) -> str:
    """JSON for a `<script>` element: `<`, `>` and `&`, which could end it or open a comment, are escaped."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def figure_page(
    title: str,
    sentences: Sequence[tuple[str, Sequence[str]]],
    figures: Sequence[Figure],
    table: tuple[str, Sequence[str], Sequence[Sequence[str]]],
    *,
    command: str = "",
    note: str = "",
    first: tuple[str, Figure] | None = None,
) -> str:
    """The page. `sentences`: each with its hints; `table`: title, names of the columns, rows; `first`: a
    sentence and a figure before all others.
    """
    table_title, columns, rows = table
    page: str = template("elbowroom.trace", "page/figures.html.j2").render(
        title=title,
        command=command,
        style=style(),
        first=None if first is None else (*first, svg(first[1])),
        sentences=sentences,
        figures=[(figure, svg(figure)) for figure in figures],
        table_title=table_title,
        columns=columns,
        rows=rows,
        note=note,
    )
    return page


THEMES = {
    LIGHT: ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]', '[theme="light"]'),
    DARK: ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]', '[theme="dark"]'),
}
"""How notebooks (JupyterLab, Visual Studio Code, Colab) and sites say which colours they have."""


def _cell_style() -> str:
    """The rules of a cell: its own ink on its own paper, so that it can be read on any page. They are nested
    in the cell and change nothing else of the notebook.
    """
    themes = "".join(f":is({','.join(marks)}) .elbowroom{{{colours}}}" for colours, marks in THEMES.items())
    return (
        f".elbowroom{{{LIGHT}}}@media screen and (prefers-color-scheme:dark){{.elbowroom{{{DARK}}}}}{themes}"
        ".elbowroom{background:var(--paper);color:var(--ink);max-width:640px;padding:8px 14px;"
        "font:14px/1.45 system-ui,sans-serif;"
        "p,ul{margin:4px 0}ul{padding-left:20px}.faint{color:var(--faint)}"
        f"code{{color:inherit;background:none}}{figure_rules()}}}"
    )


def cell(
    title: str, verdict: str, sentences: Sequence[str], figures: Sequence[Figure], command: str = ""
) -> str:
    """A result in a cell of a notebook: what it is, the verdict, more sentences, figures, and the `command`
    that leads on.
    """
    drawn = []
    for figure in figures:
        # Names are ids of the notebook's page, where the same figure may stand in several cells.
        digest = hashlib.sha256(msgspec.json.encode((title, figure))).hexdigest()[:8]
        drawn.append(svg(msgspec.structs.replace(figure, name=f"{figure.name}-{digest}")))
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return "".join(
        (
            f'<div class="elbowroom"><style>{_cell_style()}</style><p class="faint">{escape(title)}</p>',
            f"<p><strong>{escape(verdict)}</strong></p>" if verdict else "",
            f"<ul>{listed}</ul>" if listed else "",
            *drawn,
            f'<p class="faint">next: <code>{escape(command)}</code></p>' if command else "",
            "</div>",
        )
    )
