"""Which unit comes next where time is limited: pure decisions from what was measured and how long it took.

First the points that the answer rests on get the repetitions that an interval needs, and up to twice as many
while their intervals are too wide; then every other point, the most informative first. Where there is time
for all without a doubt, all get them together. Then repetitions go where intervals are widest, until all are
narrow enough, every point has as many repetitions as the plan allows, or time is up. Points are measured in
rounds, each in a random order of its own, so that drift and neighbours hit all points alike. The closing
baselines come last, and their time is reserved.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from elbowroom.points.unit import Unit

SAFETY = 1.25
"""A unit is begun where so many times its usual time is left."""
UNKNOWN = 3.0
"""Before anything was measured, a point that the answer does not need is admitted where so many times its
expected time is left: a busy host takes several times as long.
"""
RECENT = 3
"""A unit is expected to take the mean time of so many of its point's last ones."""
UNSOUND = 2
"""A point gets at most so many times the plan's repetitions, where some of them are unsound."""
ANSWER_TIMES = 2
"""Where there may not be time for all points, those that the answer rests on get up to so many times the
repetitions of an interval before others are taken up: one answer is worth more than several hints.
"""
LEVEL = 0.5
"""A round refines the points whose width is at least this share of the widest."""

Widths = Callable[[], Mapping[str, float]]
"""By point, the half width of its interval over the wanted one: below 1 is narrow enough. Points that are
missing have no interval yet.
"""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """`least` repetitions make an interval, `most` are the plan's; `refine`: whether to stop at narrow
    intervals.
    """

    least: int
    most: int
    refine: bool = False


class Agenda:
    """The units of one group, chosen one by one."""

    def __init__(
        self,
        points: Sequence[str],
        limits: Limits,
        *,
        seconds: Mapping[str, float],
        widths: Widths,
        first: int = 1,
        closing: Sequence[Unit] = (),
        seed: int = 0,
        reverse: bool = False,
    ) -> None:
        """`points`: ids, the most informative first; `seconds`: expected for one repetition of each; `first`:
        how many of the points the answer needs, which are never left out for others; `closing`: units of the
        end, of which those whose point was measured are asked for.
        """
        self.points = tuple(points)
        self._limits = limits
        self._first = max(1, first)
        self._expected = dict(seconds)
        self._widths = widths
        self._closing = deque(closing)
        self._seed, self._reverse = seed, reverse
        self._next = dict.fromkeys(points, 0)
        self._sound = dict.fromkeys(points, 0)
        self._took: dict[str, list[float]] = {point: [] for point in points}
        self._admitted: list[str] = []
        self._given_up: set[str] = set()
        self._round: deque[str] = deque()
        self._rounds = 0
        self._fitted = True
        self._ended = False

    def next(self, left: float) -> Unit | None:
        """The unit to measure now, with `left` seconds for it and all that follows; None: nothing more. Each
        is told by `record` before the next is asked for.
        """
        while not self._ended:
            while self._round:
                point = self._round.popleft()
                reserved = 0.0 if self._lacks_answer(point) else self._closing_seconds()
                fits = SAFETY * self.cost(point) <= left - reserved
                if fits and point not in self._given_up:
                    self._fitted = True
                    return Unit(point=point, repetition=self._next[point])
            # A round of which no unit fitted would be planned again for ever.
            self._ended = not self._fitted
            if not self._ended:
                self._round = deque(self._shuffled(self._plan_round(left)))
                self._fitted = False
        while self._closing:
            unit = self._closing.popleft()
            enough = self._sound[unit.point] >= min(self._limits.least, self._limits.most)
            if enough and SAFETY * self.cost(unit.point) <= left:
                return unit
        return None

    def record(self, unit: Unit, seconds: float | None, *, sound: bool) -> None:
        """A unit has an entry. `seconds`: what another one of its point is expected to take, None where that
        is unknown. An unsound one is repeated with the next number, while time allows.
        """
        if unit.closing:
            if unit in self._closing:
                self._closing.remove(unit)
            return
        self._next[unit.point] = max(self._next[unit.point], unit.repetition + 1)
        self._sound[unit.point] += sound
        if unit.point not in self._admitted:
            self._admitted.append(unit.point)
        if seconds is not None:
            self._took[unit.point].append(seconds)
        if self._next[unit.point] >= UNSOUND * self._limits.most:
            self._given_up.add(unit.point)

    def give_up(self, point: str) -> None:
        """The point is not asked for again."""
        self._given_up.add(point)

    def cost(self, point: str) -> float:
        """Seconds that a repetition of the point is expected to take: as its last ones, or as much longer
        than estimated as the other points took.
        """
        took = self._took[point][-RECENT:]
        if took:
            return sum(took) / len(took)
        return self._expected[point] * self._slowness()

    def left_out(self) -> tuple[str, ...]:
        """Points there was no time for: with fewer sound repetitions than an interval needs, in order."""
        return tuple(
            point
            for point in self.points
            if self._sound[point] < self._limits.least and point not in self._given_up
        )

    def _slowness(self) -> float:
        """How much longer than estimated repetitions take."""
        pairs = [(took[-1], self._expected[point]) for point, took in self._took.items() if took]
        return sum(took for took, _ in pairs) / sum(guess for _, guess in pairs) if pairs else 1.0

    def _closing_seconds(self) -> float:
        return sum(self.cost(unit.point) for unit in self._closing if self._sound[unit.point])

    def _plan_round(self, left: float) -> list[str]:
        left -= self._closing_seconds()
        self._drop(left)
        wanting = self._wanting() or self._uncertain_answer(left)
        main = self.points[self._first - 1]
        if self._lacks_answer(main) and main in wanting and sum(map(self._missing_seconds, wanting)) > left:
            # There is not even time for the controls: a bound without them is worth more than they are.
            return [main]
        if not wanting:
            self._admit(left)
            wanting = self._wanting()
        return wanting or self._refined(left)

    def _wanting(self) -> list[str]:
        """Admitted points without the repetitions of an interval."""
        return [
            point
            for point in self._admitted
            if self._sound[point] < self._limits.least and point not in self._given_up
        ]

    def _lacks_answer(self, point: str) -> bool:
        """Whether the answer rests on the point, and it has too few repetitions for an interval."""
        return point in self.points[: self._first] and self._sound[point] < self._limits.least

    def _uncertain_answer(self, left: float) -> list[str]:
        """The points of the answer whose intervals are too wide, while others are left to be taken up."""
        if not self._limits.refine or len(self._admitted) > self._first:
            return []
        most = min(ANSWER_TIMES * self._limits.least, self._limits.most)
        open_points = [p for p in self._admitted if self._sound[p] < most and p not in self._given_up]
        if not open_points or SAFETY * sum(map(self.cost, open_points)) > left:
            return []
        widths = self._widths()
        return [point for point in open_points if widths.get(point, math.inf) > 1]

    def _missing_seconds(self, point: str) -> float:
        """What the repetitions of the point's interval and its closing baselines still take."""
        missing = max(0, self._limits.least - self._sound[point])
        closing = sum(unit.point == point for unit in self._closing) if not self._sound[point] else 0
        return (missing + closing) * self.cost(point)

    def _drop(self, left: float) -> None:
        """Leaves points out, the least informative first, where there is no time for all admitted ones."""
        wanting = self._wanting()
        while len(wanting) > 1 and wanting[-1] not in self.points[: self._first]:
            last = (SAFETY - 1) * max(map(self.cost, wanting))
            if sum(map(self._missing_seconds, wanting)) + last <= left:
                return
            self._admitted.remove(wanting.pop())

    def _admit(self, left: float) -> None:
        """Takes up as many further points as there is time for, the most informative first."""
        known = any(self._took.values())
        caution = SAFETY if known else UNKNOWN
        others = self.points[self._first :]
        if not known and caution * sum(map(self._missing_seconds, self.points)) > left:
            others = ()
        for number, point in enumerate(self.points):
            if point in self._admitted or point in self._given_up:
                continue
            needed = (SAFETY if number < self._first else caution) * self._missing_seconds(point)
            if number >= self._first and (point not in others or needed > left):
                break
            self._admitted.append(point)
            left -= needed

    def _refined(self, left: float) -> list[str]:
        """The points whose intervals are the widest; where there is no time for all, those that gain most per
        second.
        """
        widths = self._widths()
        open_points = [
            point
            for point in self._admitted
            if self._sound[point] < self._limits.most and point not in self._given_up
        ]
        wide = {point: widths.get(point, math.inf) for point in open_points}
        if self._limits.refine:
            wide = {point: width for point, width in wide.items() if width > 1}
        if not wide:
            return []
        widest = max(wide.values())
        chosen = [point for point in open_points if point in wide and wide[point] >= LEVEL * widest]
        if SAFETY * sum(map(self.cost, chosen)) <= left:
            return chosen
        chosen.sort(key=lambda point: -wide[point] / self.cost(point))
        fitting = []
        for point in chosen:
            if SAFETY * self.cost(point) <= left:
                fitting.append(point)
                left -= SAFETY * self.cost(point)
        return fitting

    def _shuffled(self, points: list[str]) -> list[str]:
        """In a random order of the seed and the round alone, reversed where that was asked for."""
        order = sorted(points, key=self.points.index)
        random.Random(f"{self._seed}/{self._rounds}").shuffle(order)
        self._rounds += 1
        return order[::-1] if self._reverse else order
