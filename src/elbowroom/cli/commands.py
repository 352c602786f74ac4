"""All commands: a module is imported when one of its commands is asked for, so that a start is quick."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

import click

from elbowroom import __version__
from elbowroom.cli.options import Group

MODULES = {
    "doctor": "machines",
    "run": "runs",
    "show": "runs",
    "compare": "comparison",
    "report": "runs",
    "export": "runs",
    "plans": "runs",
    "advise": "advice",
    "calibrate": "calibration",
    "explain": "explanation",
    "list": "runs",
    "machine": "machines",
    "overlap": "overlap",
    "import": "calibration",
    "fit": "calibration",
    "evaluate": "calibration",
    "predict": "prediction",
    "schema": "documentation",
    "simulate": "simulation",
    "help": "documentation",
    "completion": "documentation",
    "manual": "documentation",
    "trace": "traces",
}
"""The module of each command, in the order of a first visit."""


class Commands(Mapping[str, click.Command]):
    """Commands by name. A command is a function of its name, with `_` behind a name that Python has."""

    def __getitem__(self, name: str) -> click.Command:
        module = importlib.import_module(f"elbowroom.cli.{MODULES[name]}")
        command: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


@click.group(cls=Group)
@click.version_option(__version__, "-V", "--version", prog_name="elbowroom")
def group() -> None:
    """How much do computation and communication slow each other down here?

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the machine failed, 2 the request
    cannot be met, 3 measured, but too noisy to trust.
    """


group.commands = Commands()  # type: ignore[assignment]  # nothing is added to it
