"""Tables of extraneous accesses, 80 columns wide: floors between caches in place of hundreds of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elbowroom.experiments.ema_table import Told


def print_accesses(tables: Sequence[Told]) -> None:
    """A table for each case, what the columns mean, averages and variances."""
    from elbowroom.cli.tables import _say, _table, console
    from elbowroom.experiments.ema_table import COLUMNS, MEANING

    for told in tables:
        _say(told.title, style="bold")
        columns = _table(*((name, "right" if at else "") for at, name in enumerate(COLUMNS)))
        for row in told.rows:
            columns.add_row(*row)
        console().print(columns)
        if told.below:
            _say(told.below)
        print()
    _say(MEANING)
