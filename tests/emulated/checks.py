"""Checks that are run by hand, one after the other: a line for each in a summary, and an exit code."""

from __future__ import annotations

import datetime
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def expect(holds: bool, message: str) -> None:
    """AssertionError with `message` unless it holds."""
    if not holds:
        raise AssertionError(message)


class Checks:
    """Writes PASS or FAIL, the seconds, the name and what was seen of each check to `summary` and stdout."""

    def __init__(self, summary: Path, title: str) -> None:
        self.summary = summary
        self.title = title
        self.passed = 0
        self.failed = 0

    @property
    def code(self) -> int:
        """Exit code: 0 only if every check passed, and there was one."""
        return 0 if self.passed and not self.failed else 1

    def __enter__(self) -> Checks:
        self.summary.write_text("")
        self._say(f"{self.title}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.failed += 1
            self._say(f"FAIL: the checks ended early: {error!r}")
        self._say(f"{self.passed} passed, {self.failed} failed")

    def run(self, name: str, check: Callable[[], str]) -> bool:
        """Runs a check, which returns what was seen; if it fails, it raises one of the errors below."""
        begun = time.monotonic()
        try:
            seen, mark = check(), "PASS"
            self.passed += 1
        except (
            AssertionError,
            subprocess.SubprocessError,
            OSError,
            ValueError,
            KeyError,
            IndexError,
        ) as error:
            seen, mark = str(error) or repr(error), "FAIL"
            self.failed += 1
        first, *more = seen.strip().splitlines() or [""]
        self._say(f"{mark} {time.monotonic() - begun:6.1f} s  {name}: {first}")
        if mark == "FAIL":
            for line in more:
                self._say(f"            {line}")
        return mark == "PASS"

    def _say(self, line: str) -> None:
        print(line, flush=True)
        with self.summary.open("a") as file:
            file.write(f"{line}\n")
