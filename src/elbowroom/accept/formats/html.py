"""A page: the answer, a map of the nodes, and the table of suspects. It needs no network and no script."""

from __future__ import annotations

from html import escape

from elbowroom.accept.causes import cause_text
from elbowroom.accept.document import AcceptanceDocument, Suspect
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
    """A square for each node, with a line of its own for each switch; suspects are dark."""
    lines = _lines(document)
    suspects = {one.node: one for one in document.suspects if one.node is not None}
    missing = {one.name: one.why for one in document.missing}
    squares = [
        _square(document.names[node], suspects.get(node), missing.get(document.names[node]), column, row)
        for row, nodes in enumerate(lines)
        for column, node in enumerate(nodes)
    ]
    width, height = CELL * max(map(len, lines), default=1), CELL * len(lines)
    return (
        f'<svg role="img" aria-label="Map of the nodes" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{"".join(squares)}</svg>'
    )


def _lines(document: AcceptanceDocument) -> list[list[int]]:
    """The nodes of each line of the map: those of one switch, and at most LINE."""
    switches = document.switches or (0,) * len(document.names)
    lines: list[list[int]] = []
    for switch in sorted(set(switches)):
        nodes = [node for node, own in enumerate(switches) if own == switch]
        lines += [nodes[first : first + LINE] for first in range(0, len(nodes), LINE)]
    return lines


def _square(name: str, suspect: Suspect | None, missing: str | None, column: int, row: int) -> str:
    kind, text = "healthy", name
    if missing is not None:
        kind, text = "missing", f"{name}: {missing}"
    elif suspect is not None:
        loss = f"loses {percent(suspect.loss)} of {suspect.quantity}"
        kind, text = "suspect", f"{name}: {cause_text(suspect.cause)}, {loss}"
    return (
        f'<rect class="{kind}" x="{column * CELL}" y="{row * CELL}" '
        f'width="{CELL - 2}" height="{CELL - 2}"><title>{escape(text)}</title></rect>'
    )


ACCEPTANCEFORMAT = AcceptanceFormat(name="html", endings=(".html",), text=_text)
