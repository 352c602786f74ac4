"""Fills the recipe with a release's addresses and checksums.

    fill.py --homepage URL --url URL [--git URL] ARCHIVE... > packages/elbowroom/package.py

Each ARCHIVE is a local copy of a release, elbowroom-VERSION.tar.gz; its checksum is computed here. `url` is
the address of one of them, from which Spack derives those of the other versions. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

TEMPLATE = Path(__file__).with_name("package.py")
_NAME = re.compile(r"elbowroom-(\d+(?:\.\d+)*)\.(?:tar\.(?:gz|xz|bz2)|zip)")


def version_line(archive: Path) -> str:
    """`version("1.2.3", sha256="...")`; ValueError where the name has no version."""
    found = _NAME.fullmatch(archive.name)
    if found is None:
        raise ValueError(f"{archive.name}: is not named elbowroom-VERSION.tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return f'    version("{found.group(1)}", sha256="{digest}")'


def filled(template: str, homepage: str, url: str, git: str | None, archives: Sequence[Path]) -> str:
    """The recipe of these releases, the newest first."""
    lines = [version_line(archive) for archive in archives]
    lines.sort(key=lambda line: [int(part) for part in line.split('"')[1].split(".")], reverse=True)
    text = re.sub(r'(?m)^    homepage = ".*"$', f'    homepage = "{homepage}"\n    url = "{url}"', template)
    # The template's comment and repository are those of a recipe without a release.
    text = re.sub(
        r'(?m)^    # The template has no release.*\n    git = ".*"\n',
        f'    git = "{git}"\n' if git else "",
        text,
    )
    branch = r'(?m)^    version\("main", branch="main"\)$'
    main = ['    version("main", branch="main")'] if git else []
    return re.sub(branch, "\n".join([*main, *lines]), text)


def main(words: Sequence[str]) -> int:
    """Prints the recipe."""
    parser = argparse.ArgumentParser(description="Fills the Spack recipe with addresses and checksums.")
    parser.add_argument("--homepage", required=True)
    parser.add_argument("--url", required=True, help="address of one of the archives")
    parser.add_argument("--git", help="address of the repository; without, there is no version `main`")
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    given = parser.parse_args(words)
    try:
        recipe = filled(
            TEMPLATE.read_text(encoding="utf-8"), given.homepage, given.url, given.git, given.archives
        )
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(recipe, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
