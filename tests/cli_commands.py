"""The commands of the command line, for tests of all of them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from elbowroom.cli.commands import group


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each by its words; those of a group behind its name."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())
        else:
            yield name, command
