"""Levers: a file each here, and those that installed packages declare (docs/reference/extend.md)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom import plugins
from elbowroom.errors import UsageError
from elbowroom.guard.lever import GuardedProgram, Lever

LEVERS: plugins.Registry[Lever] = plugins.Registry.of_modules("levers", "lever", Lever, __name__)


def find_levers(program: GuardedProgram) -> tuple[tuple[Lever, ...], tuple[str, ...]]:
    """The levers to use with a program, those that are named or all that are there, and a sentence on each
    other one. UsageError for a name that is no lever.
    """
    named = program.named
    wanted = LEVERS.all() if named is None else tuple(LEVERS.get(name) for name in named)
    used, notes = [], list(LEVERS.problems())
    for lever in wanted:
        if named is None and lever.only_named:
            notes.append(
                f"{lever.name}: not used, because it may change the program's results; allow it by "
                f"--levers {lever.name}"
            )
        elif (reason := lever.missing(program)) is not None:
            notes.append(f"{lever.name}: not used: {reason}")
        else:
            used.append(lever)
    return tuple(used), tuple(notes)


def check_numbers(levers: Sequence[Lever]) -> None:
    """UsageError where two levers have the same place on the board."""
    places: dict[int, str] = {}
    for lever in levers:
        other = places.setdefault(lever.number, lever.name)
        if other != lever.name:
            raise UsageError(
                f"has the same number on the board as {other}: {lever.number}",
                field="levers",
                value=lever.name,
                hint="give each lever a number of its own",
            )
