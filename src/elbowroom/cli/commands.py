"""All commands: a module is imported when one of its commands is used, so that a start is quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from elbowroom import __version__
from elbowroom.cli.options import SETTINGS, Group

COMMANDS = {
    "doctor": ("verbs.doctor", "Check this machine, with a hint for each problem."),
    "run": ("verbs.run", "Measure a plan."),
    "study": ("verbs.study", "Measure a paper's figures, and judge its statements."),
    "show": ("verbs.show", "Print a run: verdict, points, findings and notes."),
    "compare": ("verbs.compare", "Compare runs: what changed, and by how much."),
    "report": ("verbs.report", "Write the report of a run, one HTML file."),
    "export": ("verbs.report", "Write samples, results, figures or curves of a run."),
    "plans": ("verbs.show", "List the named plans and the question each answers."),
    "advise": ("verbs.advise", "Advise how to run a job: cores, nodes, messages, overlap."),
    "calibrate": ("verbs.calibrate", "Measure a few chosen points, and fit a model to them."),
    "explain": ("verbs.explain", "Explain where the losses of a run come from."),
    "list": ("verbs.show", "List the runs in a folder."),
    "machine": ("group", "List, show and define virtual machines."),
    "overlap": ("verbs.overlap", "Predict the time of a step that overlaps both sides."),
    "import": ("verbs.fit", "Import curves that another program measured."),
    "fit": ("verbs.fit", "Fit all models to runs."),
    "evaluate": ("verbs.fit", "Compute the errors of models on a run."),
    "colocate": ("group", "Find the jobs that may share nodes, and schedule them."),
    "predict": ("verbs.predict", "Predict bandwidths alone and together."),
    "schema": ("verbs.schema", "Print the JSON Schema of a document."),
    "simulate": ("verbs.simulate", "Simulate the memory requests of a node, one by one."),
    "broadcast": ("group", "Simulate and measure broadcasts over trees."),
    "help": ("verbs.documentation", "Print a page of the documentation."),
    "completion": ("verbs.documentation", "Print the completion script of a shell."),
    "manual": ("verbs.documentation", "Print the man page."),
    "nic": ("group", "Run programs behind an emulated NIC of known bandwidth."),
    "diagnose": ("verbs.diagnose", "Profile a program, and advise what to change."),
    "profile": ("group", "Profile who communicates when, and show it."),
    "trace": ("group", "Record, merge, check and analyse traces of programs."),
}
"""The module of each command, and what the list of commands says of it, in the order of a first visit.

A module of `cli`; `verbs.NAME` declares it; "group": see GROUPS.
"""


GOALS = {
    "Measure": ("doctor", "plans", "run", "study", "calibrate", "import"),
    "Read results": ("show", "list", "compare", "explain", "report", "export"),
    "Improve a program": ("diagnose", "profile", "trace", "advise", "nic"),
    "Predict and share nodes": ("fit", "evaluate", "predict", "overlap", "colocate"),
    "Simulate": ("machine", "simulate", "broadcast"),
    "Read and set up": ("help", "manual", "completion", "schema"),
}
"""The commands by what a user wants, as `elbowroom --help` lists them."""


class GroupEntry(NamedTuple):
    """A group of commands: its help, the module of each command as in COMMANDS, and the command that is meant
    where none is named.
    """

    help: str
    places: dict[str, str]
    default: str | None = None


GROUPS: dict[str, GroupEntry] = {
    "broadcast": GroupEntry(
        "Simulate and measure broadcasts over trees (`elbowroom help broadcast`).",
        {
            "simulate": "verbs.broadcasts",
            "bench": "verbs.broadcast_bench",
            "tune": "verbs.broadcasts",
            "factorize": "verbs.factorize",
        },
    ),
    "colocate": GroupEntry(
        "Find the jobs that may share nodes, and schedule them (`elbowroom help colocate`).",
        {
            "measure": "verbs.colocate_measure",
            "calibrate": "verbs.colocate_measure",
            "schedule": "verbs.colocate",
            "predict": "verbs.colocate_predict",
        },
    ),
    "machine": GroupEntry(
        "List, show and define virtual machines (`elbowroom help virtual`).",
        dict.fromkeys(("list", "show", "from-run"), "verbs.machine"),
    ),
    "nic": GroupEntry("Run MPI programs behind an emulated NIC of known bandwidth.", {"run": "verbs.nic"}),
    "profile": GroupEntry(
        "Profile who communicates when: `elbowroom profile -o P -- mpirun -n 4 ./app`.",
        {
            "record": "verbs.profile",
            "calibrate": "verbs.profile_calibrate",
            "what-if": "verbs.profile_what_if",
            "show": "verbs.profile",
        },
        default="record",
    ),
    "trace": GroupEntry(
        "Record, merge, check and analyse traces of programs (`elbowroom help trace`).",
        {
            "record": "verbs.trace_record",
            "merge": "verbs.trace",
            "stat": "verbs.trace",
            "activity": "verbs.trace",
            "check": "verbs.trace",
            "sync": "verbs.trace",
            "overhead": "verbs.trace_overhead",
            "overlap": "verbs.trace_overlap",
            "flushes": "verbs.trace_overhead",
        },
    ),
}
"""Groups of declared commands; a place without `verbs.` is a module of `cli` that has the group."""


class Commands(Mapping[str, click.Command]):
    """Commands by name, imported when they are used."""

    def __init__(self, places: Mapping[str, str], group: str = "") -> None:
        self._places, self._group = places, group

    def __getitem__(self, name: str) -> click.Command:
        place = self._places[name]
        if place == "group":
            return _group(name)
        if place.startswith("verbs."):
            importlib.import_module(f"elbowroom.{place}")
            declaration = importlib.import_module("elbowroom.verbs.declaration")
            verb = declaration.VERBS[f"{self._group} {name}".lstrip()]
            declared: click.Command = declaration.command_of(verb)
            return declared
        module = importlib.import_module(f"elbowroom.cli.{place}")
        if self._group:
            part: click.Command = getattr(module, self._group).commands[name]
            return part
        # A function of the command's name, with `_` behind a name that Python has.
        command: click.Command = getattr(module, f"{name}_", None) or getattr(module, name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


_groups: dict[str, Group] = {}


def _group(name: str) -> Group:
    """The group of that name, made once."""
    if name not in _groups:
        entry = GROUPS[name]
        made = _groups[name] = Group(name, help=entry.help, default_command=entry.default)
        made.commands = Commands(entry.places, name)  # type: ignore[assignment]  # nothing is added to it
    return _groups[name]


class Root(Group):
    """Lists the commands by goal, as wide as the terminal, without importing them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Their names and summaries; the column of names is as wide for every goal."""
        width = max(map(len, COMMANDS))
        for goal, names in GOALS.items():
            with formatter.section(goal):
                formatter.write_dl([(name.ljust(width), COMMANDS[name][1]) for name in names])


@click.group(cls=Root, context_settings={**SETTINGS, "max_content_width": sys.maxsize})
@click.version_option(__version__, "-V", "--version", prog_name="elbowroom")
def group() -> None:
    """Measure, explain and predict how computation and communication slow each other down.

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the machine failed, 2 the request
    cannot be met, 3 measured, but too noisy to trust.
    """


# Nothing is added to it.
group.commands = Commands({name: place for name, (place, _) in COMMANDS.items()})  # type: ignore[assignment]
