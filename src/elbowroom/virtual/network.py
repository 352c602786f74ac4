"""A closed network of credits: what streams of memory lines get when each may have only so many under way.

A stream's throughput is its outstanding bytes over its latency (Little's law), at most what its source can
issue. Its latency is that of the idle path plus a waiting time at every resource of its route, which grows
with that resource's utilisation u as delay * u^2 / (1 - u): flat at first, a pole at the capacity, the shape
of the bandwidth-latency curves that Mess measures on real memory (Esmaili-Dokht et al., MICRO 2024). A line
that costs a resource w times the work of a plain one also waits w times.

Nobody shares anything out here: a stream loses because its latency grew.

Waiting grows with rates, and the latency that a stream can bear at a rate falls with it. So the fixed point
is the maximum of a strictly concave function (its gradient is the credits' excess): there is exactly one, and
Newton's method finds it. Units: MB/s, microseconds and bytes (1 MB/s = 1 byte/us).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

LINE = 64
"""Bytes of a memory line."""

RESIDUAL = 1e-12
"""Relative error of a stream's bytes on their way at which the fixed point is found."""

ITERATIONS = 200
OVERSHOOT = 0.3
"""A step may end where the function falls again, but not steeper than this part of how it rose at first."""
ROUNDING = 1e-12
"""Steps of so little of every rate move nothing but rounding errors."""
SMALL = 1e-6
"""Steps of so little of every rate are Newton's last and always taken: rises are then rounding errors."""


Slopes = tuple[list[float], list[list[float]]]
"""Gradient (us) and curvature."""


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

    def idle(self) -> float:
        """About the rate on an idle machine, MB/s: where to begin."""
        return min(self.most, self.credits / self.latency)

    def circulating(self) -> float:
        """Bytes on their way round, at the source and under way."""
        return self.credits

    def bearable(self, rate: float) -> tuple[float, float]:
        """The latency (us) with which it reaches that rate, falling as the rate rises, and its slope."""
        latency = self.credits / rate
        return latency, -latency / rate


def solve(
    streams: Sequence[Stream], resources: Mapping[str, Resource], taken: Mapping[str, float] | None = None
) -> tuple[float, ...]:
    """Throughput of each stream, MB/s: the fixed point, to RESIDUAL. `taken`: what others move over resources
    (MB/s of plain lines) whatever the latency.

    Projected Newton ascent: streams held at their `most` leave the system of equations until the
    others' gain pushes them back. Backtracking keeps every utilisation below 1.
    """
    shared = _Derivatives(streams, resources, taken or {})
    rates = shared.start()
    excess, curvature = shared.slopes(rates)
    for _ in range(ITERATIONS):
        free = [
            k
            for k, stream in enumerate(streams)
            if rates[k] < stream.most or excess[k] < 0  # at its most, and it could use more: it stays
        ]
        if all(abs(excess[k]) * rates[k] <= RESIDUAL * streams[k].circulating() for k in free):
            break
        step = _solve_linear([[curvature[a][b] for b in free] for a in free], [excess[k] for k in free])
        if all(abs(part) <= ROUNDING * rates[k] for k, part in zip(free, step, strict=True)):
            # Near a capacity, waiting has larger rounding errors than RESIDUAL.
            break
        moved = shared.advance(rates, excess, free, step)
        if moved is None:
            # Not a bit further: closer is not to be had in double precision.
            break
        rates, (excess, curvature) = moved
    else:
        raise ArithmeticError("the network of credits has found no fixed point")
    return tuple(rates)


def utilisation(
    streams: Sequence[Stream], rates: Sequence[float], resources: Mapping[str, Resource]
) -> dict[str, float]:
    """Share of each resource's capacity that is in use."""
    return {
        name: sum(stream.route.get(name, 0.0) * rate for stream, rate in zip(streams, rates, strict=True))
        / resource.capacity
        for name, resource in resources.items()
    }


class _Derivatives:
    """The gradient and the curvature (negated Hessian) of the concave function of the rates."""

    def __init__(
        self, streams: Sequence[Stream], resources: Mapping[str, Resource], taken: Mapping[str, float]
    ) -> None:
        self.streams = streams
        names = sorted({name for stream in streams for name in stream.route})
        self.resources = [resources[name] for name in names]
        self.work = [[stream.route.get(name, 0.0) for stream in streams] for name in names]
        self.taken = [taken.get(name, 0.0) for name in names]

    def start(self) -> list[float]:
        """What an idle machine would give, scaled down until no resource is near its capacity."""
        rates = [stream.idle() for stream in self.streams]
        # Of what others leave of each resource.
        most = max(
            (
                sum(w * rate for w, rate in zip(work, rates, strict=True)) / (resource.capacity - taken)
                for work, resource, taken in zip(self.work, self.resources, self.taken, strict=True)
            ),
            default=0.0,
        )
        return [rate * 0.9 / most for rate in rates] if most > 0.9 else rates

    def _used(self, rates: Sequence[float]) -> list[float]:
        return [
            (taken + sum(w * rate for w, rate in zip(work, rates, strict=True))) / resource.capacity
            for work, resource, taken in zip(self.work, self.resources, self.taken, strict=True)
        ]

    def slopes(self, rates: Sequence[float]) -> Slopes:
        """Gradient (us: how much longer the latency might be) and curvature."""
        used = self._used(rates)
        waiting = [resource.waiting(u) for resource, u in zip(self.resources, used, strict=True)]
        growth = [
            resource.delay * (2 * u - u * u) / (1 - u) ** 2 / resource.capacity
            for resource, u in zip(self.resources, used, strict=True)
        ]
        every = range(len(rates))
        bearable = [stream.bearable(rate) for stream, rate in zip(self.streams, rates, strict=True)]
        excess = [
            bearable[k][0]
            - stream.latency
            - sum(work[k] * wait for work, wait in zip(self.work, waiting, strict=True))
            for k, stream in enumerate(self.streams)
        ]
        curvature = [
            [
                (-bearable[a][1] if a == b else 0.0)
                + sum(work[a] * work[b] * rise for work, rise in zip(self.work, growth, strict=True))
                for b in every
            ]
            for a in every
        ]
        return excess, curvature

    def advance(
        self, rates: list[float], excess: Sequence[float], free: Sequence[int], step: Sequence[float]
    ) -> tuple[list[float], Slopes] | None:
        """The longest halved step that stays below the capacities and does not overshoot; None when there is
        none.
        """
        length = 1.0
        while length > 1e-12:
            moved = list(rates)
            for k, change in zip(free, step, strict=True):
                moved[k] = min(self.streams[k].most, rates[k] + length * change)
            if min(moved) > 0 and max(self._used(moved), default=0.0) < 1 and moved != rates:
                slopes = self.slopes(moved)
                way = [new - old for new, old in zip(moved, rates, strict=True)]
                rise = sum(slope * part for slope, part in zip(excess, way, strict=True))
                after = sum(slope * part for slope, part in zip(slopes[0], way, strict=True))
                small = all(abs(part) <= SMALL * rate for part, rate in zip(way, rates, strict=True))
                if small or after >= -OVERSHOOT * rise:
                    return moved, slopes
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
    solution = [0.0] * size
    for i in reversed(range(size)):
        known = sum(rows[i][k] * solution[k] for k in range(i + 1, size))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution
