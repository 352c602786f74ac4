"""A page: the answer, a map of the nodes, and the table of suspects. It needs no network and no script."""

from __future__ import annotations

from html import escape

from elbowroom.accept.causes import cause_text
from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import AcceptanceFormat
from elbowroom.draw.html import template
from elbowroom.draw.svg import style
from elbowroom.quantities import number, percent
from elbowroom.version import __version__

CELL, LINE = 14, 32
"""Width of a node on the map, and nodes in a line."""


def _text(document: AcceptanceDocument) -> bytes:
    page: str = template("elbowroom.accept", "page.html.j2").render(
        document=document,
        style=style(),
        map=_map(document),
        suspects=[
            (
                one.name,
                one.quantity,
                f"{percent(one.loss)}",
                cause_text(one.cause),
                one.evidence,
                f"{one.score:g}",
            )
            for one in document.suspects
        ],
        levels=[
            (
                level.quantity,
                f"{number(level.median)} {level.unit}",
                percent(level.visible) if level.visible is not None else "n/a",
                percent(level.kept) if level.kept is not None else "",
            )
            for level in document.levels
        ],
        version=__version__,
    )
    return page.encode()


def _map(document: AcceptanceDocument) -> str:
    """A square for each node in the order of their numbers, LINE in a line; suspects are dark."""
    causes = {one.node: one for one in document.suspects if one.node is not None}
    squares = []
    for node, name in enumerate(document.names):
        row, column = divmod(node, LINE)
        one = causes.get(node)
        text = (
            name
            if one is None
            else f"{name}: {cause_text(one.cause)}, loses {percent(one.loss)} of {one.quantity}"
        )
        squares.append(
            f'<rect class="{"healthy" if one is None else "suspect"}" x="{column * CELL}" y="{row * CELL}" '
            f'width="{CELL - 2}" height="{CELL - 2}"><title>{escape(text)}</title></rect>'
        )
    lines = -(-len(document.names) // LINE)
    width, height = CELL * min(LINE, max(len(document.names), 1)), CELL * lines
    return (
        f'<svg role="img" aria-label="Map of the nodes" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(squares)}</svg>'
    )


ACCEPTANCEFORMAT = AcceptanceFormat(name="html", endings=(".html",), text=_text)
