"""Which format a trace has, and several files as one trace."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Lane
from elbowroom.trace.overlap.tables import Numbering

Format = Literal["folder", "otf2", "sqlite", "parquet", "json"]

ANCHOR = ".otf2"
READABLE = "Kineto or Chrome JSON (also .gz), Nsight Systems' SQLite, OTF2, or a trace of elbowroom"


def format_of(path: Path) -> tuple[Format, Path]:
    """The format of a trace, and what to read: of an OTF2 archive its anchor. UsageError for any other."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _of_folder(path)
        if not stat.S_ISREG(mode):
            raise _wrong(path, "is not a regular file")
        with open(path, "rb") as file:
            start = file.read(64)
    except (OSError, ValueError) as error:
        raise _wrong(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not start:
        raise _wrong(path, "is empty")
    if path.suffix == ANCHOR:
        return "otf2", path
    if start.startswith(b"SQLite format 3\0"):
        return "sqlite", path
    if start.startswith(b"PAR1"):
        return "parquet", path
    if _is_archive(path):
        raise UsageError(
            "is an archive of several files (tar)",
            field="trace",
            value=str(path),
            hint="extract it, and give the file of each rank",
        )
    if start.startswith(b"\x1f\x8b") or start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return "json", path
    raise _wrong(path, "unsupported trace format")


def _is_archive(path: Path) -> bool:
    """Whether the file is a tar archive, which may be compressed."""
    with open(path, "rb") as file:
        start = file.read(1 << 12)
    if start.startswith(b"\x1f\x8b"):
        try:
            start = zlib.decompressobj(31).decompress(start, 512)
        except zlib.error:
            return False
    return start[257:262] == b"ustar"


def _of_folder(path: Path) -> tuple[Format, Path]:
    anchors = sorted(one for one in path.glob(f"*{ANCHOR}") if one.is_file())
    if len(anchors) == 1:
        return "otf2", anchors[0]
    if anchors:
        raise _wrong(path, f"holds {len(anchors)} archives")
    return "folder", path


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(what, field="trace", value=str(path), hint=f"give {READABLE}")


def joined(parts: Sequence[Events], files: Sequence[str]) -> Events:
    """Several files, one or more for each rank, as one trace. UsageError where they belong to several
    runs: two formats, jobs of different sizes, or the same rank twice.
    """
    if len(parts) == 1:
        return parts[0]
    _check_alike(parts, files)
    classes: Numbering = Numbering()
    ranks: Numbering = Numbering()
    lanes: list[Lane] = []
    columns: dict[str, list[np.ndarray]] = {
        name: [] for name in ("kind", "lane", "start", "duration", "launched", "issued")
    }
    for file, part in enumerate(parts):
        numbers = np.array([classes[kind] for kind in part.classes], dtype=np.int32)
        columns["kind"].append(numbers[part.kind] if len(part) else part.kind)
        columns["launched"].append(
            np.where(part.launched == NONE, NONE, numbers[np.maximum(part.launched, 0)])
            if len(part)
            else part.launched
        )
        columns["lane"].append(part.lane + np.int32(len(lanes)))
        columns["start"].append(part.start)
        columns["duration"].append(part.duration)
        columns["issued"].append(part.issued)
        lanes += [
            msgspec.structs.replace(one, rank=ranks[part.ranks[one.rank]], file=file) for one in part.lanes
        ]
    whole = {name: np.concatenate(blocks) for name, blocks in columns.items()}
    kinds: tuple[EventClass, ...] = tuple(classes)
    return Events(
        format=parts[0].format,
        classes=kinds,
        lanes=tuple(lanes),
        ranks=tuple(ranks),
        kind=whole["kind"].astype(np.int32),
        lane=whole["lane"].astype(np.int32),
        start=whole["start"],
        duration=whole["duration"],
        launched=whole["launched"].astype(np.int32),
        issued=whole["issued"],
        doubts=tuple(dict.fromkeys(text for part in parts for text in part.doubts)),
        notes=tuple(dict.fromkeys(text for part in parts for text in part.notes)),
    )


def _check_alike(parts: Sequence[Events], files: Sequence[str]) -> None:
    owners: dict[str, str] = {}
    for part, file in zip(parts, files, strict=True):
        if part.format != parts[0].format:
            what = f"is {part.format}, and {files[0]} is {parts[0].format}: they belong to several runs"
            raise UsageError(what, field="trace", value=file, hint="give the files of one run")
        if part.job != parts[0].job:
            jobs = [one.job or "some" for one in (part, parts[0])]
            what = f"comes from a job of {jobs[0]} ranks, and {files[0]} from one of {jobs[1]}"
            raise UsageError(what, field="trace", value=file, hint="give the files of one run")
        for rank in part.ranks:
            if owners.setdefault(rank, file) != file or files.count(file) > 1:
                what = f"has {rank}, as {owners[rank]} has: they belong to several runs"
                raise UsageError(
                    what, field="trace", value=file, hint="give one file for each rank of one run"
                )
