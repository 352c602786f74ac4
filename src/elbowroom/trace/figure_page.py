"""A page of sentences, figures and a table, as one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Figure
from elbowroom.draw.html import template
from elbowroom.draw.svg import style, svg


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
