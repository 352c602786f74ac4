"""The readings of a site from logs of other benchmarks: tables of all pairs, hosts in a table, a log per
node.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from elbowroom.accept.quantities import QUANTITIES, SiteQuantity
from elbowroom.accept.readings import Readings, SiteReadings
from elbowroom.errors import UsageError
from elbowroom.logs.comparison import DURATIONS
from elbowroom.logs.reader import is_log, read_log
from elbowroom.logs.table import LogColumn, Table
from elbowroom.quantities import plural

PAIR = ("src", "dst")
HOSTS = ("host", "node", "hostname")
TOLERANCES = {"rate": 0.02, "duration": 0.08}
"""Of quantities that logs name: durations of messages differ more between healthy nodes than rates."""
HINT = "give the log of a table of all pairs or of hosts, or a folder with a log of each node"

Value = tuple[str, str | None, float]
"""Node, partner, and what was measured."""


def read_site(path: Path) -> SiteReadings:
    """The readings in a log or in the logs of a folder. UsageError where none can be read."""
    files = log_files(path)
    values: dict[SiteQuantity, list[Value]] = {}
    tables = [(file, read_log(file).tables) for file in files]
    shared = Counter(_place(table) for _, items in tables for table in items if _keys(table) == PAIR)
    for file, items in tables:
        node = _node_of(file, path, len(files))
        for table in items:
            suffix = f" of {file.name}" if shared[_place(table)] > 1 else ""
            _collect(values, table, node, suffix)
    if not values:
        raise UsageError("holds no value of a node", field="from", value=str(path), hint=HINT)
    return _site(values, path)


def log_files(path: Path) -> list[Path]:
    """The file, or the logs in a folder and those below it, in the order of their names."""
    if not os.path.isdir(path):  # False for a name that is too long, too
        return [path]
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and not file.name.startswith(".") and is_log(file)
    ]
    if not files:
        raise UsageError("holds no log of a known benchmark", field="from", value=str(path), hint=HINT)
    return files


def _node_of(file: Path, path: Path, files: int) -> str:
    """The node whose log a file is: its folder below the given one, else its name without endings."""
    if files == 1:
        return file.name
    folder = file.parent.relative_to(path)
    return str(folder) if folder.parts else file.name.partition(".")[0]


def _place(table: Table) -> tuple[str, str]:
    return table.benchmark, table.test


def _keys(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns if column.key)


def _measured(table: Table) -> list[LogColumn]:
    """The columns that are rates; durations where there are none. Tables of pairs have both."""
    known = [one for one in table.columns if one.unit and not one.key and not one.text and one.unit != "B"]
    rates = [one for one in known if one.unit.lower() not in DURATIONS]
    return known if _keys(table) == PAIR else rates or known


def _collect(values: dict[SiteQuantity, list[Value]], table: Table, node: str, suffix: str) -> None:
    keys = _keys(table)
    for key, row in table.keyed():
        named = dict(zip(keys, key, strict=True))
        host = next((str(named.pop(name)) for name in HOSTS if name in named), node)
        pair = keys == PAIR
        for column in _measured(table):
            value = row[column.name]
            if not isinstance(value, int | float):
                continue
            if pair:
                quantity = _pair_quantity(column, suffix)
                values.setdefault(quantity, []).append((f"rank{key[0]}", f"rank{key[1]}", float(value)))
            else:
                rest = ", ".join(f"{name} {cell}" for name, cell in named.items())
                quantity = _logged(f"{table.benchmark} {table.test} {rest}".strip(), column)
                values.setdefault(quantity, []).append((host, None, float(value)))


def _pair_quantity(column: LogColumn, suffix: str) -> SiteQuantity:
    known = QUANTITIES.get(column.name)
    duration = column.unit.lower() in DURATIONS
    return SiteQuantity(
        name=f"{column.name}{suffix}",
        unit=column.unit,
        what=f"{column.name} of pairs",
        tolerance=TOLERANCES["duration" if duration else "rate"] if known is None else known.tolerance,
        more_is_better=not duration,
        between=True,
    )


def _logged(name: str, column: LogColumn) -> SiteQuantity:
    duration = column.unit.lower() in DURATIONS
    return SiteQuantity(
        name=f"{name} {column.name}",
        unit=column.unit,
        what=name,
        tolerance=TOLERANCES["duration" if duration else "rate"],
        more_is_better=not duration,
    )


def _site(values: dict[SiteQuantity, list[Value]], path: Path) -> SiteReadings:
    names = _ordered(
        {name for items in values.values() for value in items for name in value[:2] if name is not None}
    )
    number = {name: at for at, name in enumerate(names)}
    readings = []
    for quantity, items in values.items():
        if not any(value[2] for value in items):
            continue  # nothing was moved, or the log rounds what was
        _check_repeats(quantity, items, path)
        partners = None
        if quantity.between:
            partners = np.array([number[str(value[1])] for value in items], dtype=np.int64)
        readings.append(
            Readings(
                quantity=quantity,
                nodes=np.array([number[value[0]] for value in items], dtype=np.int64),
                values=np.array([value[2] for value in items], dtype=np.float64),
                partners=partners,
            )
        )
    return SiteReadings(nodes=tuple(names), readings=tuple(readings))


def _ordered(names: Iterable[str]) -> list[str]:
    """Names by their text and the number at their end."""

    def key(name: str) -> tuple[str, int, str]:
        head = name.rstrip("0123456789")
        return head, int(name[len(head) :] or 0), name

    return sorted(names, key=key)


def _check_repeats(quantity: SiteQuantity, items: Sequence[Value], path: Path) -> None:
    """UsageError where one node has more values than others: two nodes of one name, or two ranks."""
    if quantity.between:
        return
    times = Counter(value[0] for value in items)
    usual = Counter(times.values()).most_common(1)[0][0]
    for node, count in times.items():
        if count > usual and len(times) > 1:
            raise UsageError(
                f"has {plural(count, 'value')} of {quantity.name} for node {node}, and {usual} for others",
                field="from",
                value=str(path),
                hint="two nodes have one name, or two ranks were on one node: give each node its own log",
            )
