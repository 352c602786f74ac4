"""The timeline: a merged trace as one HTML file that needs no network.

The file carries its own style, script and data (`timeline_data`); a Content-Security-Policy inside it forbids
any request. Without JavaScript it lists the types of events.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import IO

import numpy as np

from elbowroom.draw import numbers
from elbowroom.draw.html import asset, embed, template
from elbowroom.trace import colours
from elbowroom.trace.columns import BEGIN, TracedJob
from elbowroom.trace.timeline_data import Shown, collect, pack

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
    counts, begun = _of_types(shown)
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
            for kind, pair in zip(job.types, colours.of_types(job, begun, counts), strict=True)
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
        counts=_counts(job, counts, begun),
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
        f"{numbers.number(_length(shown) / 1e6)} ms",
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
    begun = types[shown.events["kind"] == BEGIN]
    return np.bincount(types, minlength=many).tolist(), np.bincount(begun, minlength=many).tolist()


def _counts(job: TracedJob, counts: list[int], begun: list[int]) -> list[tuple[str, str, str, str]]:
    """Type, category, events and begun of each type that has events."""
    return [
        (kind.name, job.category(kind), _number(counts[index]), _number(begun[index]))
        for index, kind in enumerate(job.types)
        if counts[index]
    ]


def _number(value: int) -> str:
    return f"{value:,}"


def _counted(value: int, noun: str) -> str:
    return f"{_number(value)} {noun}{'' if value == 1 else 's'}"
