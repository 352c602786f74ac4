"""A closed network of credits: what streams of memory lines get when each may have only so many under way.

A stream's throughput is its outstanding bytes over its latency (Little's law), at most what its source can
issue. Its latency is that of the idle path plus a waiting time at every resource of its route, which grows
with that resource's utilisation u as delay * u^2 / (1 - u): flat at first, a pole at the capacity, the shape
of the bandwidth-latency curves that Mess measures on real memory (Esmaili-Dokht et al., MICRO 2024). A line
that costs a resource w times the work of a plain one also waits w times.

Nobody shares anything out here: a stream loses because its latency grew.

The fixed point is the maximum of a strictly concave function (its gradient is the credits' excess), so there
is exactly one, and Newton's method finds it. Units: MB/s, microseconds and bytes (1 MB/s = 1 byte/us).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

LINE = 64
"""Bytes of a memory line."""

RESIDUAL = 1e-12
"""Relative error of a stream's credits at which the fixed point is found."""

ITERATIONS = 200


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """Something shared on the way: what it carries at most (MB/s) and its scale of waiting (us)."""

    capacity: float
    delay: float

    def waiting(self, utilisation: float) -> float:
        """Microseconds that a plain line waits."""
        return self.delay * utilisation**2 / (1 - utilisation)


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Alike sources taken together: bytes under way, idle latency (us), most that is issued (MB/s), and the
    work that a line costs at each resource of the route.
    """

    credits: float
    latency: float
    most: float
    route: Mapping[str, float]


def solve(streams: Sequence[Stream], resources: Mapping[str, Resource]) -> tuple[float, ...]:
    """Throughput of each stream, MB/s: the fixed point, to RESIDUAL.

    Projected Newton ascent: streams held at their `most` leave the system of equations until the
    others' gain pushes them back. Backtracking keeps every utilisation below 1.
    """
    shared = _Shared(streams, resources)
    rates = shared.start()
    value = shared.value(rates)
    for _ in range(ITERATIONS):
        excess, curvature = shared.slopes(rates)
        free = [
            k
            for k, stream in enumerate(streams)
            if rates[k] < stream.most or excess[k] < 0  # at its most, and it could use more: it stays
        ]
        if all(abs(excess[k]) * rates[k] <= RESIDUAL * streams[k].credits for k in free):
            return tuple(rates)
        step = _solve_linear([[curvature[a][b] for b in free] for a in free], [excess[k] for k in free])
        moved = shared.advance(rates, value, free, step)
        if moved is None:
            # The function is flat to the last bit: closer is not to be had in double precision.
            return tuple(rates)
        rates, value = moved
    raise ArithmeticError("the network of credits has found no fixed point")


def utilisation(
    streams: Sequence[Stream], rates: Sequence[float], resources: Mapping[str, Resource]
) -> dict[str, float]:
    """Share of each resource's capacity that is in use."""
    return {
        name: sum(stream.route.get(name, 0.0) * rate for stream, rate in zip(streams, rates, strict=True))
        / resource.capacity
        for name, resource in resources.items()
    }


class _Shared:
    """The concave function of the rates, its gradient and its curvature (negated Hessian)."""

    def __init__(self, streams: Sequence[Stream], resources: Mapping[str, Resource]) -> None:
        self.streams = streams
        names = sorted({name for stream in streams for name in stream.route})
        self.resources = [resources[name] for name in names]
        self.work = [[stream.route.get(name, 0.0) for stream in streams] for name in names]

    def start(self) -> list[float]:
        """What an idle machine would give, scaled down until no resource is near its capacity."""
        rates = [min(stream.most, stream.credits / stream.latency) for stream in self.streams]
        most = max(self._used(rates), default=0.0)
        return [rate * 0.9 / most for rate in rates] if most > 0.9 else rates

    def _used(self, rates: Sequence[float]) -> list[float]:
        return [
            sum(w * rate for w, rate in zip(work, rates, strict=True)) / resource.capacity
            for work, resource in zip(self.work, self.resources, strict=True)
        ]

    def value(self, rates: Sequence[float]) -> float:
        """Credits times the logarithm of the rate, less idle latency times rate, less the integral of the
        waiting; minus infinity outside the capacities.
        """
        if min(rates) <= 0:
            return -math.inf
        total = sum(
            stream.credits * math.log(rate) - stream.latency * rate
            for stream, rate in zip(self.streams, rates, strict=True)
        )
        for resource, u in zip(self.resources, self._used(rates), strict=True):
            if u >= 1:
                return -math.inf
            total -= resource.capacity * resource.delay * (-u * u / 2 - u - math.log1p(-u))
        return total

    def slopes(self, rates: Sequence[float]) -> tuple[list[float], list[list[float]]]:
        """Gradient (us: how much longer the latency might be) and curvature."""
        used = self._used(rates)
        waiting = [resource.waiting(u) for resource, u in zip(self.resources, used, strict=True)]
        growth = [
            resource.delay * (2 * u - u * u) / (1 - u) ** 2 / resource.capacity
            for resource, u in zip(self.resources, used, strict=True)
        ]
        every = range(len(rates))
        excess = [
            stream.credits / rates[k]
            - stream.latency
            - sum(work[k] * wait for work, wait in zip(self.work, waiting, strict=True))
            for k, stream in enumerate(self.streams)
        ]
        curvature = [
            [
                (self.streams[a].credits / rates[a] ** 2 if a == b else 0.0)
                + sum(work[a] * work[b] * rise for work, rise in zip(self.work, growth, strict=True))
                for b in every
            ]
            for a in every
        ]
        return excess, curvature

    def advance(
        self, rates: list[float], value: float, free: Sequence[int], step: Sequence[float]
    ) -> tuple[list[float], float] | None:
        """The longest halved step that does not lower the function; None when there is none."""
        length = 1.0
        while length > 1e-12:
            moved = list(rates)
            for k, change in zip(free, step, strict=True):
                moved[k] = min(self.streams[k].most, rates[k] + length * change)
            reached = self.value(moved)
            if reached >= value - 1e-14 * abs(value) and moved != rates:
                return moved, reached
            length /= 2
        return None


def _solve_linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gauss' elimination of a small positive definite system."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    found = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][k] * found[k] for k in range(i + 1, size))
        found[i] = (rows[i][size] - known) / rows[i][i]
    return found
