"""The tiles of matrix products: which of those that libraries use agree with the samples best.

A library chooses them itself and does not tell. Where several explain the samples as well, the others are
named (`GpuVictim.alike`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.least_squares import solve
from elbowroom.models.flow.prior import Prior
from elbowroom.models.gpu.law import Cases, arrays
from elbowroom.models.gpu.part import GpuVictim
from elbowroom.models.gpu.problem import AGAIN, Problem, first_errors, problem_of, refit
from elbowroom.models.gpu.samples import GpuSample

Shape = tuple[int, ...]
Tile = tuple[int, int]

TILES: tuple[Tile, ...] = (
    (128, 256), (128, 128), (256, 128), (64, 128), (128, 64), (64, 256), (256, 64), (192, 128), (256, 256),
)  # fmt: skip
"""Rows and columns of a block's tile, those of NVIDIA's libraries (cublasLtMatmulTile_t); the first ones win
where several explain the samples as well.
"""

ALIKE = 1.0
"""A tile whose fit costs so little more (half a squared standard error) cannot be told from the best one."""

SCREENED = 4
"""Tiles that are closest before anything is fitted to them: only these are tried."""

EVALUATIONS = 40


def tiles_of(shape: Sequence[int], tile: Sequence[int]) -> int:
    """Tiles of a product's result; 0 where they are not known."""
    if len(shape) != 3 or not tile:
        return 0
    return -(-shape[0] // tile[0]) * -(-shape[1] // tile[1])


class _Attempt(NamedTuple):
    problem: Problem
    point: Array
    cost: float


class TileSearch:
    """First one tile for all products, then each product's own."""

    def __init__(self, samples: Sequence[GpuSample], sms: int, before: Prior) -> None:
        self.samples, self.sms, self.before = samples, sms, before
        self.shapes = sorted({item.case.shape for item in samples if item.case.shape})

    def fitted(self) -> tuple[tuple[GpuVictim, ...], Problem, Array]:
        """The victims with their tiles, the samples with them, and the best coordinates."""
        tiles = self._same(TILES[0])
        best = self._attempt(tiles, self.before.starts[:1], EVALUATIONS)
        for tile in self._screened(best.point):
            choice = self._same(tile)
            tried = self._attempt(choice, (best.point,), AGAIN)
            if tried.cost < best.cost - 1e-9:
                best, tiles = tried, choice
        alike: dict[Shape, tuple[Tile, ...]] = {}
        for shape in self.shapes:
            tiles[shape], alike[shape] = self._own(shape, tiles, best.point)
        found = self._attempt(tiles, (best.point, *self.before.starts[::2]), EVALUATIONS)
        return self._victims(tiles, alike), found.problem, refit(found.problem, found.point)

    def _same(self, tile: Tile) -> dict[Shape, Tile]:
        return {shape: tile for shape in self.shapes}  # noqa: C420 - dict.fromkeys loses the types

    def _problem(self, tiles: Mapping[Shape, Tile]) -> Problem:
        return problem_of(self.samples, self._arrays(tiles), self.before)

    def _arrays(self, tiles: Mapping[Shape, Tile]) -> Cases:
        return arrays(
            self.sms,
            [item.case for item in self.samples],
            [float(tiles_of(item.case.shape, tiles.get(item.case.shape, ()))) for item in self.samples],
            [item.traffic for item in self.samples],
        )

    def _attempt(self, tiles: Mapping[Shape, Tile], starts: Sequence[Array], evaluations: int) -> _Attempt:
        """The best fit from these starts."""
        problem = self._problem(tiles)
        error = first_errors(problem)
        tried = [
            solve(problem.predicted, problem.logs, self.before, start, error, evaluations) for start in starts
        ]
        best = min(tried, key=lambda item: item.cost)
        return _Attempt(problem, best.point, best.cost)

    def _cost(self, tiles: Mapping[Shape, Tile], point: Array) -> float:
        """What the samples cost at that point."""
        problem = self._problem(tiles)
        off = (problem.predicted(point[None])[0] - problem.logs) / first_errors(problem)
        return float((np.sqrt(1 + off**2) - 1).sum())

    def _screened(self, point: Array) -> list[Tile]:
        if not self.shapes:
            return []
        return sorted(TILES, key=lambda tile: self._cost(self._same(tile), point))[:SCREENED]

    def _own(self, shape: Shape, tiles: Mapping[Shape, Tile], point: Array) -> tuple[Tile, tuple[Tile, ...]]:
        """The tile of one product, and those that are as good but give another number of tiles."""
        costs = {tile: self._cost({**tiles, shape: tile}, point) for tile in TILES}
        least = min(costs, key=lambda tile: costs[tile])
        chosen = least if costs[least] < costs[tiles[shape]] - ALIKE else tiles[shape]
        count = tiles_of(shape, chosen)
        others = [tile for tile in TILES if costs[tile] < costs[least] + ALIKE]
        return chosen, tuple(tile for tile in others if tiles_of(shape, tile) != count)

    def _victims(
        self, tiles: Mapping[Shape, Tile], alike: Mapping[Shape, tuple[Tile, ...]]
    ) -> tuple[GpuVictim, ...]:
        """Each victim with the median of its rates alone."""
        groups: dict[tuple[str, Shape], list[GpuSample]] = {}
        for item in self.samples:
            groups.setdefault((item.case.victim, item.case.shape), []).append(item)
        return tuple(
            GpuVictim(
                victim=victim,
                shape=shape,
                alone=float(np.median([item.victim_alone for item in group])),
                unit=Counter(item.unit for item in group).most_common(1)[0][0],
                tiles=tiles_of(shape, tiles.get(shape, ())),
                tile=tiles.get(shape, ()),
                traffic=float(np.median([item.traffic for item in group])),
                alike=alike.get(shape, ()),
            )
            for (victim, shape), group in groups.items()
        )
