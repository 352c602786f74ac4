"""What a command declares: a class with its options as fields, its action, its document and its text.

From the class come the command (and with it help, completion and man page), the function of the Python
interface, `--json`, and the refusal of options that are only valid with another.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, dataclass_transform

import click

from elbowroom.cli.console import print_json
from elbowroom.cli.options import NOISY, Command, json_option
from elbowroom.errors import UsageError

_DECLARED = "declared"


class Declared:
    """An option or argument of the command line: a click parameter that takes its name from the field.

    `parse` makes the field's value of the text; `only_with` names the field that this one is only valid with.
    """

    def __init__(
        self,
        kind: type[click.Parameter],
        words: Sequence[str],
        settings: dict[str, Any],
        parse: Callable[[Any], Any] | None,
        only_with: str | None,
    ) -> None:
        self.kind, self.words, self.settings = kind, tuple(words), settings
        self.parse, self.only_with = parse, only_with

    def parameter(self, name: str) -> click.Parameter:
        """The click parameter of a field of this name."""
        words = self.words or (f"--{name.replace('_', '-')}",)
        return self.kind([name, *words] if self.kind is click.Option else [name], **self.settings)


def option(
    *words: str,
    default: Any = None,
    parse: Callable[[Any], Any] | None = None,
    only_with: str | None = None,
    **settings: Any,
) -> Any:
    """A field that is an option; `words`: its spellings (none: its name behind `--`); `settings`: click's.

    A default that is not None is printed by `--help`, unless `show_default` is false.
    """
    if isinstance(default, bool):
        settings.setdefault("is_flag", True)
    elif default not in (None, ()):
        settings.setdefault("show_default", True)
    if default == ():
        settings.setdefault("multiple", True)
    declared = Declared(click.Option, words, {"default": default, **settings}, parse, only_with)
    return dataclasses.field(default=default, metadata={_DECLARED: declared})


def argument(
    default: Any = dataclasses.MISSING, *, parse: Callable[[Any], Any] | None = None, **settings: Any
) -> Any:
    """A field that is an argument; without a default it is required. `settings`: click's."""
    if default is not dataclasses.MISSING:
        settings = {"required": False, "default": default, **settings}
        return dataclasses.field(
            default=default, metadata={_DECLARED: Declared(click.Argument, (), settings, parse, None)}
        )
    settings = {"required": True, **settings}
    return dataclasses.field(metadata={_DECLARED: Declared(click.Argument, (), settings, parse, None)})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option, argument))
class Verb:
    """A command. A subclass is a frozen dataclass; fields without option or argument are for Python alone.

    Its docstring is the command's help, and the first line of it what lists of commands say.
    """

    name: ClassVar[str]
    """As typed, with a space before the name of a command in a group: `trace stat`."""
    has_document: ClassVar[bool] = True
    """Whether `--json` prints one."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        VERBS[cls.name] = cls

    def __post_init__(self) -> None:
        for field, declared in declared_fields(type(self)):
            if declared.only_with is None or getattr(self, field.name) == field.default:
                continue
            needed = next(other for other in dataclasses.fields(self) if other.name == declared.only_with)  # type: ignore[arg-type]
            if getattr(self, needed.name) == needed.default:
                dashed = needed.name.replace("_", "-")
                raise UsageError(
                    f"is only valid with --{dashed}",
                    field=field.name,
                    value=getattr(self, field.name),
                    hint=f"add --{dashed}, or leave it out",
                )

    def do(self) -> Any:
        """Its action; what it returns is the result of the Python function."""
        raise NotImplementedError

    def document(self, result: Any) -> Any:
        """What `--json` prints."""
        return result

    def print(self, result: Any) -> None:
        """Prints the result for people."""
        raise NotImplementedError

    def trusted(self, result: Any) -> bool:
        """Whether the result is not too noisy to trust; else the exit code says so."""
        return bool(getattr(result, "trusted", True))


VERBS: dict[str, type[Verb]] = {}
"""The commands whose modules were imported, by name."""


def declared_fields(verb: type[Verb]) -> list[tuple[dataclasses.Field[Any], Declared]]:
    """The fields that are options or arguments."""
    return [
        (field, field.metadata[_DECLARED])
        for field in dataclasses.fields(verb)  # type: ignore[arg-type]
        if _DECLARED in field.metadata
    ]


@functools.cache
def command_of(verb: type[Verb]) -> click.Command:
    """The command that a class declares."""

    def call(as_json: bool = False, **given: Any) -> int:
        for field, declared in declared_fields(verb):
            if declared.parse is not None and given[field.name] is not None:
                given[field.name] = declared.parse(given[field.name])
        request = verb(**given)
        result = request.do()
        if as_json:
            print_json(request.document(result))
        else:
            request.print(result)
        return 0 if request.trusted(result) else NOISY

    command = Command(
        verb.name.rsplit(" ", 1)[-1],
        callback=call,
        params=[declared.parameter(field.name) for field, declared in declared_fields(verb)],
        help=inspect.getdoc(verb),
    )
    return json_option(command) if verb.has_document else command


def function_of(verb: type[Verb]) -> Callable[..., Any]:
    """The Python function of a command: its arguments by position, its options by name."""
    positions = [
        (field, declared) for field, declared in declared_fields(verb) if declared.kind is click.Argument
    ]
    several = bool(positions) and positions[-1][1].settings.get("nargs") == -1

    def function(*arguments: Any, **options: Any) -> Any:
        names = [field.name for field, _ in positions]
        if several:
            *names, rest = names
            options[rest] = arguments[len(names) :]
            arguments = arguments[: len(names)]
        if len(arguments) > len(names):
            raise TypeError(f"{function.__name__}() takes {len(names)} positional arguments")
        return verb(**dict(zip(names, arguments, strict=False)), **options).do()

    function.__name__ = function.__qualname__ = verb.name.replace(" ", "_").replace("-", "_")
    function.__doc__, function.__module__ = verb.__doc__, verb.__module__
    return function
