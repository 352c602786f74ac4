"""`--dry-run` of commands that start programs: what would be built and started, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from elbowroom.cli.console import print_wrapped
from elbowroom.quantities import duration

if TYPE_CHECKING:
    from elbowroom.launch.planned_starts import PlannedStart, PlannedStarts


def print_builds(builds: Sequence[str]) -> None:
    """What would be built before anything is started."""
    for text in builds:
        print_wrapped(f"to build first: {text}")


def print_planned(planned: PlannedStarts) -> None:
    """Prints what would be built and started, in order."""
    print_builds(planned.builds)
    for start in planned.starts:
        print_wrapped(f"{start.what}: {_extent(start)}", style="bold")
        for command in start.commands:
            # One line, however long: it is there to be copied.
            print(command)
    if not planned.starts:
        print_wrapped("Nothing would be started.")


def _extent(start: PlannedStart) -> str:
    if start.seconds is not None:
        often = "" if start.times == 1 else f"{start.times} times, "
        return f"{often}about {duration(start.seconds)} in all"
    return "as long as it takes" if start.times == 1 else f"{start.times} times, each as long as it takes"
