"""`elbowroom help`, `completion` and `manual`: the documentation, and what shells and man read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from elbowroom.cli.options import completion
from elbowroom.errors import UsageError
from elbowroom.verbs.declaration import Verb, argument
from elbowroom.version import __version__

UNLISTED = ("index",)
"""Pages that only lead to others."""

UNSEARCHED = ("bad-input",)
"""Pages full of words that are wrong."""


def _pages() -> Iterable[str]:
    return topics()


class Help(Verb):
    """Print a page of the documentation, or search commands and pages for WORD.

    Without a word, list the pages. A word that is no page is looked up in the commands, their options, the
    plans, the pages and the glossary; also what other tools call it. Several words must all be there.
    """

    name = "help"
    has_document = False

    words: tuple[str, ...] = argument(
        (), nargs=-1, metavar="[PAGE|WORD...]", shell_complete=completion(_pages)
    )

    def do(self) -> str:
        """The text to print."""
        pages = topics()
        if not self.words:
            return "".join(f"{name:<29}{_title(path)}\n" for name, path in sorted(pages.items()))
        name = "-".join(self.words)
        return pages[name].read_text(encoding="utf-8") if name in pages else _search(self.words, pages)

    def print(self, result: str) -> None:
        click.echo(result, nl=False)


def _search(words: Sequence[str], pages: Mapping[str, Path]) -> str:
    """What the search finds; UsageError where that is nothing."""
    from elbowroom.experiments.plans import list_plans
    from elbowroom.verbs import help_search

    parts = tuple(part for word in words for part in word.split())
    entries = [
        *help_search.entries_of_commands(_commands(_root(), ("elbowroom",))),
        *(
            help_search.HelpEntry(plan.name, f"elbowroom run {plan.name}", plan.question)
            for plan in list_plans().plans
        ),
        *help_search.entries_of_pages({name: pages[name] for name in pages if name not in UNSEARCHED}),
    ]
    matches = help_search.search(parts, entries)
    if not matches:
        near = help_search.nearest_words(parts, entries)
        hint = f"nearest: {', '.join(near)}; " if near else ""
        raise UsageError(
            "is in no command and on no page",
            field="word",
            value=" ".join(words),
            hint=f"{hint}`elbowroom help` lists the pages, `elbowroom --help` the commands",
        )
    return help_search.shown(matches)


class Completion(Verb):
    """Print the script that completes commands and options in bash, zsh or fish.

    For bash, add this to ~/.bashrc: `eval "$(elbowroom completion bash)"`
    """

    name = "completion"
    has_document = False

    shell: str = argument(type=click.Choice(("bash", "zsh", "fish")))

    def do(self) -> str:
        """The script."""
        shell_class = get_completion_class(self.shell)
        assert shell_class is not None
        return shell_class(_root(), {}, "elbowroom", "_ELBOWROOM_COMPLETE").source()

    def print(self, result: str) -> None:
        click.echo(result, nl=False)


class Manual(Verb):
    """Print the man page: `elbowroom manual > elbowroom.1`."""

    name = "manual"
    has_document = False

    def do(self) -> str:
        """The page."""
        return manual_page(_root())

    def print(self, result: str) -> None:
        click.echo(result, nl=False)


def topics() -> dict[str, Path]:
    """Pages by topic: the name of the file, whatever folder it is in."""
    return {path.stem: path for path in docs().rglob("*.md") if path.stem not in UNLISTED}


def _root() -> click.Group:
    """The group of all commands."""
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    return root


def docs() -> Path:
    """The pages: inside the installed package, or beside the sources of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "docs"
    return installed if installed.is_dir() else package.parents[1] / "docs"


def manual_page(root: click.Group) -> str:
    """A man page (section 1, man(7) macros) of all commands and options below `root`."""
    lines = [f'.TH ELBOWROOM 1 "" "elbowroom {__version__}" "User Commands"', ".SH NAME"]
    lines += [r"elbowroom \- interference between computation and communication", ".SH SYNOPSIS"]
    lines += [r".B elbowroom", r"\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]", ".SH DESCRIPTION"]
    lines += [_roff(root.help or ""), ".SH COMMANDS"]
    for path, part in _commands(root, ("elbowroom",)):
        context = click.Context(part, info_name=" ".join(path), **part.context_settings)
        usage = " ".join(part.collect_usage_pieces(context))
        lines += [f".SS {_roff(' '.join(path))} {_roff(usage)}", _roff(part.help or "")]
        for parameter in part.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                lines += [".TP", rf"\fB{_roff(record[0])}\fR", _roff(record[1]) or r"\&"]
    lines += [".SH SEE ALSO", _roff("`elbowroom help` lists the pages of the documentation.")]
    return "\n".join(lines) + "\n"


def _commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from _commands(part, (*path, name))
    else:
        yield path, command


def _roff(text: str) -> str:
    """Text for roff: no line is taken for a macro, no hyphen for a dash; a blank line begins a paragraph."""
    lines = (line.strip() for line in text.replace("\\", r"\e").replace("-", r"\-").splitlines())
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line or ".PP" for line in lines)


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
