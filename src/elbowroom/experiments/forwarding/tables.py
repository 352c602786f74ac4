"""The table of a run of `forwarding`."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.common.sentences import size_text
from elbowroom.experiments.forwarding.rows import TreeRow, rows
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number
from elbowroom.results.result import Kept, PointResult


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:  # noqa: ARG001
    """A line for each kernel, number of cores, size and tree."""
    table = rows(results)
    if not table:
        return ()
    modelled = any(row.expected is not None for row in table)
    stored = sum(row.item.facts.get("stored", 0.0) + row.item.facts.get("bypassed", 0.0) for row in table)
    below = [
        "copies: bytes that the rank forwards over bytes that it receives; passing: both together; lost: "
        "computation lost during one broadcast."
    ]
    if stored:
        below.append(
            f"{stored:.0f} broadcasts came before their receive was posted, and were stored or bypassed."
        )
    names = ("copies", "comp kept", "comm kept", "passing (MB/s)", "lost (us)", *["model"] * modelled)
    return (
        TextTable(
            title="Computation on a forwarding rank (Swartvagher 2022, 4.4.3)",
            columns=("kernel", "n", "size", "tree", *names),
            rows=tuple(_cells(row, modelled) for row in table),
            left=(0, 3),
            below=tuple(below),
        ),
    )


def _cells(row: TreeRow, modelled: bool) -> tuple[str, ...]:
    return (
        row.name,
        str(row.item.n),
        size_text(row.item.size),
        row.tree,
        number(row.copies, 3),
        _kept(row.kept),
        _kept(row.item.comm.kept),
        "-" if row.passing is None else number(row.passing, 4),
        "-" if row.lost is None else number(row.lost.value, 3),
        *["-" if row.expected is None else f"{row.expected:.2f}"] * modelled,
    )


def _kept(kept: Kept | None) -> str:
    return "-" if kept is None else f"{kept.value:.2f}"
