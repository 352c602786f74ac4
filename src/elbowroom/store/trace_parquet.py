"""A merged trace as one Parquet file: a row for each event, and for each interval without events; its tasks,
communications and data buffers as three more.

Columns: rank, thread, thread_name, category, type, kind; time_ns and error_ns (null: not known) since the
start of the job; until_ns, the end of an interval; small, first and second as recorded, named by the type's
fields in the metadata; value of a counter; text that belongs to the event; of a message its number, the same
at both ends (null: the other end is not in the trace), peer, communicator, tag, bytes and sequence; lost
events of an interval; and the flags of an event (trace.columns.FLAGS).

Rows are in order of time but for kind `lost` (events are missing) and `flush` (the recorder was busy), which
come among the others. The schema's metadata has the job (ranks with their sync points, threads, types) as
JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.files import write_with
from elbowroom.frames import Frame, of_columns
from elbowroom.trace.activity import UNKNOWN, RecordedActivity
from elbowroom.trace.columns import (
    COUNTER,
    FLAGS,
    KINDS,
    RECEIVE,
    SEND,
    Block,
    Texts,
    TraceColumns,
    TracedJob,
)

if TYPE_CHECKING:
    import pyarrow

SCHEMA = "elbowroom/trace-events"
VERSION = 1

ROWS = 1 << 18
"""Rows of a group: what is in memory at a time."""

_ROW_KINDS = (*KINDS, "flush")
_LOST, _FLUSH = _ROW_KINDS.index("lost"), _ROW_KINDS.index("flush")


def write_parquet(stream: IO[bytes], path: Path) -> int:
    """Writes the columns of a merged trace (trace.columns) to `path`, whole or not at all; how many rows.

    MachineError where the stream ends early, or the disk refuses.
    """
    columns = TraceColumns(stream)
    rows = 0

    def write(temporary: Path) -> None:
        nonlocal rows
        rows = _write(columns, temporary)

    write_with(path, write)
    return rows


def _write(columns: TraceColumns, path: Path) -> int:
    import pyarrow
    import pyarrow.parquet

    tables = _Tables(columns.job)
    rows = 0
    with (
        path.open("wb") as file,
        pyarrow.parquet.ParquetWriter(file, tables.schema, compression="zstd") as writer,
    ):
        waiting: list[pyarrow.Table] = []
        for name, block in columns.blocks():
            if name != "messages":
                waiting.append(tables.events(block) if name == "events" else tables.gaps(block))
            if sum(table.num_rows for table in waiting) >= ROWS:
                rows += _put(writer, waiting)
        rows += _put(writer, waiting)
    return rows


def _put(writer: Any, waiting: list[pyarrow.Table]) -> int:
    import pyarrow

    if not waiting:
        return 0
    table = pyarrow.concat_tables(waiting)
    writer.write_table(table, row_group_size=ROWS)
    waiting.clear()
    return int(table.num_rows)


class _Names:
    """Names of many things, each once: as a dictionary of Arrow may have them."""

    def __init__(self, names: list[str]) -> None:
        known = {name: index for index, name in enumerate(dict.fromkeys(names))}
        self.names = list(known)
        self._at = np.array([known[name] for name in names], dtype=np.int32)

    def array(self, indices: npt.NDArray[np.integer]) -> pyarrow.DictionaryArray:
        import pyarrow

        words = pyarrow.array(self.names, type=pyarrow.string())
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(self._at[indices]), words)


class _Tables:
    """Tables of blocks, all with the same schema and dictionaries."""

    def __init__(self, job: TracedJob) -> None:
        self._texts = Texts(job)
        self._text = _Names(self._texts.texts)
        self._ranks = np.array([job.ranks[thread.rank].rank for thread in job.threads], dtype=np.int32)
        self._threads = np.array([thread.thread for thread in job.threads], dtype=np.int32)
        self._thread_names = _Names([thread.name for thread in job.threads])
        self._types = _Names([kind.name for kind in job.types])
        self._categories = _Names([job.category(kind) for kind in job.types])
        self._kinds = _Names(list(_ROW_KINDS))
        self.schema = _schema(job)

    def events(self, block: Block) -> pyarrow.Table:
        """A row for each event."""
        is_message = np.isin(block["kind"], (SEND, RECEIVE))
        text = self._texts.of(block)
        values: dict[str, Any] = self._of_threads(block["thread"])
        values |= {
            "category": self._categories.array(block["type"]),
            "type": self._types.array(block["type"]),
            "kind": self._kinds.array(block["kind"]),
            "time_ns": block["time"],
            "error_ns": (block["error"], block["error"] >= 0),
            "small": block["small"],
            "first": block["first"],
            "second": block["second"],
            "value": (block["first"].astype(np.int64), block["kind"] == COUNTER),
            "text": self._text_of(text),
            "message": (block["message"], is_message & (block["message"] > 0)),
            "peer": ((block["first"] & np.uint64(0xFFFFFFFF)).astype(np.int32), is_message),
            "communicator": ((block["first"] >> np.uint64(32)).astype(np.uint32), is_message),
            "tag": (block["small"].astype(np.int32), is_message),
            "bytes": (block["second"], is_message),
            "sequence": (block["sequence"], is_message & (block["sequence"] > 0)),
        }
        for bit, name in enumerate(FLAGS):
            values[name] = (block["flags"] >> bit & 1).astype(bool)
        return self._table(values, len(block))

    def gaps(self, block: Block) -> pyarrow.Table:
        """A row for each interval without events."""
        values: dict[str, Any] = self._of_threads(block["thread"])
        values |= {
            "kind": self._kinds.array(np.where(block["lost"] > 0, _LOST, _FLUSH)),
            "time_ns": block["begin"],
            "until_ns": block["end"],
            "lost": block["lost"],
        }
        values |= {name: np.zeros(len(block), dtype=bool) for name in FLAGS}
        return self._table(values, len(block))

    def _of_threads(self, threads: npt.NDArray[np.integer]) -> dict[str, Any]:
        return {
            "rank": self._ranks[threads],
            "thread": self._threads[threads],
            "thread_name": self._thread_names.array(threads),
        }

    def _text_of(self, numbers: npt.NDArray[np.int64]) -> Any:
        import pyarrow

        if not self._text.names:
            return None
        words = self._text.array(np.maximum(numbers, 0))
        return pyarrow.compute.if_else(pyarrow.array(numbers >= 0), words.dictionary_decode(), None)

    def _table(self, values: dict[str, Any], rows: int) -> pyarrow.Table:
        import pyarrow

        arrays = []
        for field in self.schema:
            value = values.get(field.name)
            if value is None:
                arrays.append(_no_value(field, rows))
            elif isinstance(value, tuple):
                arrays.append(pyarrow.array(value[0], type=field.type, mask=~value[1]))
            else:
                arrays.append(
                    pyarrow.array(value, type=field.type) if isinstance(value, np.ndarray) else value
                )
        return pyarrow.Table.from_arrays(arrays, schema=self.schema)


def _no_value(field: pyarrow.Field, rows: int) -> pyarrow.Array:
    import pyarrow

    return pyarrow.nulls(rows, type=field.type)


def _schema(job: TracedJob) -> pyarrow.Schema:
    import pyarrow as arrow

    words = arrow.dictionary(arrow.int32(), arrow.string())
    types = {
        "rank": arrow.int32(),
        "thread": arrow.int32(),
        "thread_name": words,
        "category": words,
        "type": words,
        "kind": words,
        "time_ns": arrow.int64(),
        "error_ns": arrow.int64(),
        "until_ns": arrow.int64(),
        "small": arrow.uint32(),
        "first": arrow.uint64(),
        "second": arrow.uint64(),
        "value": arrow.int64(),
        "text": arrow.string(),
        "message": arrow.uint64(),
        "peer": arrow.int32(),
        "communicator": arrow.uint32(),
        "tag": arrow.int32(),
        "bytes": arrow.uint64(),
        "sequence": arrow.uint32(),
        "lost": arrow.uint64(),
        **dict.fromkeys(FLAGS, arrow.bool_()),
    }
    # The texts are a column.
    facts = msgspec.to_builtins(msgspec.structs.replace(job, texts=()))
    meta = {"schema": SCHEMA, "version": str(VERSION), "job": msgspec.json.encode(facts).decode()}
    return arrow.schema([arrow.field(name, kind) for name, kind in types.items()], metadata=meta)


TASKS, COMMUNICATIONS, BUFFERS = "tasks.parquet", "communications.parquet", "buffers.parquet"


def write_tables(activity: RecordedActivity, folder: Path) -> tuple[Path, ...]:
    """Writes `tasks.parquet` (rank, task, name, worker, thread, iteration, submitted_ns, ready_ns, start_ns,
    end_ns) and
    `communications.parquet` (message, from_rank, from_thread, to_rank, to_thread, sent_ns, received_ns, both
    with one offset for the whole job, bytes, tag, flags) into `folder`, and `buffers.parquet` (rank, data,
    thread, registered_ns, unregistered_ns, bytes, uses, copied_bytes): the data that a runtime system got.
    What is not known is null.
    """
    frames = {
        TASKS: task_frame(activity),
        COMMUNICATIONS: communication_frame(activity),
        BUFFERS: buffer_frame(activity),
    }
    for name, frame in frames.items():
        frame.write(folder / name)
    return tuple(folder / name for name in frames)


def task_frame(activity: RecordedActivity) -> Frame:
    """The tasks, a row each: the columns of `tasks.parquet`."""
    tasks = activity.tasks
    names = [kind.name for kind in activity.job.types]
    threads = np.array([thread.thread for thread in activity.job.threads] or [0])
    columns = {
        "rank": tasks.rank,
        "task": tasks.task,
        "name": [None if kind == UNKNOWN else names[kind] for kind in tasks.type],
        "worker": _known(tasks.worker),
        "thread": _known(tasks.thread, threads),
        "iteration": _known(tasks.iteration),
        "submitted_ns": _known(tasks.submitted),
        "ready_ns": _known(tasks.ready),
        "start_ns": _known(tasks.start),
        "end_ns": _known(tasks.end),
    }
    return of_columns(columns, "elbowroom/trace-tasks")


def communication_frame(activity: RecordedActivity) -> Frame:
    """The communications, a row each: the columns of `communications.parquet`."""
    every = activity.communications
    job = activity.job
    ranks = np.array([job.ranks[thread.rank].rank for thread in job.threads] or [0])
    threads = np.array([thread.thread for thread in job.threads] or [0])
    columns = {
        "message": every.message,
        "from_rank": ranks[every.sender],
        "from_thread": threads[every.sender],
        "to_rank": ranks[every.receiver],
        "to_thread": threads[every.receiver],
        "sent_ns": every.sent,
        "received_ns": every.received,
        "sent_one_offset_ns": every.sent_once,
        "received_one_offset_ns": every.received_once,
        "bytes": every.bytes,
        "tag": every.tag,
        **{name: (every.flags >> bit & 1).astype(bool) for bit, name in enumerate(FLAGS)},
    }
    return of_columns(columns, "elbowroom/trace-communications")


def buffer_frame(activity: RecordedActivity) -> Frame:
    """The data buffers that were registered, a row each: the columns of `buffers.parquet`."""
    buffers, job = activity.buffers, activity.job
    ranks = np.array([job.ranks[thread.rank].rank for thread in job.threads] or [0])
    threads = np.array([thread.thread for thread in job.threads] or [0])
    columns = {
        "rank": ranks[buffers.thread],
        "data": _known(buffers.data),
        "thread": threads[buffers.thread],
        "registered_ns": buffers.registered,
        "unregistered_ns": _known(buffers.unregistered),
        "bytes": _known(buffers.bytes),
        "uses": _known(buffers.uses),
        "copied_bytes": _known(buffers.copied),
    }
    return of_columns(columns, "elbowroom/trace-buffers")


def _known(values: npt.NDArray[np.int64], names: npt.NDArray[np.int64] | None = None) -> Any:
    import pyarrow

    shown = values if names is None else names[np.maximum(values, 0)]
    return pyarrow.array(shown, mask=values == UNKNOWN)
