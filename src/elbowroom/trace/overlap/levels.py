"""What is left of a column without the levels of places, of steps, and of classes within a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import Floats, Ints
from elbowroom.trace.overlap.instances import Instances, Windows, dense

ROUNDS = 100
"""Of conjugate gradients, at most: until the square of the gradient is this part of the first one, or moves
no level by a thousandth of its error.
"""
SETTLED, NEGLIGIBLE = 1e-10, 1e-6
FEWEST_FOR_TREND = 12
"""Instances of a step from which its linear trend is removed, too."""
EPISODES = 2.0
"""Times of communication in a part of a step that has a level and a trend of its own."""
FEWEST_OF_PART, MOST_PARTS = 16, 16
"""Instances of a part, and parts of a step."""
FAR = 2.5
"""Robust standard deviations from which a residual is cut."""
MAD = 1.4826
"""Standard deviation of normal values, in median deviations."""
FLOOR = 0.003
"""Noise of the logarithm of a duration, at least."""
LEAST_RATIO = 0.01
"""Of variances: levels of classes within steps that vary less are not removed."""
FREEDOM = 5.0
"""Instances that the noise of all classes counts as, in the noise of one."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Groups whose levels are removed: `place`; `cell` (a step of a rank) with its trend over `time`;
    `class_cell` (a class in a cell), shrunk by the `ratio` of the variances of these levels and of the noise.
    """

    place: Ints
    cell: Ints
    time: Floats
    class_cell: Ints
    ratio: float = 0.0

    def residual(self, values: Floats, weight: Floats) -> Floats:
        """The values without the levels: weighted least squares, by conjugate gradients."""
        place, cell, class_cell = self.place, self.cell, self.class_cell
        size = _summed(place, weight)
        time = self.time - (_summed(cell, weight * self.time) / _summed(cell, weight))[cell]
        time = np.where((np.bincount(cell) >= FEWEST_FOR_TREND)[cell], time, 0.0)
        cells = int(cell.max()) + 1
        ridge = _summed(class_cell, weight) / np.bincount(class_cell) / (self.ratio or np.inf)

        def apart(column: Floats) -> Floats:
            return column - (_summed(place, weight * column) / size)[place]

        def applied(levels: Floats) -> Floats:
            column = levels[:cells][cell] + levels[cells : 2 * cells][cell] * time
            return apart(column + levels[2 * cells :][class_cell] if self.ratio else column)

        def gradient(rest: Floats) -> Floats:
            parts = [_summed(cell, weight * rest), _summed(cell, weight * rest * time)]
            return np.concatenate([*parts, _summed(class_cell, weight * rest)] if self.ratio else parts)

        scale = [_summed(cell, weight), _summed(cell, weight * time * time)]
        scale += [_summed(class_cell, weight) + ridge] if self.ratio else []
        scale_by = np.maximum(np.concatenate(scale), 1e-12)
        shrink = np.concatenate([np.zeros(2 * cells), ridge]) if self.ratio else np.zeros(2 * cells)
        rest = apart(values.astype(float))
        levels = np.zeros(len(scale_by))
        slope = gradient(rest)
        better = slope / scale_by
        way, size_now = better, dot(slope, better)
        first = size_now
        for _ in range(ROUNDS):
            if size_now <= max(SETTLED * first, NEGLIGIBLE):
                break
            moved = applied(way)
            energy = dot(weight, moved * moved) + dot(shrink, way * way)
            if energy <= SETTLED * size_now:
                break
            step = size_now / energy
            levels, rest = levels + step * way, rest - step * moved
            slope = gradient(rest) - shrink * levels
            better = slope / scale_by
            size_next = dot(slope, better)
            way, size_now = better + size_next / size_now * way, size_next
        return rest

    def remover(self, weight: Floats) -> Callable[[Floats], Floats]:
        """The same, roughly and fast: a function that takes away the levels of places and of cells, once."""
        places, cells = _summed(self.place, weight), _summed(self.cell, weight)

        def without(values: Floats) -> Floats:
            rest = values - (_summed(self.place, weight * values) / places)[self.place]
            return rest - (_summed(self.cell, weight * rest) / cells)[self.cell]

        return without


def dot(one: Floats, other: Floats) -> float:
    """The sum of products on this core: BLAS would wait for threads on others, which may be busy."""
    return float(np.einsum("i,i", one, other))


def cut_far(rest: Floats, weight: Floats) -> Floats:
    """Residuals that are cut at FAR standard deviations."""
    scaled = rest * np.sqrt(weight)
    far = FAR * MAD * float(np.median(np.abs(scaled[scaled != 0]))) if scaled.any() else 0.0
    cut: Floats = np.clip(scaled, -far, far) / np.sqrt(weight)
    return cut


def levels_of(table: Instances, windows: Windows) -> Levels:
    """The levels of a table; places of ranks that have several steps are those of their rank. Steps are cut
    into parts of about EPISODES times of communication, since clocks change within a step.
    """
    several = len(np.unique(table.step)) > 1
    cell, time = windows.cell, windows.since / windows.length[windows.cell]
    parts = np.minimum(windows.episodes() / EPISODES, np.bincount(cell) / FEWEST_OF_PART)
    parts = np.clip(parts, 1, MOST_PARTS).astype(np.int64)[cell]
    # Parts of a step hold as many instances each.
    order = np.lexsort((time, cell))
    count = np.bincount(cell)
    rank = np.empty(len(cell), dtype=np.int64)
    rank[order] = np.arange(len(cell)) - (np.cumsum(count) - count)[cell[order]]
    place = dense(table.place, table.rank) if several else dense(table.place)
    return Levels(
        place=place,
        cell=dense(cell, rank * parts // count[cell]),
        # The usual time of the place: that of the instance depends on how long those before it took.
        time=(_summed(place, time) / np.bincount(place))[place],
        class_cell=dense(table.kernel, windows.cell),
    )


def weights(logs: Floats, kernel: Ints, levels: Levels, tick: float) -> Floats:
    """One over the variance of each instance's logarithm: of its class's residuals, and of the clock's
    `tick` (ns). The duration is that of its place, since longer instances must not weigh more.
    """
    rest = levels.residual(logs, np.ones(len(logs)))
    size = np.bincount(kernel)
    order = np.lexsort((np.abs(rest), kernel))
    begin = np.cumsum(size) - size
    middle = np.abs(rest)[order][begin + size // 2]
    cut = np.minimum(np.abs(rest), 3 * np.maximum(MAD * middle, FLOOR)[kernel])
    of_all = float(np.median(cut**2)) * MAD**2 + FLOOR**2
    of_class = (_summed(kernel, cut**2) + FREEDOM * of_all) / (size + FREEDOM)
    usual = np.exp(_summed(levels.place, logs) / np.bincount(levels.place))[levels.place]
    clock = (tick / usual) ** 2 / 6
    result: Floats = 1 / (of_class[kernel] + clock + FLOOR**2)
    return result


def with_class_levels(levels: Levels, rest: Floats, weight: Floats) -> Levels:
    """The levels with the ratio of variances that the residuals show, by the products of their pairs."""
    group = levels.class_cell
    size = np.bincount(group)
    scaled = cut_far(rest, weight) * np.sqrt(weight)
    squares = _summed(group, scaled**2)
    pairs = float((size * (size - 1.0)).sum())
    shared = float((_summed(group, scaled) ** 2 - squares).sum()) / max(pairs, 1.0)
    noise = float(squares.sum()) / len(rest) - shared
    ratio = shared / noise if noise > 0 and shared > LEAST_RATIO * noise else 0.0
    return dataclasses.replace(levels, ratio=ratio)


def _summed(group: Ints, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64)
