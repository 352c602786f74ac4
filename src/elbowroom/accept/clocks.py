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
APART_DISTURBED = 1.0
"""The same where other programs use the cores of all nodes: barriers then end when they leave a core."""
THIRDS = 3
FEWEST_ROUNDS = 6
"""Of which the first and the last third show a drift."""
FEWEST_SIDE = 3
"""Rounds on each side of a jump."""
STANDS_OUT = 10.0
"""Times the usual distance of a round, which a steady drift does not reach."""
AT = len(PARTS["train"])
"""Place of the time of day in the values of a train."""


def clocks_of(
    lines: Sequence[SiteLine], names: Mapping[str, str], *, disturbed: bool = False
) -> tuple[NodeClock, ...]:
    """Each node's clock against the median node of each barrier train. `names`: of the nodes by what the
    launcher calls them; `disturbed`: other programs use the cores. All nodes of a line were in one job.
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
    known = [
        (name, own) for name, own in zip(names.values(), offsets.T, strict=True) if np.isfinite(own).any()
    ]
    return tuple(_clock(name, own, centres, _apart(disturbed)) for name, own in known)


def _apart(disturbed: bool) -> float:
    return APART_DISTURBED if disturbed else APART


def _clock(name: str, offsets: Floats, times: Floats, apart: float) -> NodeClock:
    offset, jump = round(float(np.nanmedian(offsets)), 6), _jump(offsets, apart)
    drift = None if jump is not None else _drift(offsets, times)
    return NodeClock(name=name, offset=offset, drift=drift, jump=jump)


def _jump(offsets: Floats, apart: float) -> float | None:
    """Seconds by which a clock was set in the run; None where no jump stands out of its scatter. Shape
    (rounds,).
    """
    known = offsets[np.isfinite(offsets)]
    jumps: dict[float, Floats] = {}
    for at in range(FEWEST_SIDE, known.size - FEWEST_SIDE + 1):
        before, since = np.median(known[:at]), np.median(known[at:])
        jumps[float(since - before)] = np.concatenate([known[:at] - before, known[at:] - since])
    jump = max(jumps, key=abs, default=0.0)
    if abs(jump) <= apart or abs(jump) <= STANDS_OUT * float(np.median(np.abs(jumps[jump]))):
        return None
    return round(jump, 6)


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


def clock_notes(clocks: Sequence[NodeClock], *, disturbed: bool = False) -> list[str]:
    """A note on the clocks that are apart, and one on those that were set in the run."""
    least = _apart(disturbed)
    apart = {one.name: abs(one.offset) for one in clocks if abs(one.offset) > least and one.jump is None}
    jumped = {one.name: abs(one.jump) for one in clocks if one.jump is not None}
    return [
        f"The time of day of {plural(len(names), 'node')} {what} by up to {max(names.values()):.3g} s: "
        f"{fold(list(names))}"
        for names, what in ((apart, "differs from the others'"), (jumped, "jumped in the run"))
        if names
    ]
