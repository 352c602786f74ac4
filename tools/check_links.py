"""Whether every link between the pages of the repository leads to a file, and to a heading of it, that exist.

    python tools/check_links.py        prints the links that do not, and exits with 1

Links to the web are not followed: nothing is fetched.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def pages(root: Path = ROOT) -> list[Path]:
    """The Markdown pages: those at the top, those below docs/, and the README of every folder."""
    folders = (
        "apps",
        "benchmarks",
        "core",
        "include",
        "lib",
        "packaging",
        "schemas",
        "src",
        "tests",
        "tools",
    )
    readmes = [path for folder in folders for path in (root / folder).rglob("README.md")]
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *readmes])


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    result: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        shown = LINK.sub(lambda link: link[0].partition("]")[0].lstrip("![") or "", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = 0
        while (unique := f"{slug}-{number}" if number else slug) in result:
            number += 1
        result.add(unique)
    return result


def broken_links(page: Path) -> Iterator[str]:
    """The targets in `page` that are no file, or no heading of the page they name."""
    for target in LINK.findall(FENCE.sub("", _text(page))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / unquote(name) if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(_text(file))):
            yield target


def main() -> int:
    """Prints each broken link as `page: target`."""
    broken = [f"{page.relative_to(ROOT)}: {target}" for page in pages() for target in broken_links(page)]
    print("\n".join(broken), end="\n" if broken else "")
    return 1 if broken else 0


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
