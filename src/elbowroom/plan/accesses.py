"""Extraneous accesses as data: which sizes make a window, how long they take, whether they fit in memory."""

from __future__ import annotations

from itertools import pairwise

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan.point import Extraneous, Point
from elbowroom.plan.reading import Plan
from elbowroom.plan.sizes import format_size

# For the ETA only, on the safe side.
TOUCHED = 6e9  # B/s and core, beyond the caches
EXCHANGE = 5e-6  # s, a message with the barrier before it
WARM_UP = 2.0  # accesses of the largest size before any is timed


def windows(plan: Plan) -> tuple[tuple[int, int], ...]:
    """(first, count) of each window: all sizes of `accesses`, both ends included, `window_sizes` or one more
    or less in each, and every size in one.

    UsageError where the ends, the step and the number of sizes do not fit each other.
    """
    low, high = plan.accesses
    step = plan.access_step
    both = f"{format_size(low)},{format_size(high)}"
    if high < low:
        raise UsageError(
            "the most is less than the least",
            field="accesses",
            value=both,
            mend=f"write {format_size(high).replace(' ', '')},{format_size(low).replace(' ', '')}",
        )
    if high > low and step > high - low:
        raise UsageError(
            "is more than from the least to the most accesses",
            field="access_step",
            value=format_size(step),
            mend=f"give at most {format_size(high - low)}, or accesses that reach farther",
        )
    if high == 0 and plan.who != ("none",):
        raise UsageError(
            "no bytes are accessed", field="accesses", value=both, mend="give a most, for instance 4MB"
        )
    sizes = (high - low) // step + 1
    count = max(1, round(sizes / plan.window_sizes))
    ends = [sizes * number // count for number in range(count + 1)]
    return tuple((low + start * step, end - start) for start, end in pairwise(ends))


def seconds(point: Point) -> float:
    """Seconds that all messages of one repetition take, those with accesses and those without."""
    extraneous = point.extraneous
    if extraneous is None:
        return 0.0
    touched = 0.0 if extraneous.who == "none" else (extraneous.exchanges + WARM_UP) * sum(extraneous.sizes)
    return touched / TOUCHED + 2 * extraneous.count * (extraneous.exchanges + WARM_UP) * EXCHANGE


def check_memory(point: Point, machine: Machine) -> None:
    """UsageError where what is accessed does not fit in the memory of a host."""
    extraneous = point.extraneous
    if extraneous is None or not machine.memory:
        return
    cores = accessing(extraneous, point.n)
    most = extraneous.sizes[-1]
    if cores * most > machine.memory:
        each = f"{cores} cores' accesses" if cores > 1 else "they"
        raise UsageError(
            "larger than memory",
            field="accesses",
            value=format_size(most),
            mend=f"{each} must fit in {format_size(machine.memory)}",
        )


def accessing(extraneous: Extraneous, bystanders: int) -> int:
    """How many cores access at once."""
    return {"none": 0, "both": 2, "bystanders": bystanders}.get(extraneous.who, 1)
