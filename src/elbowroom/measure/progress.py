"""Progress on stderr: a bar with an ETA on a terminal, a line now and then elsewhere.

It is written between two units only: while the probe measures, this process sleeps (no spinner, no thread).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from elbowroom.quantities import duration, plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_PERIOD = 2.0
"""Seconds between two lines where stderr is no terminal, at least a sixtieth of the time spent."""


class Progress:
    """Counts `total` units; `seconds` is the first guess of how long they take, `doing` what is done."""

    def __init__(
        self, total: int, seconds: float, tell: Callable[[str], object], doing: str = "measuring"
    ) -> None:
        self._doing = doing
        self._total = total
        self._seconds = seconds
        self._tell = tell
        self._done = 0
        self._start = self._printed = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        self._start = self._printed = time.monotonic()
        if self._total and sys.stderr.isatty():
            self._bar, self._task = _terminal(self._total)
            self._draw("")
        elif self._total:
            self._tell(f"{self._doing} {self._total} repetitions, about {duration(self._seconds)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, what: str) -> None:
        """One unit more is on the disk."""
        self._done += 1
        if self._bar is not None:
            self._draw(what)
        elif self._is_due() or self._done == self._total:
            self._tell(f"{self._done} of {self._total} repetitions, {duration(self._left())} left")

    def _is_due(self) -> bool:
        """Whether it is time for another line."""
        now = time.monotonic()
        if now - self._printed < max(_PERIOD, (now - self._start) / 60):
            return False
        self._printed = now
        return True

    def _left(self) -> float:
        """Seconds left: the guess at first, more and more what was seen."""
        spent = time.monotonic() - self._start
        share = self._done / self._total
        guess = self._seconds * (1 - share)
        at_this_rate = spent / share * (1 - share) if self._done else guess
        return guess * (1 - share) + at_this_rate * share

    def _draw(self, what: str) -> None:
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, completed=self._done, left=duration(self._left()), what=what[:24])
        self._bar.refresh()


class TimedProgress(Progress):
    """Counts the seconds of a budget that are `spent`: how many units there is time for is unknown."""

    def __init__(
        self, spent: Callable[[], float], budget: float, points: int, tell: Callable[[str], object]
    ) -> None:
        super().__init__(max(1, round(budget)), budget, tell)
        self._spent, self._points, self._units = spent, points, 0

    def __enter__(self) -> TimedProgress:
        if sys.stderr.isatty():
            super().__enter__()
        else:
            self._start = self._printed = time.monotonic()
            self._tell(f"measuring {self._points} points, {duration(self._seconds)} in all")
        return self

    def step(self, what: str) -> None:
        """One unit more is on the disk."""
        self._units += 1
        self._done = min(self._total, int(self._spent()))
        if self._bar is not None:
            self._draw(what)
        elif self._is_due():
            self._tell(f"{plural(self._units, 'repetition')}, at most {duration(self._left())} left")

    def _left(self) -> float:
        return max(0.0, self._seconds - self._spent())


def _terminal(total: int) -> tuple[Bar, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.fields[what]:24}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]} left"),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
    bar.start()
    return bar, bar.add_task("", total=total, left="", what="")
