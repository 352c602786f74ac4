"""Runs of extraneous accesses, as Python sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elbowroom.api.runs import Run
    from elbowroom.experiments.ema_table import Told


def accesses_object(run: Run) -> dict[str, Any]:
    """Floors between caches with their rises, bounds of windows, variances, sides compared, times in us;
    empty for runs without extraneous accesses.
    """
    from elbowroom.experiments.ema_table import table_object

    return table_object(run.points(), run.machine)


def accesses_tables(run: Run) -> tuple[Told, ...]:
    """The tables that `show` prints; none for runs without extraneous accesses."""
    from elbowroom.experiments.ema_table import tables

    return tables(run.points(), run.machine)
