"""What HTML pages are made with: assets of a package, jinja2 templates, and data inside a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from elbowroom.draw.figure import Figure
from elbowroom.draw.svg import style, svg


@lru_cache
def asset(package: str, name: str) -> str:
    """A text file of a package, such as `asset("elbowroom.report", "page.css")`."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


@lru_cache
def template(package: str, name: str) -> Any:
    """A compiled template; jinja2 is imported here since `elbowroom --help` must not wait for it."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(asset(package, name))


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
) -> str:
    """The page. `sentences`: each with its hints; `table`: title, names of the columns, rows."""
    table_title, columns, rows = table
    page: str = template("elbowroom.trace", "page/figures.html.j2").render(
        title=title,
        command=command,
        style=style(),
        sentences=sentences,
        figures=[(figure, svg(figure)) for figure in figures],
        table_title=table_title,
        columns=columns,
        rows=rows,
        note=note,
    )
    return page
