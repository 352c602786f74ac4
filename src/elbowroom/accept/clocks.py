"""Clocks of nodes: the time of day at which barriers of all nodes end, by each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elbowroom.accept.document import NodeClock
from elbowroom.accept.journal import PARTS, SiteLine
from elbowroom.accept.readings import FEWEST, Floats, fold
from elbowroom.quantities import plural

APART = 0.01
"""Seconds from the median beyond which a clock is noted: barriers on a busy node end milliseconds late."""
THIRDS = 3
FEWEST_ROUNDS = 6
"""Of which the first and the last third show a drift."""
AT = len(PARTS["train"])
"""Place of the time of day in the values of a train."""


def clocks_of(lines: Sequence[SiteLine], names: Mapping[str, str]) -> tuple[NodeClock, ...]:
    """Each node's clock against the median node of each barrier train. `names`: of the nodes by what the
    launcher calls them. All nodes of a line were in one job.
    """
    stamps = [
        {node: row[AT] for node, row in line.values.items() if len(row) > AT}
        for line in lines
        if line.part == "train"
    ]
    rounds = [of_round for of_round in stamps if len(of_round) >= FEWEST]
    if not rounds:
        return ()
    table = np.array([[of_round.get(node) or np.nan for node in names] for of_round in rounds])
    centres = np.nanmedian(table, axis=1)
    offsets = table - centres[:, None]
    return tuple(
        NodeClock(name=name, offset=round(float(np.nanmedian(own)), 6), drift=_drift(own, centres))
        for name, own in zip(names.values(), offsets.T, strict=True)
        if np.isfinite(own).any()
    )


def _drift(offsets: Floats, times: Floats) -> float | None:
    """Parts per million by which a clock is fast; None where too few rounds show it. Shapes (rounds,)."""
    known = np.isfinite(offsets)
    count = int(known.sum())
    if count < FEWEST_ROUNDS:
        return None
    own, at, third = offsets[known], times[known], count // THIRDS
    elapsed = float(np.median(at[-third:]) - np.median(at[:third]))
    change = float(np.median(own[-third:]) - np.median(own[:third]))
    return round(1e6 * change / elapsed, 3) if elapsed > 0 else None


def clock_notes(clocks: Sequence[NodeClock]) -> list[str]:
    """A note on the clocks that are APART."""
    wrong = [one for one in clocks if abs(one.offset) > APART]
    if not wrong:
        return []
    worst = max(abs(one.offset) for one in wrong)
    return [
        f"The time of day of {plural(len(wrong), 'node')} differs from the others' by up to {worst:.3g} s: "
        f"{fold([one.name for one in wrong])}"
    ]
