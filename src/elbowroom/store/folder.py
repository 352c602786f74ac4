"""A run folder: manifest, topology, journal, sealed samples, report."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan.point import Note, Point
from elbowroom.store import journal as journals
from elbowroom.store.files import disk_error, sync, write_atomically
from elbowroom.store.journal import Entry, Journal, read_journal
from elbowroom.store.versions import check_version

SCHEMA = "elbowroom/manifest"
VERSION = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was asked for and where it ran.

    `plan` is the plan after all options, as plain data; `machine` what it was expanded against; `state` the
    machine `before` and `after`; `unknown` says for each thing that could not be read, why. `wall_s` and
    `measured_s` (seconds) sum over all resumed parts: `measured_share` is their ratio.
    """

    schema: str = SCHEMA
    version: int = VERSION
    elbowroom: str
    created: str
    command: tuple[str, ...]
    plan: dict[str, Any]
    points: tuple[Point, ...]
    notes: tuple[Note, ...] = ()
    seed: int
    reverse: bool = False
    launcher: str
    where: dict[str, Any] = {}
    machine: Machine
    launch: tuple[str, ...] = ()
    mpi: dict[str, Any] = {}
    hello: dict[str, Any] = {}
    kernels: tuple[dict[str, Any], ...] = ()
    state: dict[str, dict[str, Any]] = {}
    observers: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    finished: str = ""
    resumed: tuple[str, ...] = ()
    wall_s: float = 0.0
    measured_s: float = 0.0
    measured_share: float | None = None


class RunFolder:
    """One run on the disk. Results of earlier runs are never overwritten."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @property
    def journal_path(self) -> Path:
        """samples.jsonl"""
        return self.path / "samples.jsonl"

    @property
    def parquet_path(self) -> Path:
        """samples.parquet, there once the run was sealed."""
        return self.path / "samples.parquet"

    @property
    def topology_path(self) -> Path:
        """topology.xml as hwloc exported it."""
        return self.path / "topology.xml"

    @property
    def report_path(self) -> Path:
        """report.html"""
        return self.path / "report.html"

    @classmethod
    def create(
        cls, path: Path, manifest: Manifest, topology: str, entries: Iterable[Entry] = ()
    ) -> RunFolder:
        """Makes the folder complete under another name and renames it: it exists whole or not at all.

        `entries` are what is in the journal already (of an import; a run begins with none).
        """
        refuse_existing(path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            (temporary / "manifest.json").write_bytes(_encode(manifest))
            (temporary / "topology.xml").write_text(topology, encoding="utf-8")
            lines = (msgspec.json.encode(entry) + b"\n" for entry in entries)
            (temporary / "samples.jsonl").write_bytes(journals.HEADER + b"".join(lines))
            for file in temporary.iterdir():
                sync(file)
            os.rename(temporary, path)
            sync(path.parent)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if path.exists():
                refuse_existing(path)
            raise disk_error(error, path, "out") from error
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Reads the manifest; raises UsageError when this is no run folder, is damaged, or of a newer
        release.
        """
        path = Path(path)
        file = path / "manifest.json"
        try:
            data = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            what = "is no run folder (it has no manifest.json)" if path.is_dir() else "does not exist"
            raise UsageError(
                what, field="run", value=str(path), mend="name the folder a run was written to"
            ) from error
        except OSError as error:
            raise UsageError(f"cannot be read ({error.strerror})", field="run", value=str(file)) from error
        try:
            head = msgspec.json.decode(data)
        except msgspec.DecodeError as error:
            raise UsageError(f"is damaged ({error})", field="manifest", value=str(file)) from error
        if not isinstance(head, dict) or head.get("schema") != SCHEMA:
            raise UsageError(
                f"is no manifest of elbowroom (schema {SCHEMA!r})", field="manifest", value=str(file)
            )
        check_version(file, SCHEMA, head.get("version"), VERSION)
        try:
            return cls(path, msgspec.convert(head, Manifest))
        except msgspec.ValidationError as error:
            raise UsageError(f"is damaged ({error})", field="manifest", value=str(file)) from error

    def update(self, **changes: Any) -> None:
        """Writes the manifest again with some fields changed."""
        self.manifest = msgspec.structs.replace(self.manifest, **changes)
        write_atomically(self.path / "manifest.json", _encode(self.manifest))

    def topology(self) -> str:
        """hwloc's XML; raises UsageError when it cannot be read."""
        try:
            return self.topology_path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"cannot be read ({error})", field="topology", value=str(self.topology_path)
            ) from error

    def journal(self) -> Journal:
        """The journal, opened for appending by this process alone."""
        return Journal(self.journal_path)

    def entries(self) -> list[Entry]:
        """What was measured so far, in the order of measuring."""
        return read_journal(self.journal_path)[0]


def refuse_existing(path: Path) -> None:
    """Raises UsageError when something with content is at `path`."""
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        raise UsageError(
            "is there already and is never overwritten",
            field="out",
            value=str(path),
            mend="choose another --out, or go on with it by --resume",
        )


def _encode(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
