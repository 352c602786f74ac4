"""Values of nodes over months: a Parquet table of each run, and the nodes that became slower."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from elbowroom.accept.journal import SiteLine, readings_of
from elbowroom.accept.judgement import disturbance
from elbowroom.accept.losses import as_loss, as_losses, as_share
from elbowroom.accept.quantities import QUANTITIES, WAITING, SiteQuantity
from elbowroom.accept.readings import Floats, row_medians, rows_by, take
from elbowroom.documents import LARGEST
from elbowroom.errors import UsageError

TABLE = "nodes.parquet"
COLUMNS = ("date", "node", "quantity", "unit", "value", "values")
ALPHA = 0.01
"""Chance that any node of a healthy history is said to have changed."""
FEWEST_SIDE = 4
"""Runs on each side of a change."""


class NodeValue(msgspec.Struct, frozen=True, kw_only=True):
    """The median `value` of a quantity of a node on a date (UTC), of so many `values`."""

    date: Annotated[datetime.datetime, msgspec.Meta(tz=True)]
    node: str
    quantity: str
    unit: str
    value: Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
    values: int


class NodeChange(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is worse from a date on: the medians relative to the site's before and since, the loss as
    a share, and the chance of that in any healthy history of so many nodes and quantities.
    """

    node: str
    quantity: str
    date: datetime.datetime
    loss: float
    before: int
    since: int
    chance: float


class HistoryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `accept history`: `nodes` and `runs`, how many; changes, the surest first."""

    schema: str = "elbowroom/accept-history"
    version: int = 1
    nodes: int
    runs: int
    first: str
    last: str
    changes: tuple[NodeChange, ...]
    rows: tuple[NodeValue, ...] = ()


def values_of(
    lines: Sequence[SiteLine], nodes: Sequence[str], names: Sequence[str], date: datetime.datetime
) -> Iterator[NodeValue]:
    """A value for each node and quantity of a run; pairs count for the sender."""
    site = readings_of(lines, nodes, names, "first")
    for one in site.readings:
        rows = take(one.values, rows_by(one.nodes, site.count))
        medians, counts = row_medians(rows), np.isfinite(rows).sum(axis=1)
        for node in np.flatnonzero(counts):
            yield NodeValue(
                date=date,
                node=names[int(node)],
                quantity=one.quantity.name,
                unit=one.quantity.unit,
                value=float(medians[node]),
                values=int(counts[node]),
            )


def write_values(path: Path, lines: Sequence[SiteLine], nodes: Sequence[str], names: Sequence[str]) -> None:
    """Writes the table of a run, one row for each node and quantity."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    now = datetime.datetime.now(datetime.UTC)
    rows = [msgspec.structs.asdict(row) for row in values_of(lines, nodes, names, now)]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(pa.table(columns), temporary)
    temporary.replace(path)


def read_history(folder: Path) -> list[NodeValue]:
    """The values of all runs below a folder, by date. UsageError for none, and for another table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(folder.rglob(TABLE))
    if not files:
        hint = "name the folder in which the folders of runs of `elbowroom accept -o DIR` are"
        raise UsageError(f"holds no {TABLE}", field="folder", value=str(folder), hint=hint)
    rows: dict[tuple[datetime.datetime, str, str], NodeValue] = {}  # once, though a run was copied
    for file in files:
        try:
            table: list[dict[str, Any]] = pq.read_table(file, columns=list(COLUMNS)).to_pylist()
            read = msgspec.convert(table, list[NodeValue])
        except (pa.ArrowException, OSError, msgspec.ValidationError) as error:
            hint = "remove the file, or write it again with `elbowroom accept`"
            raise UsageError(
                f"is not a table of nodes ({error})", field="folder", value=str(file), hint=hint
            ) from error
        rows |= {(row.date, row.node, row.quantity): row for row in read}
    return [rows[key] for key in sorted(rows)]


def changes_of(rows: Sequence[NodeValue], alpha: float = ALPHA) -> list[NodeChange]:
    """The nodes that are worse than the others from a date on. Each value is taken relative to the site's
    median of its run, so that what changes on all nodes changes none. Each split of a series is a rank-sum
    test (Mann and Whitney 1947); the least chance is multiplied by all splits of all series (Bonferroni).
    """
    series = _relative(rows)
    splits = sum(max(0, len(dates) - 2 * FEWEST_SIDE + 1) for dates, _ in series.values())
    changes = []
    for (node, quantity), (dates, losses) in series.items():
        change = _change(node, QUANTITIES.get(quantity), quantity, dates, losses, splits)
        if change is not None and change.chance <= alpha:
            changes.append(change)
    return sorted(changes, key=lambda one: (one.chance, -one.loss))


Series = dict[tuple[str, str], tuple[list[datetime.datetime], Floats]]


def _relative(rows: Sequence[NodeValue]) -> Series:
    """By node and quantity: the dates, and the loss against the site's median of that date. Runs in which
    other programs used the cores have no values of what needs them.
    """
    runs: dict[tuple[datetime.datetime, str], list[NodeValue]] = {}
    for row in rows:
        runs.setdefault((row.date, row.quantity), []).append(row)
    series: dict[tuple[str, str], list[tuple[datetime.datetime, float]]] = {}
    for (date, name), group in sorted(runs.items()):
        quantity = QUANTITIES.get(name)
        values = np.array([row.value for row in group])
        if quantity is None or (not quantity.additive and (values <= 0).any()):
            continue
        waiting = [row.value for row in runs.get((date, WAITING), ())]
        if quantity.needs_cores and waiting and disturbance(float(np.median(waiting))):
            continue
        losses = as_losses(quantity, values)
        losses -= np.median(losses)
        for row, loss in zip(group, losses, strict=True):
            series.setdefault((row.node, name), []).append((date, float(loss)))
    return {
        key: ([date for date, _ in points], np.array([loss for _, loss in points]))
        for key, points in series.items()
    }


def _change(
    node: str,
    quantity: SiteQuantity | None,
    name: str,
    dates: Sequence[datetime.datetime],
    losses: Floats,
    splits: int,
) -> NodeChange | None:
    """The surest change of one series for the worse, beyond what healthy nodes differ by."""
    from scipy.stats import mannwhitneyu

    best: NodeChange | None = None
    for at in range(FEWEST_SIDE, len(losses) - FEWEST_SIDE + 1):
        before, since = losses[:at], losses[at:]
        loss = float(np.median(since) - np.median(before))
        if quantity is None or loss <= as_loss(quantity, quantity.tolerance):
            continue
        chance = min(1.0, float(mannwhitneyu(since, before, alternative="greater").pvalue) * splits)
        if best is None or chance < best.chance:
            best = NodeChange(
                node=node,
                quantity=name,
                date=dates[at],
                loss=as_share(quantity, loss),
                before=len(before),
                since=len(since),
                chance=chance,
            )
    return best


def history_of(folder: Path, node: str | None = None) -> HistoryDocument:
    """The history in a folder; with `node`, its values, too. UsageError for one without any."""
    rows = read_history(folder)
    nodes = sorted({row.node for row in rows})
    if node is not None and node not in nodes:
        hint = f"one of: {', '.join(nodes[:20])}"
        raise UsageError("has no values", field="of", value=node, hint=hint)
    dates = sorted({row.date for row in rows})
    return HistoryDocument(
        nodes=len(nodes),
        runs=len(dates),
        first=f"{dates[0]:%Y-%m-%d}",
        last=f"{dates[-1]:%Y-%m-%d}",
        changes=tuple(changes_of(rows)),
        rows=tuple(row for row in rows if row.node == node),
    )
