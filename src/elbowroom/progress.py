"""How far something is that takes long: done of total, the time left, and what is known so far.

A bar on a terminal, a line now and then elsewhere (`heartbeat`). The time left is what was estimated before,
more and more corrected by what was seen. What is shown does not grow without a sentence that says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from elbowroom import heartbeat
from elbowroom.quantities import duration, percent

TRUST = 0.4
"""An estimate counts as if this share of the work had been seen to take as long as estimated."""
SLACK = 0.1
"""The end that is shown moves later by at most this share of all the time, unless a sentence says so."""
UNFORESEEN = 1.5, 3.0
"""A sentence says so, too, where the time left is so many times what is shown, and so many seconds more."""
CAUTION = 1.1
"""An end that was too early is corrected by more than it was too early, not to be corrected again."""
_NEARLY = 0.5
_MENTIONED = 10.0
"""Seconds for which it is said that the end has moved later."""


class TimeLeft:
    """The time left of work in parts that follow one another. Times are those of one clock, in s."""

    def __init__(self, work: float, parts: int, now: float, *, estimated: bool = True) -> None:
        """`work`: how much is to be done: the seconds that it is estimated to take if `estimated`, else in
        any unit; `parts`: how many there are.
        """
        self._work, self._parts, self._estimated = work, max(1, parts), estimated
        self._start = self._last_step = now
        self._done = 0.0
        self._left: float | None = None
        self._earliest = 0.0

    def step(self, work: float, now: float) -> None:
        """So much more of the work is done."""
        self._done = min(self._work, self._done + work)
        self._last_step = now

    def _predicted(self, now: float) -> float | None:
        """Seconds left, without regard to what was shown."""
        trusted = TRUST * self._work if self._estimated else 0.0
        if trusted + self._done <= 0:
            return None
        pace = (trusted + self._last_step - self._start) / (trusted + self._done)
        left = self._work - self._done
        running = left - self._work / self._parts  # when the part that is under way has ended
        return max(left * pace - (now - self._last_step), running * pace, 0.0)

    def look(self, now: float) -> tuple[float | None, float]:
        """Seconds left as they are shown (None: nothing is known yet), and by how many the end has moved
        later unexpectedly, mostly 0.
        """
        predicted = self._predicted(now)
        if predicted is None:
            return None, 0.0
        if self._left is None:
            self._left, self._earliest = predicted, now + predicted
            return predicted, 0.0
        latest = self._earliest + SLACK * (self._earliest - self._start)
        times, more = UNFORESEEN
        if now + predicted > latest or predicted > max(times * self._left, self._left + more):
            before, self._left = self._earliest, CAUTION * predicted
            self._earliest = now + self._left
            return self._left, self._earliest - before
        self._left = min(self._left, predicted)
        self._earliest = min(self._earliest, now + self._left)
        return self._left, 0.0


class Progress(heartbeat.Wait):
    """Counts what is done of `total`, in a `with` block."""

    def __init__(
        self,
        total: int,
        work: float | None = None,
        *,
        what: str = "repetitions",
        doing: str = "measuring",
        tell: Callable[[str], object] | None = None,
        known: Callable[[], str] = lambda: "",
    ) -> None:
        """`work`: seconds that all of it is estimated to take; None: unknown, and in proportion to what is
        counted. `what` is counted (empty: shown in percent). `tell` gets lines where stderr is no terminal;
        without it, they are the heartbeat's. `known`: what is known so far, asked for between two steps only.
        """
        super().__init__(doing)
        self._total, self._what, self._doing, self._tell = total, what, doing, tell
        self._seconds = work
        self._done = 0
        self._more = self._grown = 0.0
        self._ask, self._known = known, ""
        self._known_at = self._known_cost = 0.0
        self._time = self._new_time()

    def _new_time(self) -> TimeLeft:
        work = float(self._total) if self._seconds is None else self._seconds
        return TimeLeft(work, self._total, time.monotonic(), estimated=self._seconds is not None)

    def __enter__(self) -> Progress:
        self._time = self._new_time()
        super().__enter__()
        if self._tell is not None and self._total and not heartbeat.is_live():
            self._tell(self._announcement())
            heartbeat.spoken()
        return self

    def _announcement(self) -> str:
        about = "" if self._seconds is None else f", about {duration(self._seconds)}"
        return f"{self._doing} {self._total} {self._what}{about}"

    def step(self, work: float | None = None, *, count: int = 1) -> None:
        """So many more are done, which were estimated to take `work` seconds (default: their part of all)."""
        now = time.monotonic()
        self._done += count
        part = (1.0 if self._seconds is None else self._seconds / max(1, self._total)) * count
        self._time.step(part if work is None else work, now)
        if heartbeat.is_live():
            self._look_again()
        elif self._tell is not None and (heartbeat.is_due() or self._is_last()):
            self._look_again()
            self._tell(self.text())
            heartbeat.spoken()

    def reach(self, done: int, total: int) -> None:
        """So much is done of a total that is only known now."""
        if total != self._total:
            self._total, self._done = total, 0
            self._time = self._new_time()
        self.step(count=done - self._done)

    def _is_last(self) -> bool:
        return self._done == self._total

    def _look_again(self) -> None:
        """Asks what is known so far, if that takes less than a hundredth of the time."""
        start = time.monotonic()
        if start - self._known_at >= max(heartbeat.PERIOD, 100 * self._known_cost):
            self._known = self._ask()
            self._known_at = time.monotonic()
            self._known_cost = self._known_at - start

    def _left(self) -> str:
        """The time left, and by how much it has grown in all, if it grew just now."""
        now = time.monotonic()
        left, more = self._time.look(now)
        if more:
            self._more, self._grown = self._more + more, now
        if left is None:
            return ""
        text = f"{duration(left)} left" if left > _NEARLY else "nearly done"
        if self._more < 1 or now - self._grown > _MENTIONED:
            return text
        return f"{text}, {duration(self._more)} more than estimated"

    def text(self) -> str:
        """`12 of 40 repetitions, 31 s left; messages lose about 31 % so far`."""
        if not self._total:
            return super().text()
        if self._what:
            done = f"{self._done} of {self._total} {self._what}"
        else:
            done = f"{self._doing}, {percent(self._done / self._total, digits=0)}"
        left = "" if self._done == self._total else self._left()
        return "; ".join(filter(None, (", ".join(filter(None, (done, left))), self._known)))

    def share(self) -> float | None:
        """How much is done."""
        return self._done / self._total if self._total else None


class TimedProgress(Progress):
    """Counts the seconds of a budget that are `spent`: how many units there is time for is unknown."""

    def __init__(
        self,
        spent: Callable[[], float],
        budget: float,
        points: int,
        *,
        tell: Callable[[str], object],
        known: Callable[[], str] = lambda: "",
    ) -> None:
        self._spent, self._budget, self._points = spent, budget, points
        super().__init__(max(1, round(budget)), budget, tell=tell, known=known)

    def _announcement(self) -> str:
        return f"measuring {self._points} points, {duration(self._budget)} in all"

    def text(self) -> str:
        """`31 repetitions, at most 20 s left; messages lose about 31 % so far`."""
        left = max(0.0, self._budget - self._spent())
        text = f"{self._done} {self._what}, at most {duration(left)} left"
        return "; ".join(filter(None, (text, self._known)))

    def _is_last(self) -> bool:
        return False

    def share(self) -> float | None:
        """How much of the time is spent."""
        return min(1.0, self._spent() / self._budget)
