"""The timeline: a merged trace as one HTML file that needs no network.

The file carries its own style, script and data; a Content-Security-Policy inside it forbids any request.
Without JavaScript it lists the types of events.

Types of events have the colours of the curves of the other pages: blues and greens for communication, reds
and oranges for computation.

Numbers of one column stand together, compressed: the page unpacks them into arrays (page/unpack.js).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.draw.html import asset, embed, template
from elbowroom.draw.palette import FAMILIES, ON_DARK, ON_LIGHT
from elbowroom.errors import UsageError
from elbowroom.quantities import number
from elbowroom.trace.columns import (
    BEGIN,
    CLIPPED,
    EVENTS,
    GAPS,
    MESSAGES,
    SET_UP,
    Block,
    Texts,
    TraceColumns,
    TracedJob,
    sets_up,
)

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


COMMUNICATION = ("mpi", "message", "broadcast", "communication", "network", "starpu-mpi")
COMPUTATION = ("task", "computation", "compute", "kernel")
"""Categories whose types are communication, or computation, by their names."""
GREYS = {"light": "#6B7480", "dark": "#9AA4B0"}
"""Of the recorder's own events."""

_OTHERS = ("purple", "sky", "orange", "green")
_SHADES = (0.0, 0.42, -0.34, 0.68)
"""How far a colour goes to white (or to black, below zero) when its family is used up."""


def of_types(job: TracedJob, begins: Sequence[int], events: Sequence[int]) -> list[tuple[str, str]]:
    """Colours of each type on a light and on a dark page. `begins` and `events`: how many of each there are.
    In a category, the frequent types that last get the colours that differ most.
    """
    order = sorted(range(len(job.types)), key=lambda at: (not begins[at], -events[at], at))
    used: dict[str, int] = {}
    colours = {}
    for at in order:
        kind = job.types[at]
        category = SET_UP if sets_up(kind.name) else job.category(kind)
        index = used[category] = used.get(category, -1) + 1
        light, dark = _colour(category, index, ON_LIGHT, "light"), _colour(category, index, ON_DARK, "dark")
        colours[at] = light, dark
    return [colours[at] for at in range(len(job.types))]


def _colour(category: str, index: int, palette: Mapping[str, str], page: str) -> str:
    if category == "trace":
        return GREYS[page]
    family, first = _family(category)
    shade = _SHADES[(first + index // len(family)) % len(_SHADES)]
    return _shaded(palette[family[index % len(family)]], shade)


def _family(category: str) -> tuple[tuple[str, ...], int]:
    """The hues of a category, and the first of their shades: those of neither family begin lighter."""
    if category.lower() in COMMUNICATION:
        return FAMILIES["blue"], 0
    if category.lower() in COMPUTATION:
        return FAMILIES["red"], 0
    return _OTHERS, 1


def _shaded(colour: str, shade: float) -> str:
    target = 255 if shade > 0 else 0
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (target - part) * abs(shade)):02X}" for part in parts)


PACKAGE = "elbowroom.trace"
SCRIPTS = (
    "common.js",
    "unpack.js",
    "build.js",
    "view.js",
    "draw.js",
    "tracks.js",
    "arrows.js",
    "describe.js",
    "statistics.js",
    "search.js",
    "handle.js",
    "start.js",
)
"""In the order in which they use each other."""


def timeline_page(
    stream: IO[bytes],
    title: str,
    *,
    begin_ns: int | None = None,
    end_ns: int | None = None,
    categories: Collection[str] = (),
) -> str:
    """The page of a merged trace, read from its columns (trace.columns), as one HTML document.

    It shows the events of these categories; without, all of them. The columns hold those from `begin_ns` to
    `end_ns`, ns since the job's start, which the page's axis spans. What it leaves out it says. UsageError
    where they are more than a browser shows, MachineError where the stream ends early.
    """
    shown = collect(stream, begin_ns, end_ns, categories)
    places, data, compressed = pack(shown)
    job = shown.job
    counts, begins = _of_types(shown)
    facts = {
        "title": title,
        "events": len(shown.events),
        "first": int(shown.events["time"][0]) if len(shown.events) else 0,
        "from": shown.first,
        "until": shown.last,
        "columns": places,
        "compressed": compressed,
        "categories": job.categories,
        "types": [
            {"name": kind.name, "category": kind.category, "fields": kind.fields, "colours": pair}
            for kind, pair in zip(job.types, of_types(job, begins, counts), strict=True)
        ],
        "ranks": [
            {"rank": rank.rank, "host": rank.host, "there": rank.there, "ended": rank.ended}
            | {"syncs": sum(point.used for point in rank.syncs)}
            for rank in job.ranks
        ],
        "threads": [
            {"rank": t.rank, "thread": t.thread, "tid": t.tid, "name": t.name, "lost": t.lost}
            | {"damage": t.damage}
            for t in job.threads
        ],
        "texts": [text.text for text in job.texts],
        "gaps": [
            [int(gap["thread"]), int(gap["begin"]), int(gap["end"]), int(gap["lost"])] for gap in shown.gaps
        ],
    }
    page: str = template(PACKAGE, "page/timeline.html.j2").render(
        title=title,
        style=asset(PACKAGE, "page/timeline.css"),
        script="".join(asset(PACKAGE, f"page/{name}") for name in SCRIPTS),
        facts=embed(facts),
        data=data,
        summary=_summary(shown),
        notes=_notes(shown, begin_ns, end_ns, categories),
        warnings=job.warnings,
        counts=_counts(job, counts, begins),
    )
    return page


def _summary(shown: Shown) -> str:
    job = shown.job
    there = sum(rank.there for rank in job.ranks)
    hosts = len({rank.host for rank in job.ranks if rank.there})
    lost = sum(thread.lost for thread in job.threads)
    parts = [
        _counted(there, "rank") + (f" on {_counted(hosts, 'host')}" if hosts > 1 else ""),
        _counted(len(job.threads), "thread"),
        _counted(shown.recorded, "event"),
        _counted(len(shown.messages), "message"),
        f"{number(_length(shown) / 1e6)} ms",
    ]
    return " · ".join([*parts, f"{_number(lost)} lost"] if lost else parts)


def _length(shown: Shown) -> float:
    """The time that is shown, ns."""
    times = shown.events["time"]
    first = shown.first if shown.first is not None else int(times[0]) if len(times) else 0
    last = shown.last if shown.last is not None else int(times[-1]) if len(times) else first
    return float(last - first)


def _notes(shown: Shown, begin_ns: int | None, end_ns: int | None, categories: Collection[str]) -> list[str]:
    """What the page does not show."""
    notes = []
    left = shown.left_out
    if begin_ns is not None or end_ns is not None:
        low = "the start" if begin_ns is None else f"{begin_ns / 1e9:.9g} s"
        high = "the end" if end_ns is None else f"{end_ns / 1e9:.9g} s"
        notes.append(
            f"Shown from {low} to {high}: {_counted(left['time'], 'event')} outside are left out, and spans "
            "that reach beyond are cut."
        )
    if left["categories"]:
        notes.append(
            f"Shown are only the categories {', '.join(sorted(categories))}: "
            f"{_counted(left['categories'], 'event')} of other categories are left out."
        )
    if left["messages"]:
        notes.append(
            f"{_counted(left['messages'], 'message')} without an arrow, because one end is not among these "
            "events."
        )
    return notes


def _of_types(shown: Shown) -> tuple[list[int], list[int]]:
    """How many events of each type there are, and how many of them begin something."""
    types, many = shown.events["type"], len(shown.job.types)
    begins = types[shown.events["kind"] == BEGIN]
    return np.bincount(types, minlength=many).tolist(), np.bincount(begins, minlength=many).tolist()


def _counts(job: TracedJob, counts: list[int], begins: list[int]) -> list[tuple[str, str, str, str]]:
    """Type, category, events and begun of each type that has events."""
    return [
        (kind.name, job.category(kind), _number(counts[index]), _number(begins[index]))
        for index, kind in enumerate(job.types)
        if counts[index]
    ]


def _number(value: int) -> str:
    return f"{value:,}"


def _counted(value: int, noun: str) -> str:
    return f"{_number(value)} {noun}{'' if value == 1 else 's'}"
