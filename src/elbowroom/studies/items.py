"""The items of the papers: each figure, table, conclusion and method, the command that shows it, and what is
missing. `items.csv` declares them; docs/papers/items-*.md are made from it (tools/paper_pages.py).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from elbowroom.errors import UsageError, closest

ItemStatus = Literal["done", "part", "refused"]
STATUSES: tuple[ItemStatus, ...] = ("done", "part", "refused")
_FILE = Path(__file__).with_name("items.csv")


class PaperItem(msgspec.Struct, frozen=True, kw_only=True):
    """A figure, table, conclusion or method of a paper.

    `section` of the paper, and `figures` by their labels there; `status`: `done` where the command shows it
    on a machine that has what it needs, `part` and `refused` with a `reason`; `paper`, `ours`: the value of
    the paper beside ours, where there are any; `hardware`: what the machine of `ours` lacked to decide it.
    """

    document: str
    section: str
    figures: tuple[str, ...]
    item: str
    status: ItemStatus
    command: str
    paper: str
    ours: str
    reason: str
    hardware: tuple[str, ...]


class PaperItems(msgspec.Struct, frozen=True, kw_only=True):
    """What `papers --json` prints; `counts`: items by status."""

    schema: str = "elbowroom/papers"
    version: int = 1
    counts: dict[str, int]
    items: tuple[PaperItem, ...]


def paper_items(document: str | None = None) -> PaperItems:
    """The items of all papers, or of one; UsageError for a paper that has none."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        every = [_item(row) for row in csv.DictReader(file)]
    if document is not None:
        known = sorted({item.document for item in every})
        if document not in known:
            hint = closest(document, known)
            raise UsageError("is not a document with items", field="document", value=document, hint=hint)
        every = [item for item in every if item.document == document]
    return PaperItems(counts=_count(every), items=tuple(every))


def _item(row: dict[str, str]) -> PaperItem:
    lists = {name: tuple(filter(None, row[name].split("; "))) for name in ("figures", "hardware")}
    return msgspec.convert({**row, **lists}, PaperItem)


def _count(items: Sequence[PaperItem]) -> dict[str, int]:
    counts = Counter(item.status for item in items)
    return {status: counts[status] for status in STATUSES}
