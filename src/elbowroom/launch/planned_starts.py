"""Dry runs of commands that start programs: what would be built, what would be started, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from elbowroom.launch import native


class PlannedStart(msgspec.Struct, frozen=True, kw_only=True):
    """Programs that would be started: `what` they do; one command line of each kind; how many `times` in all;
    about how many `seconds` they take together (None: as long as the user's program takes).
    """

    what: str
    commands: tuple[str, ...]
    times: int = 1
    seconds: float | None = None


class PlannedStarts(msgspec.Struct, frozen=True, kw_only=True):
    """What a command that starts programs prints with `--dry-run --json`: what would be built first, and then
    started, in this order.
    """

    schema: str = "elbowroom/planned-starts"
    version: int = 1
    builds: tuple[str, ...]
    starts: tuple[PlannedStart, ...]


def plan_starts(find: Callable[[], Iterable[PlannedStart]]) -> PlannedStarts:
    """The starts that `find` finds without building anything, and what must be built for them."""
    with native.dry_run() as missing:
        starts = tuple(find())
    return PlannedStarts(builds=tuple(missing), starts=starts)
