"""Options and arguments: what every command has in common.

A value that cannot be right for any option is refused before the command starts: empty text, text that is not
UTF-8, numbers that are not finite or not in ASCII digits, an option given twice. The errors name the option.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from elbowroom import synonyms
from elbowroom.errors import UsageError, closest
from elbowroom.files import check_output, try_output
from elbowroom.quantities import MOST_REPETITIONS
from elbowroom.synonyms import nearest

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
"""Of the context of every command."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST = 2**63 - 1
_NARROWEST = 30
"""Columns of the narrowest help."""
_ARGUMENTS = {"m": "model", "a": "run", "b": "run", "name": "machine", "dir": "directory"}
"""Fields of arguments whose metavar is an abbreviation."""


class _Text(click.types.StringParamType):
    """Text that shells complete with the names of files."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Files of any kind."""
        return [CompletionItem(incomplete, type="file")]


class Output(_Text):
    """A file to write, tried before anything is computed; `endings`: those that its name may have, none: any
    (the command decides); `bare`: it may have none; `wrong`: what is said of others.
    """

    def __init__(self, *endings: str, bare: bool = False, wrong: str = "unsupported output format") -> None:
        self.endings, self.bare, self.wrong = endings, bare, wrong

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name; UsageError for another ending, MachineError where it cannot be written."""
        text = super().convert(value, param, ctx)
        if isinstance(text, str):
            if self.endings:
                check_ending(text, self.endings, bare=self.bare, wrong=self.wrong)
            try_output(Path(text))
        return text


def check_ending(name: str, endings: Sequence[str], *, bare: bool, wrong: str) -> None:
    """UsageError where a file's name has another ending than these; `bare`: it may have none."""
    ending = os.path.splitext(name)[1].lower()
    if ending in endings or (bare and not ending):
        return
    *others, last = endings
    ends = f"{', '.join(others)} or {last}" if others else last
    raise UsageError(wrong, field="out", value=name, hint=f"end the name in {ends}")


FIGURE = Output(".svg", ".png", wrong="is not a picture")


class _Formatter(click.HelpFormatter):
    """Help as wide as the terminal, also where that has less than 52 columns."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        columns = shutil.get_terminal_size().columns
        width = max(min(columns, max_width or 80) - 2, _NARROWEST) if width is None else width
        super().__init__(indent_increment, width, max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """click's; the first column has at most half of the width."""
        super().write_dl(rows, min(col_max, self.width // 2), col_spacing)


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A command whose words are checked; settings of its own, since click keeps the help option of whichever
    context asked for it first.
    """

    context_class = _Context

    def __init__(self, *arguments: Any, renamed: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*arguments, **{"context_settings": SETTINGS, **options})
        self.renamed = renamed or {}
        """The present name of each former option."""
        for parameter in self.params:
            if parameter.type is click.STRING:
                parameter.type = _Text()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """click's, after the checks; former names of options stand for the present ones, with a hint."""
        args = [*self._with_present_names(args, quiet=ctx.resilient_parsing)]
        if not ctx.resilient_parsing:
            _check_words(self, ctx, args)
        return super().parse_args(ctx, args)

    def _with_present_names(self, words: Iterable[str], quiet: bool) -> Iterator[str]:
        words = iter(words)
        for word in words:
            name, equals, value = word.partition("=")
            if name in self.renamed and not quiet:
                hint_renamed(name, self.renamed[name])
            yield self.renamed.get(name, name) + equals + value
            if word == "--":
                yield from words

    def invoke(self, ctx: click.Context) -> Any:
        """click's, where no output would destroy what was measured or is read."""
        check_outputs(ctx.params)
        return super().invoke(ctx)


def hint_renamed(old: str, new: str) -> None:
    """Says on stderr what an option or a command is called now."""
    print(f"elbowroom: {old} is now {new}", file=sys.stderr)


STARTERS = {"trace": "trace record", "nic": "nic run --nic RATE"}
"""What starts a program, by the group behind which a program is typed."""


class CommandGroup(click.Group):
    """Lists commands in the order of a first visit; shows its help where no command is given.

    `default_command`: the command that words which name none are for; `needs_words`: without any, the help is
    shown.
    """

    command_class = Command
    context_class = _Context

    def __init__(
        self,
        *arguments: Any,
        default_command: str | None = None,
        needs_words: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **{"context_settings": SETTINGS, "no_args_is_help": False, **options})
        self._default_command = default_command
        self._needs_words = needs_words

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of definition."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """click's; without any words, the help, or the command that needs none."""
        if not args and self._needs_words and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        named = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
        if self._default_command and not named and (args or not self._needs_words):
            args = [self._default_command, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click's; a name that no command has is a UsageError."""
        name = args[0]
        if name.startswith("-"):
            raise UsageError(
                "no such option", field="option", value=name, hint=f"see `{ctx.command_path} --help`"
            )
        if name not in self.commands and not ctx.resilient_parsing:
            raise UsageError("no such command", field="command", value=name, hint=self._meant(name, ctx))
        return super().resolve_command(ctx, args)

    def _meant(self, name: str, ctx: click.Context) -> str:
        """A hint: the command that a name of another tool, a program or a mistyped name stands for."""
        group = "elbowroom" if ctx.parent is None else str(self.name)
        meant = synonyms.of_commands().get(group, {}).get(name.lower())
        if meant is None and group in STARTERS and shutil.which(name) is not None:
            meant = f"{STARTERS[group]} -- {name} …"
        if meant:
            return f"did you mean `elbowroom {meant}`?"
        if ctx.parent is not None:
            return closest(name, self.commands)
        near = "".join(f"did you mean {word!r}? " for word in nearest(name, self.commands))
        return f"{near}`elbowroom --help` lists the commands, `elbowroom help {name}` searches"


class RegistryChoice(click.Choice[str]):
    """Names that a registry knows, when they are needed."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names now."""
        return self._names()


def completion(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """What completes an argument that is one of these names."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


REPEAT = click.IntRange(min=1, max=MOST_REPETITIONS)


def field_of(parameter: click.Parameter) -> str:
    """The name of a parameter in errors: `comp_cores` of --comp-cores, `run` of the argument RUN."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len).lstrip("-").replace("-", "_")
    word = re.match(r"\W*(\w+)", parameter.metavar or parameter.name or "")
    name = word[1].lower() if word else str(parameter.name)
    return _ARGUMENTS.get(name, name)


def usage_error(error: click.ClickException) -> UsageError:
    """An error of click's parser as a sentence of this program."""
    context = getattr(error, "ctx", None)
    see = f"see `{context.command_path if context is not None else 'elbowroom'} --help`"
    if isinstance(error, click.NoSuchOption):
        near = _option_meant(error, context)
        return UsageError("no such option", field="option", value=error.option_name, hint=near + see)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return UsageError("is missing", field=field_of(error.param), hint=see)
    field = str(getattr(error, "option_name", None) or "").lstrip("-").replace("-", "_")
    parameter = getattr(error, "param", None)
    if parameter is not None:
        field = field_of(parameter)
    sentence = " ".join(error.format_message().split()).rstrip(".")
    return UsageError(sentence[:1].lower() + sentence[1:], field=field or "arguments", hint=see)


def _option_meant(error: click.NoSuchOption, context: click.Context | None) -> str:
    """`did you mean --out?`; nothing where no option of the command is close."""
    command = None if context is None else context.command
    names = [word for item in command.params for word in item.opts] if command is not None else []
    long = {word.removeprefix("--"): word for word in names if word.startswith("--")}
    near = nearest(error.option_name.lstrip("-"), long, count=2)
    return f"did you mean {' or '.join(long[name] for name in near)}? " if near else ""


def _check_words(command: click.Command, context: click.Context, words: Sequence[str]) -> None:
    """Raises UsageError for the first value that is wrong whatever the option means."""
    values, _, order = command.make_parser(context).parse_args(list(words))
    if values.get("help"):
        return
    for parameter in dict.fromkeys(order):
        if parameter.type is click.UNPROCESSED:
            continue
        given = values.get(parameter.name or "")
        several = isinstance(given, list | tuple)
        if isinstance(parameter, click.Option) and not parameter.is_flag and not parameter.multiple:
            _check_once(parameter, given, order.count(parameter))
        for value in given if isinstance(given, list | tuple) and several else (given,):
            if isinstance(value, str):
                _check_value(parameter, value, context)


def _check_once(option: click.Option, value: object, times: int) -> None:
    if times > 1:
        raise UsageError(f"is given {times} times", field=field_of(option), value=value, hint="give it once")


def _check_value(parameter: click.Parameter, value: str, context: click.Context) -> None:
    field = field_of(parameter)
    if any("\udc80" <= letter <= "\udcff" for letter in value):
        raise UsageError("is not UTF-8", field=field, value=value, hint="use a name in UTF-8")
    if not value.strip():
        hint = "give a value; an unset shell variable looks like this"
        raise UsageError("is empty", field=field, value=value, hint=hint)
    if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
        _check_number(parameter, field, value)
    try:
        parameter.type.convert(value, parameter, context)
    except click.BadParameter as error:
        _refuse(parameter.type, field, value, error)


def _check_number(parameter: click.Parameter, field: str, value: str) -> None:
    text = value.strip()
    if isinstance(parameter.type, click.types.IntParamType):
        if not _WHOLE.fullmatch(text):
            raise UsageError("is not a whole number", field=field, value=value, hint=_range(parameter.type))
        # Python refuses to convert thousands of digits.
        if len(text) > 40 or abs(int(text)) > _LARGEST:
            raise UsageError("is too large", field=field, value=value, hint="give a smaller number")
    elif not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise UsageError("is not a finite number", field=field, value=value, hint=_range(parameter.type))


def _refuse(kind: click.ParamType[Any], field: str, value: str, error: click.BadParameter) -> NoReturn:
    if isinstance(kind, click.Choice):
        known = [str(choice) for choice in kind.choices]
        raise UsageError(
            "is none of the choices", field=field, value=value, hint=closest(value, known)
        ) from error
    if isinstance(kind, click.types._NumberRangeBase):
        raise UsageError("is out of range", field=field, value=value, hint=_range(kind)) from error
    raise UsageError(error.message.rstrip("."), field=field, value=value, hint="see --help") from error


def _range(kind: click.ParamType[Any]) -> str:
    what = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    above = "above" if getattr(kind, "min_open", False) else "from"
    ends = f" {above} {low}" if low is not None else ""
    return f"give {what}{ends}{f' to {high}' if high is not None else ''}"


_OUTPUTS = ("out", "report", "figure", "slurm")
"""Names of the parameters that are files to write."""


def check_outputs(parameters: dict[str, Any]) -> None:
    """Refuses outputs that would destroy a file of a run or of a trace, or one that the command reads: any
    other parameter may name one.
    """
    outputs = {name: parameters[name] for name in _OUTPUTS if isinstance(parameters.get(name), str)}
    others = [value for name, value in parameters.items() if name not in outputs]
    inputs = [Path(word) for word in _parts(others)]
    for name, value in outputs.items():
        check_output(Path(value), inputs, field=name)


def _parts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value and "\0" not in value:
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)


NOISY = 3


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on stdout, errors included."
)
