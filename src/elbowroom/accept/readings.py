"""What was measured on the nodes of a site: one value for each node, partner, quantity and round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.accept.quantities import SiteQuantity
from elbowroom.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one quantity, shape (m,), in the order of the rounds: of which node, by its number, and
    of a quantity between nodes the partner that it sent to.
    """

    quantity: SiteQuantity
    nodes: Ints
    values: Floats
    partners: Ints | None = None


class SiteReadings(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a site by name, what was measured, and what is known of them: the `switch` of each node,
    shape (n,), and `facts`, one text for each node ("" where it is not known).
    """

    nodes: tuple[str, ...]
    readings: tuple[Readings, ...]
    switches: Ints | None = None
    facts: Mapping[str, tuple[str, ...]] = {}

    @property
    def count(self) -> int:
        """Number of nodes."""
        return len(self.nodes)


def check_site(site: SiteReadings, field: str) -> None:
    """UsageError for two nodes of one name, fewer than three nodes, and values that cannot be."""
    names = site.nodes
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            "names two nodes",
            field=field,
            value=twice,
            hint="give each node its own name; start one probe per node",
        )
    if site.count < FEWEST:
        raise UsageError(
            f"holds {site.count} node{'s' * (site.count != 1)}, and a node is judged by others",
            field=field,
            value=", ".join(names) or None,
            hint=f"measure at least {FEWEST} nodes, or one alone with `elbowroom run quick`",
        )
    if not any(one.values.size for one in site.readings):
        raise UsageError("holds no values", field=field, hint="measure the nodes again")
    for one in site.readings:
        wrong = ~np.isfinite(one.values) | (one.values < 0 if one.quantity.additive else one.values <= 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise UsageError(
                f"{one.quantity.name} of node {names[int(one.nodes[at])]} is not a positive number",
                field=field,
                value=float(one.values[at]),
                hint="a clock jumped, or the log is damaged: measure this node again",
            )


FEWEST = 3
"""Nodes that a judgement needs: the median of two says nothing of either."""


def rows_by(index: Ints, count: int) -> Ints:
    """The positions in `index`, shape (m,), that hold 0, 1 ... `count` - 1: one row each, in their order,
    filled with -1; shape (count, most).
    """
    order = np.argsort(index, kind="stable")
    order = order[index[order] >= 0]
    lengths = np.bincount(index[order], minlength=count)
    starts = np.cumsum(lengths) - lengths
    rows = np.full((count, max(int(lengths.max(initial=0)), 1)), -1)
    owner = index[order]
    rows[owner, np.arange(order.size) - starts[owner]] = order
    return rows


def take(values: Floats, rows: Ints) -> Floats:
    """The values at the positions of `rows_by`, NaN where there is none."""
    return np.where(rows >= 0, values[rows], np.nan) if values.size else np.full(rows.shape, np.nan)


def row_medians(values: Floats) -> Floats:
    """The median of each row without NaN, shape (n,); NaN of a row that has nothing else."""
    ordered = np.sort(values, axis=1)  # NaN goes to the end
    known = np.isfinite(ordered).sum(axis=1)
    at = np.arange(len(ordered))
    middle = (
        ordered[at, np.maximum(known - 1, 0) // 2] + ordered[at, np.minimum(known // 2, ordered.shape[1] - 1)]
    ) / 2
    return np.where(known > 0, middle, np.nan)


def fold(names: Sequence[str]) -> str:
    """Names of nodes as a list that Slurm and ClusterShell read: `n[12,40-43]`; numbers of one width."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        head = name.rstrip("0123456789")
        digits = name[len(head) :]
        if not digits:
            plain.append(name)
            continue
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((head, width), []).append(int(digits))
    parts = list(plain)
    for (head, width), numbers in groups.items():
        parts.append(_folded(head, width, sorted(numbers)))
    return ",".join(parts)


def _folded(head: str, width: int, numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [
        f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
        for first, last in runs
    ]
    single = len(texts) == 1 and "-" not in texts[0]
    return f"{head}{texts[0]}" if single else f"{head}[{','.join(texts)}]"
