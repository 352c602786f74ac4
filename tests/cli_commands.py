"""The commands of the command line, for tests of all of them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from elbowroom.cli.commands import group
from elbowroom.experiments.plans import names

SHELL_COMMANDS = {"test", "lint", "docs", "install"}
"""What ./elbowroom answers itself."""


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each by its words; those of a group behind its name."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())
        else:
            yield name, command


def refusal(words: list[str], *, whole: bool = False) -> str:
    """Why the command line would be refused before anything is done; empty when it parses. `whole`: with all
    words of a command in a group, which pages also name without any.
    """
    if words[0] in SHELL_COMMANDS:
        return ""
    context = click.Context(group, info_name="elbowroom", **group.context_settings)
    if words[0].startswith("-"):
        known = {option for parameter in group.get_params(context) for option in parameter.opts}
        return "" if words[0] in known else f"no option {words[0]}"
    command = group.get_command(context, words[0])
    if command is None:
        return f"no command {words[0]}"
    try:
        parsed = command.make_context(words[0], words[1:], parent=context)
    except click.ClickException as error:
        return error.format_message()
    if whole and isinstance(command, click.Group):
        try:
            if inner := command.commands.get(words[1] if len(words) > 1 else ""):
                parsed = inner.make_context(words[1], words[2:], parent=parsed)
        except click.ClickException as error:
            return error.format_message()
    plan = parsed.params.get("plan")
    if plan is not None and plan != "PLAN" and not plan.endswith(".toml") and plan not in names():
        return f"no plan {plan}"
    return ""
