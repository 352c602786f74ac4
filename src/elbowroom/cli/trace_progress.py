"""Progress of the commands of `trace`, and lists of names that they take."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from elbowroom.api.shell import Progress

if TYPE_CHECKING:
    from elbowroom.api.recording_cost import Step
    from elbowroom.api.traces import Tell


def name_list(text: str | None) -> Any:
    """The names of `a,b`; None where there is no text."""
    return None if text is None else [word.strip() for word in text.split(",")]


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Tell | None]:
    """A bar with an ETA on a terminal; None, and nothing to be seen, elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(bar_width=30), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def run_steps() -> Iterator[Step]:
    """The same bar for runs, drawn between them only: it must not disturb what is measured."""
    with contextlib.ExitStack() as stack:
        shown: list[Progress] = []

        def step(done: int, total: int, seconds: float) -> None:
            if not done:
                shown.append(stack.enter_context(Progress(total, seconds, _tell)))
            else:
                shown[0].step("")

        yield step


def _tell(text: str) -> None:
    print(f"elbowroom: {text}", file=sys.stderr, flush=True)
