"""OTF2 archives (Score-P, elbowroom): regions, their paradigms and roles, and nonblocking messages of MPI.

otf2-events (lib/events/otf2) reads them as columns, or otf2_library where that is not built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.columns import BEGIN, END
from elbowroom.trace.overlap.events import EventClass, Events, Flags, Floats, Ints, Lane, Small
from elbowroom.trace.overlap.otf2_library import COMPLETE, DONE, ENTER, IRECV, ISEND, LEAVE
from elbowroom.trace.overlap.own import IN_FLIGHT, paired
from elbowroom.trace.overlap.raw_events import RawColumns, RawFile
from elbowroom.trace.overlap.tables import Numbering, check_memory, events

US = 1000.0
LATEST = 2.0**61
"""ns: later times are damage (archive.cpp has the same)."""
RECORDS = 4
"""Numbers of a record: location, kind, time, region or request."""

_PARADIGMS = {4: "mpi", 6: "artificial", 11: "communication", 13: "communication"}
_ROLES = {
    **dict.fromkeys(
        (12, 15, 16, 18, 22, 33), "wait"
    ),  # locks and barriers of OpenMP, waits for tasks, threads
    **dict.fromkeys((23, 24, 25, 26, 28, 29), "communication"),  # collective, point to point, one-sided
    30: "memcpy",
    **dict.fromkeys((17, 21, 31, 32), "artificial"),  # flushes, creation of tasks and threads
    **dict.fromkeys((27, 38), "file_io"),
    **dict.fromkeys((35, 36, 37), "allocate"),
}
_ACCELERATOR = 2
_HOST_CALLS = (5, 23, 19, 18)
"""CUDA, HIP, OpenCL, OpenACC: on the host their calls launch what computes, or wait for it."""


class _Definitions(msgspec.Struct):
    """Regions: number, name, role, paradigm. Locations: number, name, type, process."""

    resolution: int = 1_000_000_000
    regions: list[tuple[int, str, int, int]] = []
    locations: list[tuple[int, str, int, str]] = []
    error: str = ""
    messages: int = 0
    doubt: str = ""


@dataclass(frozen=True, kw_only=True)
class Otf2File(RawFile):
    """What otf2-events wrote of an archive (raw_events.py)."""

    path: Path

    @cached_property
    def _known(self) -> _Definitions:
        return msgspec.convert(self.raw.header, type=_Definitions)

    def classes(self) -> list[tuple[str, str]]:
        """Their names and categories."""
        return [(one.name, one.category) for one in _classes(self._known)]

    def events(self, columns: RawColumns, _steps: object = None) -> Events:
        """The events of these columns, which it changes."""
        start, duration = (_ns(one) for one in (columns.start, columns.duration))
        spans = _ArchiveSpans(columns.kind, columns.lane, start, duration)
        return _assembled(self._known, spans, self.path, columns.continued)


def _ns(us: Floats) -> Ints:
    """In place of `us`."""
    us *= US
    return np.rint(us, out=us).astype(np.int64)


def read_otf2(stream: IO[bytes], path: Path) -> Events:
    """The events that otf2_library writes. UsageError where the archive cannot be read."""
    wrong: dict[str, Any] = {
        "field": "trace",
        "value": str(path),
        "hint": "name the folder, or its traces.otf2",
    }
    try:
        known = msgspec.json.decode(stream.readline(), type=_Definitions)
    except msgspec.DecodeError as error:
        raise UsageError("cannot be read: libotf2 ended early", **wrong) from error
    if known.error:
        raise UsageError(f"cannot be read as OTF2: {known.error}", **wrong)
    data = bytearray()
    while block := stream.read(1 << 22):
        data += block
        check_memory(len(data) // (8 * RECORDS))
    numbers = np.frombuffer(bytes(data[: len(data) // (8 * RECORDS) * 8 * RECORDS]), dtype=np.int64).reshape(
        -1, RECORDS
    )
    done = len(numbers) > 0 and numbers[-1, 1] == DONE
    known.doubt = "" if done and numbers[-1, 3] else "ends early or is damaged"
    return _assembled(known, _paired(known, numbers[:-1] if done else numbers), path)


class _ArchiveSpans(NamedTuple):
    """Regions and messages, ns: `kind` is an index of _classes, `lane` one of _lanes."""

    kind: Ints | Small
    lane: Ints | Small
    start: Ints
    duration: Ints


def _classes(known: _Definitions) -> list[EventClass]:
    """Regions on the host, regions on devices, and messages in flight."""
    classes = [
        EventClass(name=name, category=_category(role, of, device=device))
        for device in (False, True)
        for _, name, role, of in known.regions
    ]
    return [*classes, EventClass(name=IN_FLIGHT, category="message")]


def _assembled(
    known: _Definitions, spans: _ArchiveSpans, path: Path, continued: Flags | None = None
) -> Events:
    """The lanes are the locations, and the messages of each process."""
    ranks = Numbering()
    lanes = [
        Lane(rank=ranks[group], name=name, device=kind == _ACCELERATOR)
        for _, name, kind, group in known.locations
    ]
    lanes += [Lane(rank=rank, name="messages", device=True) for rank in range(len(ranks))]
    doubt = f"{path.name} {known.doubt}: the events before that are analysed"
    return events(
        format="otf2",
        classes=_classes(known),
        lanes=lanes,
        ranks=list(ranks),
        kind=spans.kind,
        lane=spans.lane,
        start=spans.start - (spans.start.min() if len(spans.start) else 0),
        duration=spans.duration,
        continued=continued,
        doubts=(doubt,) if known.doubt else (),
        notes=("a message is in flight from its post to its completion, at most",) if known.messages else (),
    )


def _paired(known: _Definitions, numbers: Ints) -> _ArchiveSpans:
    """Records as spans; sets how many messages there are. Times are from the first record."""
    threads = len(known.locations)
    location = _numbered(numbers[:, 0], [one[0] for one in known.locations])
    region = _numbered(numbers[:, 3], [one[0] for one in known.regions])
    kind = numbers[:, 1]
    good = (location >= 0) & ((region >= 0) | (kind > LEAVE))
    first_time = numbers[0, 2] if len(numbers) else 0
    location, region, kind, numbers = location[good], region[good], kind[good], numbers[good]
    tick = 1e9 / max(known.resolution, 1)
    time: Ints = np.round(((numbers[:, 2] - first_time) * tick).clip(-LATEST, LATEST)).astype(np.int64)
    state = np.full(len(kind), -1, dtype=np.int64)
    state[kind == ENTER], state[kind == LEAVE] = BEGIN, END
    first, last = paired(location, region, state, time)
    sent, completed = _requests(location, kind, numbers[:, 3])
    known.messages = len(sent)
    ranks = Numbering()
    of_threads = np.array([ranks[group] for *_, group in known.locations], dtype=np.int64)
    on_device = np.array([one == _ACCELERATOR for _, _, one, _ in known.locations], dtype=np.int64)
    region = region + on_device[location] * len(known.regions)
    return _ArchiveSpans(
        kind=np.concatenate([region[first], np.full(len(sent), 2 * len(known.regions))]),
        lane=np.concatenate([location[first], threads + of_threads[location[sent]]]),
        start=np.concatenate([time[first], time[sent]]),
        duration=np.concatenate([time[last] - time[first], time[completed] - time[sent]]),
    )


def _category(role: int, paradigm: int, *, device: bool) -> str:
    if paradigm in _PARADIGMS:
        return _PARADIGMS[paradigm]
    if device:
        return _ROLES.get(role, "device")
    if paradigm in _HOST_CALLS:
        return "launch"
    return _ROLES.get(role, "computation" if paradigm == 3 else "")


def _numbered(values: Ints, known: list[int]) -> Ints:
    """Places of numbers in a list; -1 for one that it lacks."""
    if not known:
        return np.full(len(values), -1, dtype=np.int64)
    order = np.argsort(np.array(known, dtype=np.int64), kind="stable")
    ordered = np.array(known, dtype=np.int64)[order]
    at = np.minimum(np.searchsorted(ordered, values), len(known) - 1)
    return np.where(ordered[at] == values, order[at], -1)


def _requests(location: Ints, kind: Ints, request: Ints) -> tuple[Ints, Ints]:
    """Posts of nonblocking messages and their completions, by request."""
    chosen = np.flatnonzero(np.isin(kind, (ISEND, IRECV, COMPLETE)))
    order = chosen[np.lexsort((chosen, request[chosen], location[chosen]))]
    if len(order) < 2:
        return order[:0], order[:0]
    same = (np.diff(location[order]) == 0) & (np.diff(request[order]) == 0)
    pair = np.flatnonzero(same & (kind[order[:-1]] != COMPLETE) & (kind[order[1:]] == COMPLETE))
    return order[pair], order[pair + 1]
