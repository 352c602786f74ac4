"""The accelerator's model fitted to samples: parameters with 90 % intervals, draws, and errors held out.

As FLOW: bounded least squares on logarithms with a robust loss and weak priors, draws that agree with the
samples (flow/least_squares.py). Beside it every product gets the tiles that its samples agree with best, from
a list of those that libraries use.

The tiles of matrix products: which of those that libraries use agree with the samples best.

A library chooses them itself and does not tell. Where several explain the samples as well, the others are
named (`GpuVictim.alike`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.flow.law import Array
from elbowroom.models.flow.least_squares import linear_at, settle, solve, spread_of
from elbowroom.models.flow.prior import Prior, decode
from elbowroom.models.gpu.case import DeviceCase, check_case
from elbowroom.models.gpu.law import Cases, arrays
from elbowroom.models.gpu.part import FamilyErrors, GpuPart, GpuVictim, MeasuredCase
from elbowroom.models.gpu.problem import (
    AGAIN,
    ALONE,
    TOGETHER,
    Problem,
    family_errors,
    first_errors,
    groups_of,
    kept_of,
    prior,
    problem_of,
    refit,
)
from elbowroom.models.gpu.samples import GpuSample, LinkRate

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
        attempt = self._attempt(tiles, (best.point, *self.before.starts[::2]), EVALUATIONS)
        return self._victims(tiles, alike), attempt.problem, refit(attempt.problem, attempt.point)

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


DRAWS = 48
LEAST_NOISE = 0.002
LEVELS = (0.05, 0.95)
"""Ends of the parameters' 90 % intervals among the draws: at an edge of the law slopes say nothing."""


def fit(
    samples: Sequence[GpuSample],
    sms: int,
    *,
    links: Sequence[LinkRate] = (),
    device: str = "",
    run: str = "",
    origin: str = "measured",
    left_out: dict[str, int] | None = None,
    seed: int = 0,
) -> GpuPart:
    """The model of an accelerator with `sms` SMs; the same seed gives the same draws. `links`: copies between
    host and device that were measured alone.

    UsageError without such links, and without a sample whose victim computes on the accelerator beside
    something.
    """
    samples = _merged(samples)
    if not links and not any(item.case.mover for item in samples):
        raise UsageError(
            "has no case of a kernel beside a copy or beside held SMs",
            field="run",
            hint="measure with: elbowroom run gpu-overlap",
        )
    for item in samples:
        check_case(item.case, sms)
    before, unknown = prior(samples, links)
    rng = np.random.default_rng(seed)
    fitted = _fitted(samples, sms, before, rng) if samples else _believed(before, rng)
    ends = np.quantile(np.concatenate([fitted.best[None], fitted.draws]), LEVELS, axis=0)
    table = np.concatenate([fitted.best[None], ends, fitted.draws])
    values, low, high, *rows = decode(table, before.names).tolist()
    return GpuPart(
        device=device,
        sms=sms,
        names=before.names,
        values=tuple(values),
        low=tuple(low),
        high=tuple(high),
        draws=tuple(tuple(row) for row in rows),
        victims=fitted.victims,
        measured=fitted.measured,
        errors=fitted.errors,
        mover_discrepancy=fitted.mover_discrepancy,
        unknown=unknown,
        notes=_notes(fitted.victims, unknown),
        left_out=left_out or {},
        run=run,
        origin=origin,
    )


class _Posterior(NamedTuple):
    """The best coordinates (P,), draws (D, P), and what samples tell beside."""

    best: Array
    draws: Array
    victims: tuple[GpuVictim, ...] = ()
    measured: tuple[MeasuredCase, ...] = ()
    errors: tuple[FamilyErrors, ...] = ()
    mover_discrepancy: float = LEAST_NOISE


def _believed(before: Prior, rng: np.random.Generator) -> _Posterior:
    """The prior, where links were measured and no kernel."""
    draws = before.centre + before.width * rng.standard_normal((DRAWS, len(before.centre)))
    return _Posterior(before.centre, np.clip(draws, before.low, before.high))


def _fitted(samples: Sequence[GpuSample], sms: int, before: Prior, rng: np.random.Generator) -> _Posterior:
    victims, problem, best = TileSearch(samples, sms, before).fitted()
    spreads = [value for item in problem.samples for value in item.spread if value is not None]
    noise = max(float(np.median(spreads)) if spreads else 0.0, LEAST_NOISE)
    errors = linear_at(problem, best, groups_of(problem), noise=noise)
    spread = rng.standard_normal((DRAWS, len(best))) @ np.linalg.cholesky(errors.covariance).T
    measured = problem.predicted(best[None])[0]
    draws = settle(best + spread, before, problem.predicted, measured, errors.scale, rng)
    law = np.exp(kept_of(problem, best)).tolist()
    return _Posterior(
        best=best,
        draws=draws,
        victims=victims,
        measured=tuple(
            _measured(item, value, errors.noise) for item, value in zip(samples, law, strict=True)
        ),
        errors=family_errors(problem, best),
        mover_discrepancy=_mover_discrepancy(problem, best),
    )


def _merged(samples: Sequence[GpuSample]) -> list[GpuSample]:
    """One sample for each case, the first one."""
    cases: dict[DeviceCase, GpuSample] = {}
    for item in samples:
        cases.setdefault(item.case, item)
    return list(cases.values())


def _measured(item: GpuSample, law: float, noise: float) -> MeasuredCase:
    return MeasuredCase(
        case=item.case,
        kept=item.kept,
        spread=item.spread[0] if item.spread[0] is not None else noise,
        mover_alone=item.mover_alone,
        mover_together=item.mover_together,
        law=law,
    )


def _mover_discrepancy(problem: Problem, best: Array) -> float:
    missed = problem.predicted(best[None])[0] - problem.logs
    return max(spread_of(missed[np.isin(problem.kind, (ALONE, TOGETHER))]), LEAST_NOISE)


def _notes(victims: Sequence[GpuVictim], unknown: Sequence[str]) -> tuple[str, ...]:
    """Where not to trust it, one sentence each."""
    notes = [
        f"{item.victim} {'x'.join(map(str, item.shape))}: tiles of {item.tile[0]}x{item.tile[1]} explain it "
        f"best, and {' or '.join(f'{m}x{n}' for m, n in item.alike)} as well."
        for item in victims
        if item.alike
    ]
    unmeasured = [name for name in unknown if not name.startswith("link_")]
    if unmeasured:
        notes.append(f"Not measured, and as assumed before: {', '.join(unmeasured)}.")
    return tuple(notes)
