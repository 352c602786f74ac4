"""All commands: a module is imported when one of its commands is used, so that a start is quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from elbowroom import __version__
from elbowroom.cli.options import SETTINGS, CommandGroup, hint_renamed

COMMANDS = {
    "tour": ("tour", "Try everything once on a virtual machine, in half a minute."),
    "doctor": ("doctor", "Check this machine, with a hint for each problem."),
    "run": ("run", "Measure a plan: `elbowroom plans` lists them."),
    "study": ("study", "Measure a paper's figures, and judge its statements."),
    "papers": ("papers", "List the papers' items, and what shows each."),
    "show": ("show", "Print a run: verdict, points, findings and notes."),
    "compare": ("compare", "Compare runs: what changed, and by how much."),
    "report": ("report", "Write the report of a run, one HTML file."),
    "export": ("report", "Write samples, results, figures or curves of a run."),
    "plans": ("show", "List the named plans and the question each answers."),
    "advise": ("advise", "Advise how to run a job: cores, nodes, messages, overlap."),
    "calibrate": ("calibrate", "Measure a few chosen points, and fit a model to them."),
    "explain": ("explain", "Explain where the losses of a run come from."),
    "list": ("show", "List the runs in a folder."),
    "machine": ("group", "List, show and define virtual machines."),
    "predict-step": ("predict_step", "Predict the time of a step that overlaps both sides."),
    "import": ("import_files", "Import what another program measured."),
    "fit": ("fit", "Fit all models to runs."),
    "evaluate": ("fit", "Compute the errors of models on a run."),
    "colocate": ("group", "Find the jobs that may share nodes, and schedule them."),
    "predict": ("predict", "Predict bandwidths alone and together."),
    "schema": ("schema", "Print the JSON Schema of a document."),
    "simulate-memory": ("simulate_memory", "Simulate the memory requests of a node, one by one."),
    "broadcast": ("group", "Simulate and measure broadcasts over trees."),
    "help": ("documentation", "Search commands and pages, or print a page."),
    "completion": ("documentation", "Print the completion script of a shell."),
    "manual": ("documentation", "Print the man page."),
    "nic": ("group", "Measure a NIC, or emulate one of known bandwidth."),
    "accept": ("group", "Find the slow nodes of a site, and why they are slow."),
    "diagnose": ("diagnose", "Profile a program, and advise what to change."),
    "guard": ("guard", "Avoid interference while a program runs, with a receipt."),
    "profile": ("group", "Profile who communicates when, and show it."),
    "trace": ("group", "Record, merge, check and analyse traces of programs."),
}
"""The module of each command, and what the list of commands says of it, in the order of a first visit.

A module of `verbs` that declares it; "group": see GROUPS.
"""


START = ("tour", "run quick", "diagnose", "trace overlap", "fit", "predict", "advise", "report")
"""What `elbowroom --help` begins with: for a first visit."""
CASES = {
    "run quick": "Do computation and messages slow each other down here?",
    "trace overlap": "Report what overlap hides in a trace, and what it costs.",
}
"""What it says of a case of a command."""

GOALS = {
    "Measure": ("doctor", "plans", "run", "study", "papers", "calibrate", "import", "accept"),
    "Read results": ("show", "list", "compare", "explain", "export"),
    "Analyse programs": ("profile", "trace", "guard", "nic"),
    "Predict and share nodes": ("evaluate", "predict-step", "colocate"),
    "Simulate": ("machine", "simulate-memory", "broadcast"),
    "Help": ("help", "manual", "completion", "schema"),
}
"""The other commands by what a user wants, as `elbowroom --help` lists them."""


RENAMED = {
    "overlap": "predict-step",
    "simulate": "simulate-memory",
    "profile calibrate": "nic measure",
    "colocate calibrate": "colocate fit",
}
"""The present name of each command that had another one: still accepted, with a hint. Those of options are
declared with the options (`formerly`)."""


class GroupEntry(NamedTuple):
    """A group of commands: its help, the module of each command as in COMMANDS, and the command that is meant
    where none is named; `needs_words`: without any words, the help is shown.
    """

    help: str
    places: dict[str, str]
    default: str | None = None
    needs_words: bool = True


GROUPS: dict[str, GroupEntry] = {
    "accept": GroupEntry(
        "Find the slow nodes of an allocation, and why they are slow (`elbowroom help accept`).",
        {"site": "accept", "history": "accept_history"},
        default="site",
        needs_words=False,
    ),
    "broadcast": GroupEntry(
        "Simulate and measure broadcasts over trees (`elbowroom help broadcast`).",
        {
            "simulate": "broadcasts",
            "bench": "broadcast_bench",
            "tune": "broadcasts",
            "draw": "broadcast_draw",
            "factorize": "factorize",
            "curves": "broadcast_curves",
        },
    ),
    "colocate": GroupEntry(
        "Find the jobs that may share nodes, and schedule them (`elbowroom help colocate`).",
        {
            "measure": "colocate_measure",
            "fit": "colocate_measure",
            "schedule": "colocate",
            "demand": "colocate_demand",
            "predict": "colocate_predict",
        },
    ),
    "machine": GroupEntry(
        "List, show and define virtual machines (`elbowroom help virtual`).",
        dict.fromkeys(("list", "show", "from-run"), "machine"),
    ),
    "nic": GroupEntry(
        "Measure NICs, and run programs behind an emulated NIC of known bandwidth.",
        {"run": "nic", "measure": "nic_measure"},
    ),
    "profile": GroupEntry(
        "Profile who communicates when: `elbowroom profile -o P -- mpirun -n 4 ./app`.",
        {
            "record": "profile",
            "what-if": "profile_what_if",
            "show": "profile",
        },
        default="record",
    ),
    "trace": GroupEntry(
        "Record, merge, check and analyse traces of programs (`elbowroom help trace`).",
        {
            "record": "trace_record",
            "merge": "trace",
            "stat": "trace",
            "activity": "trace",
            "check": "trace",
            "sync": "trace",
            "overhead": "trace_overhead",
            "overlap": "trace_overlap",
            "flushes": "trace_overhead",
        },
    ),
}
"""The groups of commands, by name."""


class Commands(Mapping[str, click.Command]):
    """Commands by name, imported when they are used."""

    def __init__(self, places: Mapping[str, str], group: str = "") -> None:
        self._places, self._group = places, group

    def __getitem__(self, name: str) -> click.Command:
        place = self._places[name]
        if place == "group":
            return _group(name)
        importlib.import_module(f"elbowroom.verbs.{place}")
        declaration = importlib.import_module("elbowroom.verbs.declaration")
        command: click.Command = declaration.command_of(declaration.VERBS[f"{self._group} {name}".lstrip()])
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


_groups: dict[str, CommandGroup] = {}


def _group(name: str) -> CommandGroup:
    """The group of that name, made once."""
    if name not in _groups:
        entry = GROUPS[name]
        created = _groups[name] = CommandGroup(
            name, help=entry.help, default_command=entry.default, needs_words=entry.needs_words
        )
        created.commands = Commands(entry.places, name)  # type: ignore[assignment]  # nothing is added to it
    return _groups[name]


class Root(CommandGroup):
    """Lists the commands by goal, as wide as the terminal, without importing them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """click's; a former name stands for the present one, with a hint."""
        for count in (1, 2):
            old = " ".join(args[:count])
            if len(args) >= count and old in RENAMED:
                if not ctx.resilient_parsing:
                    hint_renamed(f"`elbowroom {old}`", f"`elbowroom {RENAMED[old]}`")
                args = [*RENAMED[old].split(), *args[count:]]
                break
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first, then options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Their names and summaries; the column of names is as wide for every goal."""
        width = max(map(len, COMMANDS))
        summaries = {name: summary for name, (_, summary) in COMMANDS.items()} | CASES
        for goal, names in {"Start here": START, **GOALS}.items():
            with formatter.section(goal):
                formatter.write_dl([(name.ljust(width), summaries[name]) for name in names])


_EPILOG = """Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 the machine failed, 2 the
request cannot be met, 3 measured, but too noisy to trust, 4 suspects or faults were found.

`elbowroom COMMAND --help` lists the options of a command, `elbowroom help WORD` searches."""


@click.group(cls=Root, epilog=_EPILOG, context_settings={**SETTINGS, "max_content_width": sys.maxsize})
@click.version_option(__version__, "-V", "--version", prog_name="elbowroom")
def group() -> None:
    """Measure, explain and predict how computation and communication slow each other down."""


# Nothing is added to it.
group.commands = Commands({name: place for name, (place, _) in COMMANDS.items()})  # type: ignore[assignment]
