"""Compares the pages of the papers' items with src/elbowroom/studies/items.csv, and writes them anew.

    python tools/paper_pages.py [--update]

docs/papers/items-*.md have a row for each item, and end with what only other hardware can show. Exit code 1
where a page differs and is not updated.
"""

from __future__ import annotations

import difflib
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from quotes import WIDTH

from elbowroom.quantities import plural
from elbowroom.studies import STUDIES
from elbowroom.studies.items import STATUSES, PaperItem, paper_items

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "papers"
MARK = "<!-- made by python tools/paper_pages.py --update from src/elbowroom/studies/items.csv -->"
LEGEND = (
    "*done*: the command shows the item where the machine has what it needs. *part*: the last column says "
    "what is missing. *refused*: not shown, for the reason given. *Here* are values of machines of this "
    "project, most of the [virtual machine with two cores](../measured/two-core-vm.md), which has no NIC."
)
COLUMNS = ("Section", "Item", "Status", "Command", "Paper", "Here", "Reason, or what is missing")


class ItemPage(NamedTuple):
    """A page: its name, the document, what its title says of the part, and how the sections of the part
    begin; no beginnings: all sections.
    """

    name: str
    document: str
    part: str = ""
    sections: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file of the page."""
        return FOLDER / f"{self.name}.md"

    def takes(self, item: PaperItem) -> bool:
        """Whether an item is on the page."""
        return item.document == self.document and (
            not self.sections or item.section.startswith(self.sections)
        )


PAGES = (
    ItemPage("items-denis2021", "denis2021"),
    ItemPage("items-koop2009", "koop2009"),
    ItemPage("items-langguth2018", "langguth2018"),
    ItemPage("items-swartvagher2022-tracing", "swartvagher2022", "chapter 3", ("3",)),
    ItemPage("items-swartvagher2022-graphs", "swartvagher2022", "chapter 4", ("4",)),
    ItemPage(
        "items-swartvagher2022-model",
        "swartvagher2022",
        "chapters 5 and 6, appendices",
        ("5", "6", "A", "B", "C", "E"),
    ),
    ItemPage("items-tan2012", "tan2012"),
)


def render(page: ItemPage) -> str:
    """The page as the items have it."""
    items = [item for item in paper_items(page.document).items if page.takes(item)]
    study = STUDIES.get(page.document)
    counts = ", ".join(
        f"{count} {status}" for status in STATUSES if (count := sum(item.status == status for item in items))
    )
    lines = [
        MARK,
        f"# Items of {page.document}{f', {page.part}' if page.part else ''}",
        "",
        *wrapped(f"{study.paper}: {plural(len(items), 'item')}, of which {counts}. {LEGEND}"),
        "",
        f"Discussion: [{Path(study.page).stem}]({Path(study.page).name}). The same in the terminal:",
        "",
        f"    elbowroom papers {page.document}",
        "",
        "## Figures, tables, conclusions and methods",
        "",
        row(COLUMNS),
        row(["---"] * len(COLUMNS)),
        *(row(cells(item)) for item in items),
        "",
        "## What only other hardware can show",
        "",
        *hardware(items),
    ]
    return "\n".join(lines) + "\n"


def cells(item: PaperItem) -> tuple[str, ...]:
    """The row of an item, with its figures before its text."""
    figures = f"**{', '.join(item.figures)}**: " if item.figures else ""
    command = f"`{item.command}`" if item.command else ""
    return (
        item.section, figures + item.item, item.status, command, item.paper, item.ours, item.reason,
    )  # fmt: skip


def row(texts: Sequence[str]) -> str:
    """A row of a table."""
    return "|" + "".join(f" {text} |" if text else " |" for text in texts)


def hardware(items: Sequence[PaperItem]) -> Iterator[str]:
    """An entry of a list for each kind of hardware: the items that it decides."""
    kinds = dict.fromkeys(kind for item in items for kind in item.hardware)
    if not kinds:
        yield "Nothing: every item of this page can be shown on any machine."
    for kind in kinds:
        decided = dict.fromkeys(shortly(item) for item in items if kind in item.hardware)
        yield from wrapped(f"- **{kind[0].upper()}{kind[1:]}**: {'; '.join(decided)}.", indent="  ")


def shortly(item: PaperItem) -> str:
    """The figures of an item, or its section and text."""
    return ", ".join(item.figures) or f"{item.section} ({item.item})"


def wrapped(text: str, indent: str = "") -> list[str]:
    """In lines as wide as those of a page."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def main(arguments: Iterable[str]) -> int:
    """Prints how pages differ and returns 1, or writes them anew."""
    update = "--update" in arguments
    status = 0
    for page in PAGES:
        old = page.path.read_text(encoding="utf-8") if page.path.exists() else ""
        new = render(page)
        if old == new:
            continue
        if update:
            page.path.write_text(new, encoding="utf-8")
            print(f"{page.path.relative_to(ROOT)}: renewed")
        else:
            status = 1
            print(*difflib.unified_diff(old.splitlines(), new.splitlines(), page.name, "items.csv"), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
