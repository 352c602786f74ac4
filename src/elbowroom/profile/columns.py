"""Network intervals, and nodes over time, as Parquet files for other programs.

Intervals: rank, node, peer (null: none), out, bytes, posted_s, completed_s, begin_s, end_s, call (null: of a
rank without a file), exact. Windows: node, begin_s, end_s, sent, received (bytes), ranks (mean).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from elbowroom.files import write_with
from elbowroom.profile.analysis import Analysis, window_edges


def write_intervals(analysis: Analysis, path: Path) -> int:
    """Writes the network intervals, whole or not at all; how many."""
    import pyarrow

    network, events = analysis.network, analysis.profile.events
    names = pyarrow.array(events.names, type=pyarrow.string())
    known = network.event >= 0
    calls = np.zeros(len(known), dtype=np.int32)
    calls[known] = events.call[network.event[known]]
    _write(
        path,
        {
            "rank": network.rank.astype(np.int32),
            "node": network.node.astype(np.int32),
            "peer": pyarrow.array(network.peer.astype(np.int32), mask=network.peer < 0),
            "out": network.out,
            "bytes": network.bytes,
            "posted_s": network.posted,
            "completed_s": network.completed,
            "begin_s": network.begin,
            "end_s": network.end,
            "call": pyarrow.DictionaryArray.from_arrays(pyarrow.array(calls, mask=~known), names),
            "exact": network.exact,
        },
        "elbowroom/profile-intervals",
    )
    return len(network.rank)


def write_windows(analysis: Analysis, path: Path) -> int:
    """Writes each node over time, in the windows of the burstiness, whole or not at all; how many rows."""
    edges = window_edges(analysis.duration)
    nodes = analysis.profile.nodes
    curves = [analysis.node_curve(node, edges) for node in range(nodes)]
    count = len(edges) - 1
    _write(
        path,
        {
            "node": np.repeat(np.arange(nodes, dtype=np.int32), count),
            "begin_s": np.tile(edges[:-1], nodes),
            "end_s": np.tile(edges[1:], nodes),
            "sent": np.concatenate([curve.sent for curve in curves]),
            "received": np.concatenate([curve.received for curve in curves]),
            "ranks": np.concatenate([curve.ranks for curve in curves]),
        },
        "elbowroom/profile-windows",
    )
    return nodes * count


def _write(path: Path, columns: dict[str, Any], schema: str) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(columns).replace_schema_metadata({"schema": schema, "version": "1"})
    write_with(path, lambda temporary: pyarrow.parquet.write_table(table, temporary, compression="zstd"))
