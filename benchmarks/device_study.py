"""The folder of results of benchmarks/device.py, which survives whatever ends the measuring."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_ARCHIVE = 16 << 20
"""Bytes."""


def unpack(archive: Path, folder: Path) -> None:
    """What such an archive holds, which is ours; Python 3.11 before its release 4 has no filters."""
    with tarfile.open(archive) as file:
        if hasattr(tarfile, "data_filter"):
            file.extractall(folder, filter="data")
        else:
            file.extractall(folder)


class Study:
    """The folder of the results: raw answers, the summary, and the archive of both."""

    def __init__(self, folder: Path, minutes: float, archive: Path | None) -> None:
        self.folder, self.raw = folder, folder / "raw"
        self.archive = archive or folder / "device.tar.gz"
        self.begun = time.monotonic()
        total = 60 * minutes
        self.end = self.begun + total - min(10.0, total / 4)
        """When measuring ends; what is left then is for the archive."""
        self.latest = self.begun + total - min(2.0, total / 20)
        """When everything ends, whatever is still being waited for."""
        self.part = ""
        """What is measured now."""
        if not self.raw.exists() and self.archive.exists():
            unpack(self.archive, folder)
        self.raw.mkdir(parents=True, exist_ok=True)
        earlier = folder / "summary.json"
        parts = json.loads(earlier.read_text())["parts"] if earlier.exists() else []
        self.summary: dict[str, Any] = {"device": None, "stand_in": False, "minutes": minutes, "parts": parts}
        self._lock = threading.Lock()

    def left(self) -> float:
        """Seconds of measuring that are left."""
        return max(0.0, self.end - time.monotonic())

    def read(self, name: str) -> Any:
        """A document of raw/; None where it is not there."""
        path = self.raw / name
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, document: Any) -> None:
        """Writes a document of raw/, whole or not at all."""
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        _replace(self.raw / name, lambda path: path.write_text(text))

    def keep(self, name: str, begun: float, status: str, reason: str = "", **more: Any) -> None:
        """Notes how a part ended, in place of what an earlier command noted, and writes the summary and the
        archive.
        """
        parts: list[dict[str, Any]] = self.summary["parts"]
        entry = {"name": name, "seconds": round(time.monotonic() - begun, 2), "status": status}
        entry |= {"reason": reason, **more} if reason else more
        place = next((at for at, part in enumerate(parts) if part["name"] == name), len(parts))
        parts[place : place + 1] = [entry]
        print(
            f"{name}: {status}{f' ({reason})' if reason else ''}, {entry['seconds']:.0f} s", file=sys.stderr
        )
        self.save()

    def save(self) -> None:
        """Writes summary.json and the archive, without the least valuable files where it is too large."""
        with self._lock:
            names = sorted(path.name for path in self.raw.iterdir() if not path.name.startswith("."))
            order = [part["name"] for part in self.summary["parts"]]
            names.sort(key=lambda name: order.index(Path(name).stem) if Path(name).stem in order else -1)
            self._pack(names)
            while self.archive.stat().st_size > MOST_ARCHIVE:
                self.summary.setdefault("left_out", []).append(names.pop())
                self._pack(names)

    def _pack(self, names: list[str]) -> None:
        text = json.dumps(self.summary, indent=1)
        _replace(self.folder / "summary.json", lambda path: path.write_text(text))

        def pack(path: Path) -> None:
            with tarfile.open(path, "w:gz", compresslevel=6) as file:
                file.add(self.folder / "summary.json", "summary.json")
                for name in names:
                    file.add(self.raw / name, f"raw/{name}")

        _replace(self.archive, pack)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write(temporary)
    os.replace(temporary, path)


def whole_lines(path: Path) -> list[str]:
    """The lines of a file; a last one that a kill cut off is removed from it."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        _replace(path, lambda new: new.write_text(whole, encoding="utf-8"))
    return whole.splitlines()
