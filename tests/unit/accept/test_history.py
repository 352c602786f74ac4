"""Nodes over months."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elbowroom.accept.allocated_site import SitePlan
from elbowroom.accept.history import (
    NodeValue,
    changes_of,
    history_of,
    read_history,
    write_values,
)
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.errors import UsageError
from measured_nodes import AnsweringNodes, measured

FIRST = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def history(nodes: int, runs: int, seed: int = 1) -> list[NodeValue]:
    """Healthy values of two quantities, a run a week."""
    random = np.random.default_rng(seed)
    return [
        NodeValue(
            date=FIRST + datetime.timedelta(weeks=run),
            node=f"n{node}",
            quantity=quantity,
            unit="MB/s",
            value=float(1000.0 * np.exp(random.normal(0.0, 0.01))),
            values=10,
        )
        for run in range(runs)
        for node in range(nodes)
        for quantity in ("memory", "bandwidth")
    ]


def changed(rows: list[NodeValue], node: str | None, week: int, factor: float) -> list[NodeValue]:
    date = FIRST + datetime.timedelta(weeks=week)
    return [
        NodeValue(
            **{**{name: getattr(row, name) for name in row.__struct_fields__}, "value": row.value * factor}
        )
        if row.date >= date and row.quantity == "memory" and node in (None, row.node)
        else row
        for row in rows
    ]


def test_a_node_that_became_slower_is_found_with_the_date() -> None:
    found = changes_of(changed(history(16, 24), "n5", 12, 0.9))
    assert [(one.node, one.quantity) for one in found] == [("n5", "memory")]
    assert found[0].loss == pytest.approx(0.1, abs=0.02)
    assert abs((found[0].date - FIRST).days - 12 * 7) <= 7


def test_a_change_of_all_nodes_changes_none() -> None:
    assert changes_of(changed(history(16, 24), None, 12, 0.8)) == []


def test_healthy_histories_show_no_change() -> None:
    assert sum(bool(changes_of(history(10, 12, seed))) for seed in range(40)) == 0


def test_each_run_leaves_a_row_of_each_node_and_quantity(tmp_path: Path) -> None:
    nodes = tuple(f"n{number}" for number in range(4))
    site, journal = measured(tmp_path / "run", AnsweringNodes(), SitePlan(nodes=nodes))
    site.measure()
    write_values(tmp_path / "run" / "nodes.parquet", journal.lines, nodes, site.names)
    rows = read_history(tmp_path)
    assert len({(row.node, row.quantity) for row in rows}) == len(rows) == 4 * len(QUANTITIES)
    document = history_of(tmp_path, "n2")
    assert (document.nodes, document.runs, document.changes) == (4, 1, ())
    assert {row.node for row in document.rows} == {"n2"}


def test_a_folder_without_runs_another_table_and_an_unknown_node_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no nodes\.parquet"):
        read_history(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"no table")
    with pytest.raises(UsageError, match="is not a table of nodes"):
        read_history(tmp_path)


def write(path: Path, **changes: list[object]) -> None:
    row = {
        "date": [FIRST],
        "node": ["n0"],
        "quantity": ["memory"],
        "unit": ["MB/s"],
        "value": [1.0],
        "values": [10],
    }
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({**row, **changes}), path)


@pytest.mark.parametrize(
    "changes",
    [
        {"value": [float("nan")]},
        {"value": [-1.0]},
        {"value": [None]},
        {"value": ["fast"]},
        {"date": [FIRST.replace(tzinfo=None)]},
        {"date": [0]},
        {"node": [None]},
    ],
    ids=str,
)
def test_a_table_with_values_that_no_run_writes_is_refused(
    changes: dict[str, list[object]], tmp_path: Path
) -> None:
    write(tmp_path / "nodes.parquet", **changes)
    with pytest.raises(UsageError, match="is not a table of nodes"):
        read_history(tmp_path)


def test_a_run_that_was_copied_counts_once(tmp_path: Path) -> None:
    for folder in ("run", "copy"):
        write(tmp_path / folder / "nodes.parquet")
    assert len(read_history(tmp_path)) == 1


def test_runs_in_which_other_programs_used_the_cores_show_no_change() -> None:
    rows = changed(history(16, 24), "n5", 12, 0.9)
    disturbed = [
        NodeValue(date=date, node="n0", quantity="waiting", unit="share", value=0.4, values=10)
        for date in {row.date for row in rows}
    ]
    assert changes_of(rows + disturbed) == []
