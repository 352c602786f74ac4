"""Which format a trace has, and several files as one trace."""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap import readers
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Lane
from elbowroom.trace.overlap.tables import Numbering

ANCHOR = ".otf2"
STDIN = "-"
_OWN = ("rank-*.jsonl", "job-*/rank-*.jsonl")
_PACKED = (
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd, which is not read: decompress it (zstd -d)"),
    (b"\xfd7zXZ", "is compressed by xz, which is not read: decompress it (xz -d)"),
    (b"BZh", "is compressed by bzip2, which is not read: decompress it (bzip2 -d)"),
    (b"PK\x03\x04", "is a zip archive, which is not read: unpack it"),
    (b"\xff\xfe", "is text in UTF-16, which is not read: convert it to UTF-8"),
    (b"\xfe\xff", "is text in UTF-16, which is not read: convert it to UTF-8"),
)
"""First bytes of files that may hold a trace, but are not read, and what they are."""
_MOST_FILES = 100_000
"""In a folder or an archive: more is not a folder of traces."""


class TraceFile(NamedTuple):
    """A trace to read: its format (a name, or the module that reads it), its file or folder, its title."""

    format: str
    place: Path
    name: str


def _of_pipe(path: Path) -> TraceFile:
    """Read once, by json-events: nothing is known of it before. One with a name may never be written to."""
    resolved = path.resolve()
    if resolved.parent.name != "fd":
        hint = f"read it from stdin: elbowroom trace overlap - < {path}"
        raise UsageError("is a named pipe", field="trace", value=str(path), hint=hint)
    # json-events has no other descriptors of this process than the standard ones.
    number = path.name if path.name.isdecimal() else "0"
    return TraceFile("json", Path(f"/proc/{os.getpid()}/fd/{number}"), str(path))


def traces_in(path: Path, scratch: Path) -> list[TraceFile]:
    """The traces that a file, a folder or a tar archive holds, one for each rank; archives are unpacked into
    `scratch`. UsageError where there is none.
    """
    if str(path) == STDIN:
        path = Path("/dev/stdin")
    try:
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode):
            return [_of_pipe(path)]
        if stat.S_ISDIR(mode):
            return _of_folder(path, str(path))
        if not stat.S_ISREG(mode):
            raise _wrong(path, "is not a regular file")
        start = _start(path)
    except (OSError, ValueError) as error:
        raise _wrong(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not start:
        raise _wrong(path, "is empty")
    if _is_archive(start):
        return _of_folder(_unpacked(path, scratch), str(path))
    format_ = _of_file(path, start)
    if format_ is None:
        what = next((what for magic, what in _PACKED if start.startswith(magic)), "unsupported trace format")
        raise _wrong(path, what)
    return [TraceFile(format_, path, str(path))]


def _start(path: Path) -> bytes:
    """The first bytes of a file, decompressed where it is compressed."""
    with open(path, "rb") as file:
        start = file.read(readers.HEAD)
    if start.startswith(b"\x1f\x8b"):
        try:
            return zlib.decompressobj(31).decompress(start, readers.HEAD) or start
        except zlib.error:
            return start
    return start


def _of_file(path: Path, start: bytes) -> str | None:
    """The format of a file that begins like this; None: of none."""
    if path.suffix == ANCHOR:
        return "otf2"
    if (reader := readers.reader_of(start)) is not None:
        return str(reader.__name__)
    if _is_perfetto(start):
        return "perfetto"
    if start.startswith(b"PAR1"):
        return "parquet"
    # A damaged file in gz is JSON as far as its name says; its reader has a sentence on the damage.
    damaged = start.startswith(b"\x1f\x8b") and ".json" in path.name
    return "json" if damaged or start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else None


def _is_perfetto(start: bytes) -> bool:
    """Whether it begins with a packet of Perfetto (field 1 of a message), and others behind it."""
    at = 0
    for _ in range(4):
        if start[at : at + 1] != b"\x0a":
            return False
        size = length = 0
        for byte in start[at + 1 : at + 6]:
            size |= (byte & 0x7F) << 7 * length
            length += 1
            if byte < 0x80:
                break
        else:
            return False
        at += 1 + length + size
        if at >= len(start):
            return size > 0
    return True


def _is_archive(start: bytes) -> bool:
    return start[257:262] == b"ustar"


def _unpacked(path: Path, scratch: Path) -> Path:
    """The folder with what an archive holds. UsageError where it is damaged, or would write elsewhere."""
    place = scratch / f"{len(os.listdir(scratch))}-{path.name}"
    place.mkdir()
    try:
        with tarfile.open(path) as archive:
            _extract(archive, place)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        what = f"cannot be unpacked ({getattr(error, 'strerror', None) or error})"
        raise UsageError(
            what, field="trace", value=str(path), hint="unpack it, and give the file of each rank"
        ) from error
    return place


def _extract(archive: tarfile.TarFile, place: Path) -> None:
    """All that is in an archive. tarfile.TarError for what would be written elsewhere."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(place, filter="data")
        return
    # Python 3.11 before its release 4, which Debian 12 has.
    for member in archive.getmembers():
        parts = Path(member.name).parts
        if not (member.isfile() or member.isdir()) or ".." in parts or Path(member.name).is_absolute():
            raise tarfile.ExtractError(f"{member.name} is no file or folder inside of it")
    archive.extractall(place)


def _of_folder(path: Path, name: str) -> list[TraceFile]:
    """The folder as one trace where it is one; otherwise the traces inside, in the order of their names."""
    anchors = sorted(one for one in path.glob(f"*{ANCHOR}") if one.is_file())
    if len(anchors) == 1:
        return [TraceFile("otf2", anchors[0], name)]
    if anchors:
        raise _wrong(Path(name), f"holds {len(anchors)} archives of OTF2")
    if any(next(path.glob(pattern), None) is not None for pattern in _OWN):
        return [TraceFile("folder", path, name)]
    if (reader := readers.folder_reader(path)) is not None:
        return [TraceFile(reader.__name__, path, name)]
    inside = [trace for file in _files(path, name) if (trace := _recognised(file, path, name)) is not None]
    if not inside:
        raise _wrong(Path(name), "holds no trace")
    return inside


def _files(path: Path, name: str) -> Iterator[Path]:
    """What a folder holds, by natural order: rank-2 before rank-10. Folders that are a trace come whole."""
    count = 0
    for folder, inside, files in os.walk(path):
        place = Path(folder)
        inside.sort(key=_natural)
        whole = [one for one in inside if _is_whole(place / one)]
        inside[:] = [one for one in inside if one not in whole and not one.startswith(".")]
        count += len(files) + len(whole)
        if count > _MOST_FILES:
            raise _wrong(Path(name), f"holds more than {_MOST_FILES} files")
        yield from (place / one for one in sorted([*whole, *files], key=_natural))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _is_whole(folder: Path) -> bool:
    return next(folder.glob(f"*{ANCHOR}"), None) is not None or readers.folder_reader(folder) is not None


def _recognised(file: Path, inside: Path, name: str) -> TraceFile | None:
    shown = f"{name.rstrip('/')}/{file.relative_to(inside)}"
    if file.is_dir():
        return _of_folder(file, shown)[0]
    if file.name.startswith(".") or not file.is_file():
        return None
    start = _start(file)
    if not start or (start.lstrip()[:1] in (b"{", b"[") and not _is_json_trace(start)):
        return None
    format_ = _of_file(file, start)
    return None if format_ is None else TraceFile(format_, file, shown)


def _is_json_trace(start: bytes) -> bool:
    """Whether JSON in a folder of many files is a trace, and not a configuration beside it."""
    return (
        readers.reader_of(start) is not None
        or b'"traceEvents"' in start
        or re.search(rb'"ph"\s*:', start) is not None
        or b'"schemaVersion"' in start
    )


def _wrong(path: Path, what: str) -> UsageError:
    others = ", ".join(reader.WRITTEN_BY for reader in readers.readers())
    hint = f"give Kineto or Chrome JSON (also .gz), Perfetto, OTF2, {others}, or a trace of elbowroom"
    return UsageError(what, field="trace", value=str(path), hint=hint)


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
        continued=None
        if all(part.continued is None for part in parts)
        else np.concatenate([~part.counts for part in parts]),
        ordered=all(part.ordered for part in parts),  # lanes of a file follow those of the one before
        multiprocessors=next((one.multiprocessors for one in parts if one.multiprocessors), None),
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
