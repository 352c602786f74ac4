"""The events of a timeline page: which of a trace's it shows, and how they are packed into it.

Numbers of one column stand together, compressed: the page unpacks them into arrays (page/unpack.js).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection
from typing import IO, Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.trace.columns import CLIPPED, EVENTS, GAPS, MESSAGES, Block, TraceColumns, TracedJob
from elbowroom.trace.texts import Texts

MOST_EVENTS = 4_000_000
"""A page with so many events has 31 MB and takes 0.7 GB in a browser."""
SMALL = 1 << 16
"""Data from this number of bytes on are compressed."""

_NO_TIME = 1 << 53
"""Times from here on are no whole numbers to a page any more, ns (104 days)."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows: `events` by time, `messages` with both ends among them (`sends` and `receives` are
    their places), `gaps`; how many of each it leaves out, and why. `first` and `last` are the bounds of the
    part of the time, ns since the job's start; None where it is not bounded.
    """

    job: TracedJob
    events: Any
    messages: Any
    sends: Any
    receives: Any
    gaps: Any
    left_out: dict[str, int]
    first: int | None
    last: int | None

    @property
    def recorded(self) -> int:
        """Events without those that stand where the part cuts an interval."""
        return int(np.count_nonzero((self.events["flags"] & CLIPPED) == 0))


def collect(
    stream: IO[bytes], begin_ns: int | None, end_ns: int | None, categories: Collection[str]
) -> Shown:
    """The events of these categories (none: all). The stream holds those from `begin_ns` to `end_ns` since
    the job's start (`trace-reader merge --from --until`).

    UsageError where there are more than MOST_EVENTS of them, a category is not known, or the part is behind
    the trace's end.
    """
    columns = TraceColumns(stream)
    duration = columns.job.duration
    if begin_ns is not None and 0 < duration < begin_ns:
        raise UsageError(
            f"is after the end of the trace, {duration / 1e9:.9g} s",
            field="from",
            value=begin_ns / 1e9,
            hint="give an earlier time",
        )
    wanted = _types(columns.job, categories)
    blocks: dict[str, list[Block]] = {"events": [], "messages": [], "gaps": []}
    left_out = {"time": 0, "categories": 0, "messages": 0}
    kept = inside = 0
    for name, block in columns.blocks():
        if name == "events":
            own = (block["flags"] & CLIPPED) == 0
            inside += int(np.count_nonzero(own))
            chosen = wanted[block["type"]]
            left_out["categories"] += int(np.count_nonzero(own & ~chosen))
            block = block[chosen]
            kept += len(block)
            if kept > MOST_EVENTS:
                raise UsageError(
                    "has more events than a browser can show",
                    field="timeline",
                    value=f"{MOST_EVENTS}, at {int(block['time'][-1]) / 1e9:.6g} s",
                    hint="select a part (--from, --until, --categories), or write a Parquet file",
                )
        blocks[name].append(block)
    events = _joined(blocks["events"], EVENTS)
    messages, sends, receives = _ends(_joined(blocks["messages"], MESSAGES), events)
    if begin_ns is not None or end_ns is not None:
        left_out["time"] = max(sum(thread.kept for thread in columns.job.threads) - inside, 0)
    left_out["messages"] = sum(len(block) for block in blocks["messages"]) - len(messages)
    return Shown(
        job=columns.job,
        events=events,
        messages=messages,
        sends=sends,
        receives=receives,
        gaps=_joined(blocks["gaps"], GAPS),
        left_out=left_out,
        first=begin_ns,
        last=min(end_ns, duration) if end_ns is not None and duration else end_ns,
    )


def _types(job: TracedJob, categories: Collection[str]) -> npt.NDArray[np.bool_]:
    unknown = [name for name in categories if name not in job.categories]
    if unknown:
        raise UsageError(
            "is not a category of this trace",
            field="categories",
            value=unknown[0],
            hint=f"choose among: {', '.join(job.categories)}",
        )
    return np.array([not categories or job.category(kind) in categories for kind in job.types], dtype=bool)


def _joined(blocks: list[Block], kind: np.dtype[np.void]) -> Block:
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=kind)


def _ends(messages: Block, events: Block) -> tuple[Block, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The messages of which both ends are among the events, and the places of these."""
    there = np.flatnonzero(events["message"])
    order = there[np.argsort(events["message"][there], kind="stable")]
    numbers = events["message"][order]
    first = np.searchsorted(numbers, messages["message"], side="left")
    both = np.searchsorted(numbers, messages["message"], side="right") - first == 2
    first = first[both]
    one, other = order[first], order[first + 1]
    # A tachyon's receive comes before its send.
    swapped = events["kind"][one] > events["kind"][other]
    sends, receives = np.where(swapped, other, one), np.where(swapped, one, other)
    by_time = np.argsort(sends, kind="stable")
    return messages[both][by_time], sends[by_time], receives[by_time]


def rounded_up(errors: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Bounds with two digits, never less than they were; -1 stays."""
    bounds = errors.astype(np.float64)
    large = bounds >= 100
    steps = 10 ** (np.floor(np.log10(np.where(large, bounds, 100))) - 1)
    bounds[large] = np.ceil(bounds[large] / steps[large]) * steps[large]
    single = bounds.astype(np.float32)
    return np.where(single < bounds, np.nextafter(single, np.float32(np.inf)), single)


def pack(shown: Shown) -> tuple[list[dict[str, Any]], str, bool]:
    """The columns' names, types and places, all of them as base64, and whether they are compressed."""
    events = shown.events
    times = events["time"]
    if len(times) and (int(times[-1]) >= _NO_TIME or int(times[0]) <= -_NO_TIME):
        raise UsageError(
            "lasts longer than 104 days",
            field="timeline",
            value=f"{int(times[-1]) / 1e9:.6g} s",
            hint="select a part: --from, --until",
        )
    steps = np.diff(times, prepend=times[:1]).astype("<u8")
    columns: list[tuple[str, npt.NDArray[Any]]] = [
        ("step", steps),
        ("first", events["first"]),
        ("second", events["second"]),
        ("small", events["small"]),
        ("error", rounded_up(events["error"]).view("<u4")),
        ("thread", events["thread"]),
        ("text", (Texts(shown.job).of(events) + 1).astype("<u4")),
        ("sequence", events["sequence"]),
        ("send", shown.sends.astype("<u4")),
        ("receive", shown.receives.astype("<u4")),
        ("type", events["type"].astype("<u2")),
        ("kind", events["kind"]),
        ("flags", events["flags"]),
        ("message_flags", shown.messages["flags"]),
    ]
    parts: list[bytes] = []
    places = [_placed(name, np.ascontiguousarray(column), parts) for name, column in columns]
    blob = b"".join(parts)
    compressed = len(blob) > SMALL
    return places, base64.b64encode(zlib.compress(blob, 6) if compressed else blob).decode(), compressed


def _placed(name: str, column: npt.NDArray[Any], parts: list[bytes]) -> dict[str, Any]:
    """Where the bytes of a column are, those of one significance together, so that they compress to a half: a
    number of bytes from the start, or -1 - value where all are alike.
    """
    planes = column.view(np.uint8).reshape(len(column), column.dtype.itemsize).T
    at = sum(len(part) for part in parts)
    places = []
    for plane in planes:
        if len(plane) and plane.min() < plane.max():
            places.append(at)
            parts.append(plane.tobytes())
            at += len(plane)
        else:
            places.append(-1 - (int(plane[0]) if len(plane) else 0))
    return {"name": name, "count": len(column), "planes": places}
