"""A run folder: manifest, topology, journal, sealed samples, report."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.documents import DocumentFormat, encode
from elbowroom.errors import UsageError
from elbowroom.files import (
    RUN_FILES,
    disk_error,
    read_text,
    sync,
    sync_folder,
    temporary_prefix,
    wrong_kind,
)
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Note, Point, unstored
from elbowroom.points.unit import Entry
from elbowroom.store import journal as journals
from elbowroom.store.journal import Journal, read_journal

SCHEMA = "elbowroom/manifest"
VERSION = 1

_RUN_HINT = "name the folder a run was written to"
_TEMPORARIES = tuple(f".{name}." for name in (*RUN_FILES, "report.html"))


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The time a run was given, all its parts together, and what it did with it.

    `seconds` were given and `spent_s` spent until all was measured, without building programs; `least`
    repetitions make a point whole; `left_out` are the ids of points without them, which no result shows.
    """

    seconds: float
    spent_s: float
    least: int
    left_out: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was asked for and where it ran.

    `plan` is the plan after all options, as plain data; `machine` what it was expanded against; `state` the
    machine `before` and `after`; `software` the commit, Python and the versions of its packages (how the
    program was compiled is in `hello`); `unknown` says for each thing that could not be read, why. `wall_s`
    and `measured_s` (seconds) sum over all resumed parts: `measured_share` is their ratio.
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
    software: dict[str, Any] = {}
    observers: dict[str, dict[str, Any]] = {}
    unknown: dict[str, str] = {}
    finished: str = ""
    resumed: tuple[str, ...] = ()
    wall_s: float = 0.0
    measured_s: float = 0.0
    measured_share: float | None = None
    budget: Budget | None = None

    def __post_init__(self) -> None:
        for name in ("mpi", "gpu", "virtual"):
            if not isinstance(self.hello.get(name) or {}, dict):
                raise ValueError(f"hello.{name} is not an object")
        if not isinstance(self.plan.get("repetitions", 1), int):
            raise ValueError("plan.repetitions is not a whole number")

    @property
    def starts(self) -> int:
        """How often the plan starts the program; runs of release 0.1 start it once and do not say so."""
        return int(self.plan.get("starts", 1))

    def plain(self) -> dict[str, Any]:
        """Plain data, as in manifest.json."""
        plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, points=()))
        plain["points"] = [point.plain() for point in self.points]
        return plain


def upgrade(head: dict[str, Any]) -> dict[str, Any]:
    """A manifest of any release as this one decodes it: what a point runs is stored under its key, beside a
    null for each other kind that release 0.1 had.
    """
    if not isinstance(head.get("points"), list):
        return head
    return head | {"points": [unstored(point) for point in head["points"]]}


MANIFEST_FORMAT = DocumentFormat(
    kind=Manifest,
    schema=SCHEMA,
    version=VERSION,
    name="manifest",
    hint="restore it from a copy; the samples beside it are not touched",
    adapt=upgrade,
    own=True,
)


class RunFolder:
    """One run on the disk. Results of earlier runs are never overwritten."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @property
    def manifest_path(self) -> Path:
        """manifest.json"""
        return self.path / "manifest.json"

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
        """Makes the folder, which exists whole or not at all.

        `entries` are what is in the journal already (of an import; a run begins with none).
        """
        lines = (msgspec.json.encode(entry) + b"\n" for entry in entries)
        files = {
            "manifest.json": encode(manifest),
            "topology.xml": topology.encode(),
            "samples.jsonl": journals.HEADER + b"".join(lines),
        }
        create_folder(path, files)
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Reads the manifest; UsageError for no run folder, a damaged one, or one of a newer release."""
        path = Path(path)
        file = path / "manifest.json"
        if not os.path.lexists(file):
            what = wrong_kind(path, "folder") or "is not a run folder (it has no manifest.json)"
            if (path / "tables.json").is_file():
                hint = "a fit needs both sides together: `elbowroom run model`, or a CSV file (help predict)"
                raise UsageError("holds tables of logs, no curves", field="run", value=str(path), hint=hint)
            raise UsageError(what, field="run", value=str(path), hint=_RUN_HINT)
        return cls(path, MANIFEST_FORMAT.read(file))

    def update(self, **changes: Any) -> None:
        """Writes the manifest again with some fields changed."""
        self.manifest = msgspec.structs.replace(self.manifest, **changes)
        MANIFEST_FORMAT.write(self.manifest_path, self.manifest, own=True)

    def topology(self) -> str:
        """hwloc's XML; raises UsageError when it cannot be read."""
        return read_text(self.topology_path, field="topology", hint="copy it from a run of the same machine")

    def journal(self) -> Journal:
        """The journal, opened for appending by this process alone; half-written files are removed."""
        journal = Journal(self.journal_path)
        self._remove_temporaries()
        return journal

    def check_points(self, measured: Iterable[str]) -> None:
        """UsageError where the journal has samples of a point that the manifest lacks."""
        unknown = set(measured) - {point.id for point in self.manifest.points}
        if unknown:
            raise UsageError(
                f"has samples of point {min(unknown)}, which is not in manifest.json",
                field="journal",
                value=str(self.journal_path),
                hint="restore both files of the run from one copy",
            )

    def _remove_temporaries(self) -> None:
        """Removes half-written files that a kill left; whoever has the lock is the only one to write them."""
        with suppress(OSError):
            for name in os.listdir(self.path):
                if name.endswith(".tmp") and name.startswith(_TEMPORARIES):
                    (self.path / name).unlink()

    def entries(self) -> list[Entry]:
        """What was measured so far, in the order of measuring; UsageError where it does not fit the
        manifest.
        """
        entries = read_journal(self.journal_path)[0]
        known = {point.id for point in self.manifest.points}
        if any(entry.point not in known for entry in entries):
            # A calibration that is still running may have added points since this manifest was read.
            RunFolder.open(self.path).check_points(entry.point for entry in entries)
        return [entry for entry in entries if entry.point in known]


def create_folder(path: Path, files: dict[str, bytes]) -> None:
    """Makes a folder complete under another name and renames it: it exists whole or not at all. UsageError if
    it exists, MachineError if the disk refuses.
    """
    refuse_existing(path)
    temporary = path.with_name(f"{temporary_prefix(path)}{os.getpid()}.{secrets.token_hex(3)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _fill(temporary, files)
        os.rename(temporary, path)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            refuse_existing(path)
            raise disk_error(error, path, "out") from error
        raise
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise disk_error(error, path, "out") from error


def _fill(folder: Path, files: dict[str, bytes]) -> None:
    """Makes a folder with these files, on the disk with their names."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
        sync(folder / name)
    sync_folder(folder)


def refuse_existing(
    path: Path, field: str = "out", hint: str = "choose another --out, or continue it with --resume"
) -> None:
    """Raises UsageError when something with content is at `path`, or it is the current folder."""
    if not path.name or os.path.realpath(path) == os.getcwd():
        raise UsageError("names no new folder", field=field, value=str(path), hint="name one, such as runs/a")
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists() or path.is_symlink():
        raise UsageError(
            "already exists and is never overwritten",
            field=field,
            value=str(path),
            hint=hint,
        )
