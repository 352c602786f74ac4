"""Packages that are installed into a folder of their own: files and a `.dist-info` are enough."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

Files = Mapping[str, str]
Entries = Mapping[str, Mapping[str, str]]
Install = Callable[[str, Files, Entries], None]


def install(folder: Path, package: str, files: Files, entries: Entries) -> None:
    """A package with these files; `entries`: entry points by group (`experiments`, not `elbowroom.…`)."""
    for name, text in files.items():
        path = folder / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line
        for group, names in entries.items()
        for line in (f"[elbowroom.{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def documented() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The files and entry points of the package `halo` of docs/reference/extend.md, whose code blocks begin
    with the name of their file.
    """
    page = (Path(__file__).parents[1] / "docs/reference/extend.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:toml|python)\n# (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    files = {name.removeprefix("halo/"): text for name, text in blocks}
    groups = tomllib.loads(files.pop("pyproject.toml"))["project"]["entry-points"]
    return files, {group.removeprefix("elbowroom."): names for group, names in groups.items()}


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs packages for this process, until the test ends."""
    packages: list[str] = []

    def added(package: str, files: Files, entries: Entries) -> None:
        install(tmp_path / f"site-{package}", package, files, entries)
        monkeypatch.syspath_prepend(str(tmp_path / f"site-{package}"))
        packages.append(package)

    yield added
    for package in packages:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
