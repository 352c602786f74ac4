"""Packages that are installed into a folder of their own: files and a `.dist-info` are enough."""

from __future__ import annotations

import sys
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
