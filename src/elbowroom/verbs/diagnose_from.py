"""The option of `diagnose` that reads a profile of another tool."""

from __future__ import annotations

from typing import Any

from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import Options, option


class FromOptions(Options):
    """A profile of another tool in place of a program."""

    source: str | None = option(
        "Read FILE of another tool: a report of mpiP, JSON of TALP, a .cali file of Caliper.",
        "FILE",
        spelled="--from",
    )


def check_source(given: dict[str, Any]) -> None:
    """UsageError for options that need a program, or a profile of elbowroom."""
    for field, value in given.items():
        if value:
            raise UsageError(
                "is not valid with --from, which reads a file and runs nothing",
                field=field,
                value=None if value is True or field == "command" else value,
                hint="leave it out",
            )
