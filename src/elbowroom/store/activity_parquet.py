"""Tables of a trace's tasks and communications as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from elbowroom.files import write_with
from elbowroom.trace.activity import UNKNOWN, Activity
from elbowroom.trace.columns import FLAGS

TASKS, COMMUNICATIONS = "tasks.parquet", "communications.parquet"


def write_tables(activity: Activity, folder: Path) -> tuple[Path, Path]:
    """Writes `tasks.parquet` (rank, task, name, worker, thread, submitted_ns, ready_ns, start_ns, end_ns) and
    `communications.parquet` (message, from_rank, from_thread, to_rank, to_thread, sent_ns, received_ns, both
    with one offset for the whole job, bytes, tag, flags) into `folder`. What is not known is null.
    """
    paths = folder / TASKS, folder / COMMUNICATIONS
    _write(paths[0], "elbowroom/trace-tasks", _tasks(activity))
    _write(paths[1], "elbowroom/trace-communications", _communications(activity))
    return paths


def _tasks(activity: Activity) -> dict[str, Any]:
    tasks = activity.tasks
    names = [kind.name for kind in activity.job.types]
    threads = np.array([thread.thread for thread in activity.job.threads] or [0])
    return {
        "rank": tasks.rank,
        "task": tasks.task,
        "name": [None if kind == UNKNOWN else names[kind] for kind in tasks.type],
        "worker": _known(tasks.worker),
        "thread": _known(tasks.thread, threads),
        "submitted_ns": _known(tasks.submitted),
        "ready_ns": _known(tasks.ready),
        "start_ns": _known(tasks.start),
        "end_ns": _known(tasks.end),
    }


def _communications(activity: Activity) -> dict[str, Any]:
    every = activity.communications
    job = activity.job
    ranks = np.array([job.ranks[thread.rank].rank for thread in job.threads] or [0])
    threads = np.array([thread.thread for thread in job.threads] or [0])
    return {
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


def _known(values: npt.NDArray[np.int64], names: npt.NDArray[np.int64] | None = None) -> Any:
    import pyarrow

    shown = values if names is None else names[np.maximum(values, 0)]
    return pyarrow.array(shown, mask=values == UNKNOWN)


def _write(path: Path, schema: str, columns: dict[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(columns).replace_schema_metadata({"schema": schema, "version": "1"})
    write_with(path, lambda temporary: pyarrow.parquet.write_table(table, temporary, compression="zstd"))
