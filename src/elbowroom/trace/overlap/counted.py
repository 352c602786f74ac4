"""What was counted as computation and communication, what was left out, and both in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elbowroom.trace.overlap.document import Counted, LeftOut
from elbowroom.trace.overlap.events import Events, Flags, Floats, Ints
from elbowroom.trace.overlap.recognition import COMMUNICATION, KINDS, OTHER, WAITING, Recognised
from elbowroom.trace.overlap.slices import Slices
from elbowroom.trace.overlap.verdict import duration

NS = 1e9
MOST_NAMES = 3
_WORDS = {
    "computation": ("computation", "computations"),
    "collective": ("collective", "collectives"),
    "message": ("message", "messages"),
    "copy": ("copy", "copies"),
    "communication": ("other communication", "other communications"),
}
_SHORT = {"unknown": "unknown categories", "wait": "waits", "wait for messages": "waits for messages"}
_SHOWN = ("set-up", "wait for messages", "wait", "input/output", "unknown")
"""Kinds of what was left out that the first line names."""


def count(
    events: Events, recognised: Recognised, cut: Slices
) -> tuple[tuple[Counted, ...], tuple[LeftOut, ...]]:
    """The operations of each kind and their time without what is nested in them, in all. An operation inside
    another one of a kind of communication on its thread is not counted again.
    """
    # Of each kind and class: its number is that of the kind times all classes, and that of the class.
    classes = len(events.classes)
    pair = recognised.kind * np.int32(classes) + events.kind
    size = len(KINDS) * classes
    time = np.bincount(pair if cut.whole else pair[cut.owner], cut.end - cut.start, size).reshape(-1, classes)
    of_pairs = np.bincount(pair, minlength=size).reshape(-1, classes)
    there, all_ = of_pairs > 0, of_pairs.sum(axis=1)
    # Where no event of a thread is inside another one, none is nested.
    inside = np.zeros(0, dtype=np.int64) if cut.whole else _nested(events, recognised)
    if events.continued is not None:
        all_ = all_ - np.bincount(recognised.kind[events.continued], minlength=len(KINDS))
        inside = inside[~events.continued[inside]]
    outer = all_ - np.bincount(recognised.kind[inside], minlength=len(KINDS))
    counted, left = [], []
    for number, (name, side) in enumerate(KINDS.items()):
        if not there[number].any():
            continue
        seconds = float(time[number].sum()) / NS
        if side in (OTHER, WAITING):
            names = _names(events, there[number], time[number], categories=name == "unknown")
            left.append(LeftOut(kind=name, operations=int(all_[number]), seconds=seconds, names=names))
        else:
            operations = (outer if side == COMMUNICATION else all_)[number]
            counted.append(Counted(kind=name, operations=int(operations), seconds=seconds))
    return tuple(counted), tuple(left)


def _nested(events: Events, recognised: Recognised) -> Ints:
    """The communications that are inside another one on a thread, as indices."""
    host = np.array([not lane.device for lane in events.lanes], dtype=bool)[events.lane]
    same = np.flatnonzero(host & (recognised.side == COMMUNICATION))
    if not len(same):
        return same
    order = events.in_order(same)
    lane, start = events.lane[order], events.start[order]
    end = start + events.duration[order]
    apart = lane.astype(np.int64) * (int(end.max()) - int(start.min()) + 1)
    reach = np.maximum.accumulate(end + apart)
    inside = np.concatenate([[False], end[1:] + apart[1:] <= reach[:-1]])
    nested: Ints = order[inside]
    return nested


def _names(events: Events, there: Flags, time: Floats, *, categories: bool) -> tuple[str, ...]:
    """The names with most time of the classes that are there; of unknown categories the categories."""
    texts: dict[str, float] = {}
    for number in np.flatnonzero(there).tolist():
        one = events.classes[number]
        text = one.category if categories else one.name
        texts[text] = texts.get(text, 0.0) + float(time[number])
    return tuple(sorted(texts, key=lambda text: -texts[text])[:MOST_NAMES])


def sentence(counted: Sequence[Counted], left: Sequence[LeftOut]) -> str:
    """`Counted: 3 collectives, 85 copies; 400 computations; apart: set-up 301 ms (MPI_Init).`"""
    communications = [_number(one) for one in counted if one.kind != "computation"]
    computations = [_number(one) for one in counted if one.kind == "computation"]
    parts = [", ".join(communications), *computations]
    apart = [_apart(one) for kind in _SHOWN for one in left if one.kind == kind]
    text = "; ".join(part for part in parts if part)
    return f"Counted: {text or 'nothing'}{'; apart: ' if apart else ''}{', '.join(apart)}."


def _apart(one: LeftOut) -> str:
    examples = ", ".join(map(_short, one.names))
    return f"{_SHORT.get(one.kind, one.kind)} {duration(one.seconds)} ({one.operations:,}: {examples})"


def _number(one: Counted) -> str:
    return f"{one.operations:,} {_WORDS[one.kind][one.operations != 1]}"


def _short(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"
