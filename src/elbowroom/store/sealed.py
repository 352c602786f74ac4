"""Samples sealed to Parquet: one row per unit, phase and side, with all raw batches (method.md, rule 12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.frames import Frame
from elbowroom.points.payload import SIDES
from elbowroom.points.point import Point
from elbowroom.points.unit import Entry

if TYPE_CHECKING:
    import pyarrow

SCHEMA = "elbowroom/samples-table"
VERSION = 1

_AXES = ("kernel", "n", "size", "comp_node", "comm_node", "comm_core", "metric", "pattern", "cursor", "role")


def table(entries: Iterable[Entry], points: Sequence[Point]) -> pyarrow.Table:
    """An Arrow table of the samples, in the order of measuring.

    `side` is `computation` or `communication`, of an application also `step` and `separator`; `value` is that
    of the phase in `unit`, `batches` the raw samples in the same unit. A unit that failed has one row without
    phase, side and value, so that it is not lost.
    """
    import pyarrow

    known = {point.id: point for point in points}
    rows = [row for entry in entries for row in _rows(entry, known)]
    columns = _schema(pyarrow)
    return pyarrow.Table.from_pylist(rows, schema=columns)


def seal(path: Path, entries: Iterable[Entry], points: Sequence[Point], *, own: bool = False) -> None:
    """Writes the table to `path`, whole or not at all; `own`: into the folder of its run."""
    Frame(table(entries, points)).write(path, own=own)


def _rows(entry: Entry, points: dict[str, Point]) -> Iterable[dict[str, Any]]:
    record = entry.record
    point = points.get(entry.point)
    sides = SIDES if point is None else point.workload.sides
    shared: dict[str, Any] = {name: getattr(point, name) for name in _AXES} if point is not None else {}
    shared |= {
        "point": entry.point,
        "repetition": entry.repetition,
        "closing": entry.closing,
        "unit_status": record.get("status"),
        "reason": record.get("reason", ""),
        "unit_flags": record.get("flags", []),
        "start": record.get("start", 0),
    }
    if not record.get("phases"):
        yield shared
    for phase in record.get("phases", ()):
        timing = {
            "phase": phase.get("phase"),
            "index": phase.get("index"),
            "status": phase.get("status"),
            "flags": phase.get("flags", []),
            "start_ns": phase.get("start_ns"),
            "end_ns": phase.get("end_ns"),
            "measured_s": phase.get("measured_s"),
            "observed": msgspec.json.encode(phase["observed"]).decode() if "observed" in phase else None,
        }
        for key, (value, side) in sides.items():
            if key in phase:
                values = phase[key]
                yield (
                    shared
                    | timing
                    | {
                        "side": side,
                        "value": values.get(value),
                        "unit": values.get("unit"),
                        "batches": values.get("batches", []),
                    }
                )
        for name, stream in phase.get("streams", {}).items():
            row = {"side": name, "value": stream["value"], "unit": stream["unit"], "batches": []}
            yield shared | timing | row
        if not any(key in phase for key in sides):
            yield shared | timing


def _schema(arrow: Any) -> pyarrow.Schema:
    words = arrow.dictionary(arrow.int32(), arrow.string())
    types = {
        "point": words,
        "repetition": arrow.int32(),
        "closing": arrow.bool_(),
        "start": arrow.int32(),
        "index": arrow.int32(),
        "phase": words,
        "side": words,
        "value": arrow.float64(),
        "unit": words,
        "batches": arrow.list_(arrow.float64()),
        "status": words,
        "flags": arrow.list_(arrow.string()),
        "unit_status": words,
        "unit_flags": arrow.list_(arrow.string()),
        "reason": words,
        "measured_s": arrow.float64(),
        "start_ns": arrow.int64(),
        "end_ns": arrow.int64(),
        "kernel": words,
        "n": arrow.int32(),
        "size": arrow.int64(),
        "comp_node": arrow.int32(),
        "comm_node": arrow.int32(),
        "comm_core": arrow.int32(),
        "metric": words,
        "pattern": words,
        "cursor": arrow.int32(),
        "role": words,
        "observed": arrow.string(),
    }
    meta = {"schema": SCHEMA, "version": str(VERSION)}
    return arrow.schema([arrow.field(name, kind) for name, kind in types.items()], metadata=meta)
