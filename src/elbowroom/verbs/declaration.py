"""What a command declares: a class with its options as fields, its action, its document and its text.

From the class come the command (and with it help, completion and man page), the function of the Python
interface and its signature, `--json`, and the refusal of options that do not go together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, dataclass_transform, get_args

import click
from click.core import ParameterSource

from elbowroom.cli.answer import Answer, command_line, print_answer
from elbowroom.cli.console import print_json
from elbowroom.cli.options import NOISY, Command, json_option
from elbowroom.cli.tables import rows_limited, rows_option
from elbowroom.errors import UsageError
from elbowroom.quantities import (
    parse_bandwidth,
    parse_duration,
    parse_mb_per_s,
    parse_percent,
    parse_share,
    parse_size,
    parse_sizes,
)
from elbowroom.verbs.saving import save

if TYPE_CHECKING:
    from elbowroom.launch.planned_starts import PlannedStart

_DECLARED, _INCLUDED = "declared", "included"
_PLAIN_TYPES = {"int": int, "float": float}
QUANTITIES: dict[str, Callable[[Any, str], Any]] = {
    "SIZE": parse_size,
    "S,S": parse_sizes,
    "TIME": parse_duration,
    "RATE": parse_bandwidth,
    "MB/s": parse_mb_per_s,
    "SHARE": parse_share,
    "PERCENT": parse_percent,
}
"""What reads an option with this metavar, unless it has a `parse` of its own."""
_METAVARS = {"int": "N", "Path | str": "FILE", "str | Path": "FILE"}
"""By annotation, where the declaration has no type of click and no metavar."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declared:
    """An option or argument of the command line: a click parameter that takes its name from the field."""

    kind: type[click.Parameter]
    spellings: tuple[str, ...] = ()
    """Of an option; none: its name behind `--`."""
    default: Any = None
    settings: Mapping[str, Any]
    """Keywords of click's parameter."""
    parse: Callable[[Any, str], Any] | None = None
    """Makes the field's value of what was typed and the name of the option in errors."""
    only_with: str | None = None
    """The field that this one is only valid with, and what to type for it: `resume RUN`."""
    positional: bool = False
    """Whether the Python function takes it by position."""
    spread: bool = False
    """Whether the Python function takes its items as arguments: `compare(a, b, c)`."""
    in_python: bool = True
    """Whether the Python function has it."""
    formerly: str = ""
    """What it was called, `--old`, or several names with blanks: still accepted, with a hint."""

    def parameter(self, name: str) -> click.Parameter:
        """The click parameter of a field of this name."""
        words: tuple[str, ...] = (name,)
        if self.kind is click.Option:
            words += self.spellings or (f"--{name.replace('_', '-')}",)
        return self.kind(words, **self.settings)

    def spelled(self, name: str) -> str:
        """The option of a field of this name, as it is typed: `--comp-cores`."""
        return max(self.spellings, key=len, default=f"--{name.replace('_', '-')}")

    def renamed(self, name: str) -> dict[str, str]:
        """The present name of each former one, as typed, for a field of this name."""
        return dict.fromkeys(self.formerly.split(), self.spelled(name))

    def typed(self, name: str) -> str:
        """The name of a field of this name in errors, as the command line calls it: `comp_cores`."""
        longest = max(self.spellings, key=len, default=name)
        return longest.lstrip("-").replace("-", "_")

    def parsed(self, value: Any, name: str) -> Any:
        """The value of a field of this name for what was typed."""
        return value if self.parse is None else self.parse(value, self.typed(name))

    def field(self, name: str, annotation: str, names: Mapping[str, Any]) -> Any:
        """The field of this name, with what follows from its annotation; `names`: those of its module."""
        typed = self._default_of(annotation)
        default = self.parsed(typed, name) if isinstance(typed, str) else typed
        settings = {**self._implied(annotation.removesuffix(" | None"), typed, names), **self.settings}
        return dataclasses.field(
            default=default, metadata={_DECLARED: dataclasses.replace(self, settings=settings)}
        )

    def _default_of(self, annotation: str) -> Any:
        if self.default is None and self.kind is click.Option:
            if annotation == "bool":
                return False
            if annotation.startswith(("tuple[", "Sequence[")) and not annotation.endswith("| None"):
                return ()
        return self.default

    def _implied(self, annotation: str, default: Any, names: Mapping[str, Any]) -> dict[str, Any]:
        """Keywords of click's parameter by the annotation of the field, and by its default."""
        if default is dataclasses.MISSING:
            implied: dict[str, Any] = {"required": True}
        elif isinstance(default, bool):
            return {"is_flag": True, "flag_value": not default, "default": default}
        else:
            implied = {"required": False, "default": None if default == () else default}
        if self.kind is click.Argument:
            return implied
        if default == () and self.parse is None and self.settings.get("multiple", True):
            implied |= {"multiple": True, "default": ()}
        elif implied.get("default") is not None:
            implied["show_default"] = "default" not in (self.settings["help"] or "")
        metavar = self.settings.get("metavar")
        if "type" not in self.settings and self.parse is None:
            choices = get_args(names.get(annotation)) if metavar is None else ()
            implied["type"] = click.Choice(choices) if choices else _PLAIN_TYPES.get(annotation)
            implied["metavar"] = _METAVARS.get(annotation)
        return implied


_RULES = {"parse", "only_with", "positional", "spread", "in_python", "formerly"}


def option(
    help: str = "", metavar: str | None = None, *, spelled: str = "", default: Any = None, **settings: Any
) -> Any:
    """A field that is an option; `spelled`: as typed, `-o --out` (default: its name behind `--`); `settings`:
    click's, and `parse`, `only_with`, `positional`, `in_python`, `formerly` (see Declared).

    The metavars of QUANTITIES say how units are read. What is not given follows from the annotation: type and
    metavar of a number, a file or a Literal without metavar (its choices); the default of a flag, and of a
    tuple, which is an option that may be repeated. The default True declares a flag that sets False:
    `--no-report`. `--help` prints a default that is not None, unless the help itself has it or `show_default`
    is false; text is parsed as if it was typed.
    """
    settings["help"] = help or None
    if metavar is not None:
        settings["metavar"] = metavar
    if metavar in QUANTITIES:
        settings.setdefault("parse", QUANTITIES[metavar])
    return _declared(click.Option, default, settings, tuple(spelled.split()))


def argument(default: Any = dataclasses.MISSING, **settings: Any) -> Any:
    """A field that is an argument; without a default it is required. `settings`: as of `option`."""
    return _declared(click.Argument, default, {"positional": True, **settings})


def command_argument(metavar: str = "-- CMD...") -> Any:
    """A field that holds the words of a program's command; empty where none is given."""
    return argument((), nargs=-1, metavar=metavar, type=click.UNPROCESSED)


def _declared(
    kind: type[click.Parameter], default: Any, settings: dict[str, Any], spellings: tuple[str, ...] = ()
) -> Declared:
    rules = {name: settings.pop(name) for name in _RULES & set(settings)}
    default = dataclasses.MISSING if settings.get("required") else default
    return Declared(kind=kind, spellings=spellings, default=default, settings=settings, **rules)


def dry_run_option(
    help: str = "Print what would be built and started, and for how long; build and start nothing.",
) -> Any:
    """The field `dry_run` of a verb that has `planned_starts`, or a `planned` of its own."""
    return option(help, default=False)


def included(
    options: type[Options],
    *,
    only: Sequence[str] = (),
    own: Mapping[str, Mapping[str, Any]] | None = None,
    **rules: Any,
) -> Any:
    """A field that holds options which several commands have; the command and the Python function have them
    as their own. `only`: not all of them; `rules`: of all of them (`only_with`); `own`:
    rules, `spelled` and click's keywords (`help`) of single ones.
    """
    part = _Included(options, tuple(only), dict(own or {}), rules)
    return dataclasses.field(default_factory=options, metadata={_INCLUDED: part})


class _Included(NamedTuple):
    """Options that a field holds, those that count, settings of single ones, and rules of all."""

    options: type[Options]
    only: tuple[str, ...]
    own: dict[str, Mapping[str, Any]]
    rules: dict[str, Any]

    def members(self, holder: str) -> Iterator[Member]:
        """Those that count, as members of a command."""
        for member in self.options.members:
            declared = member.declared
            if self.only and member.name not in self.only:
                continue
            if declared is not None:
                own = dict(self.own.get(member.name, {}))
                rules = self.rules | {name: own.pop(name) for name in _RULES & set(own)}
                if spelled := own.pop("spelled", None):
                    rules["spellings"] = tuple(spelled.split())
                declared = dataclasses.replace(declared, settings={**declared.settings, **own}, **rules)
            yield member._replace(declared=declared, holder=holder)


def _members(options: type[Any]) -> tuple[Member, ...]:
    """The members of a class of options, from its fields."""
    listed: list[Member] = []
    for field in dataclasses.fields(options):
        part = field.metadata.get(_INCLUDED)
        if part is None:
            declared = field.metadata.get(_DECLARED)
            place = options.__module__
            listed.append(Member(field.name, declared, field.default, field.type, place))
        else:
            listed += part.members(field.name)
    names = [member.name for member in listed]
    assert len(set(names)) == len(names), f"{options.__name__} declares a name twice: {names}"
    return tuple(listed)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Options that several commands have in common: a field of type `Launching` made by `included`.

    A subclass is a frozen dataclass; fields without option or argument are for Python alone.
    """

    members: ClassVar[tuple[Member, ...]] = ()
    """The options, arguments and parameters for Python, with those of included options in their place."""

    def __init_subclass__(cls) -> None:
        names = vars(sys.modules[cls.__module__])
        for name, annotation in inspect.get_annotations(cls).items():
            declared = vars(cls).get(name)
            if isinstance(declared, Declared):
                setattr(cls, name, declared.field(name, annotation, names))
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        cls.members = _members(cls)


class Member(NamedTuple):
    """An option or argument of a command, or (`declared` None) a parameter of its Python function alone."""

    name: str
    declared: Declared | None
    default: Any
    annotation: Any
    place: str
    """The module that declares it."""
    holder: str | None = None
    """The field that holds the options which this one is of."""

    def value(self, request: Verb) -> Any:
        """What a request has for it."""
        return getattr(getattr(request, self.holder) if self.holder else request, self.name)

    def given(self, request: Verb) -> bool:
        """Whether a request has another value than the default."""
        return bool(self.value(request) != self.default)


class Verb(Options):
    """A command. Its docstring is the command's help, and the first line of it what lists of commands say."""

    name: ClassVar[str]
    """As typed, with a space before the name of a command in a group: `trace stat`."""
    has_document: ClassVar[bool] = True
    """Whether `--json` prints one."""
    has_tables: ClassVar[bool] = False
    """Whether it prints tables that may be long; `--rows` says how much of them."""
    fits: ClassVar[bool] = False
    """Whether it fits models: then linear algebra has one thread."""
    saves: ClassVar[bool] = False
    """Whether its result is written to the file that `out` names."""
    with_resume: ClassVar[tuple[str, ...]] = ()
    """The fields that can be given with `resume`, where the others are fixed at the start; none: all can."""
    resumed: ClassVar[str] = "run"
    """What `--resume` continues, in errors about the others."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            VERBS[cls.name] = cls

    def __post_init__(self) -> None:
        self.check_rules()

    def check_rules(self, typed_names: Container[str] = ()) -> None:
        """UsageError for options that do not go together. `typed_names`: the fields that were typed, also
        those whose value is the default.
        """
        resuming = getattr(self, "resume", None) not in (None, False)
        for member in self.members:
            if not (member.name in typed_names or member.given(self)):
                continue
            if resuming and self.is_fixed(member):
                raise UsageError(
                    f"cannot be given with --resume: a resumed {self.resumed} keeps its settings",
                    field=member.declared.typed(member.name) if member.declared else member.name,
                    hint=f"leave it out, or start a new {self.resumed}",
                )
            if member.declared is not None:
                self._check_needed(member, member.declared)

    @classmethod
    def is_fixed(cls, member: Member) -> bool:
        """Whether it cannot be given with `resume`."""
        return bool(cls.with_resume) and not {member.name, member.holder} & {*cls.with_resume, "resume"}

    def _check_needed(self, member: Member, declared: Declared) -> None:
        """UsageError where the field that this one is only valid with is not given."""
        needed, *words = (declared.only_with or "").split() or [""]
        if not needed or next(other for other in self.members if other.name == needed).given(self):
            return
        value, option = member.value(self), f"--{needed.replace('_', '-')}"
        raise UsageError(
            f"is only valid with {option}",
            field=declared.typed(member.name),
            value=None if value is True else value,
            hint=f"add {' '.join((option, *words))}",
        )

    def do(self) -> Any:
        """Its action; what it returns is the result of the Python function."""
        raise NotImplementedError

    def planned_starts(self) -> Iterable[PlannedStart]:
        """The programs that it would start, where there is a field `dry_run`; nothing is built meanwhile."""
        raise NotImplementedError

    def planned(self) -> Any:
        """What would be built and started, and for how long: what a dry run returns in place of `do`."""
        from elbowroom.launch.planned_starts import plan_starts

        return plan_starts(self.planned_starts)

    def result(self) -> Any:
        """What the Python function returns: the plan of a dry run; else of `do`, also written to `out`."""
        if getattr(self, "dry_run", False):
            return self.planned()
        result = self.do()
        if self.saves and (out := getattr(self, "out", None)) is not None:
            save(result, out)
        return result

    def document(self, result: Any) -> Any:
        """What `--json` prints."""
        return result

    def print(self, result: Any) -> None:
        """Prints the result for people."""
        raise NotImplementedError

    def answer(self, result: Any) -> Answer | None:
        """How the text for people ends: verdict, reason and next command; None for commands that convert."""
        return None

    def stdout_is_taken(self, as_json: bool) -> bool:
        """Whether stdout belongs to a program or to a file that is written there; then the text (the document
        if `as_json`) goes to stderr.
        """
        return False

    def planned_document(self, plan: Any) -> Any:
        """What `--dry-run --json` prints."""
        return plan

    def print_planned(self, plan: Any) -> None:
        """Prints the plan of a dry run for people."""
        from elbowroom.verbs.run_tables import print_planned

        print_planned(plan)

    def trusted(self, result: Any) -> bool:
        """Whether the result is not too noisy to trust; else the exit code says so."""
        return bool(getattr(result, "trusted", True))

    def exit_code(self, result: Any) -> int:
        """The exit code of the command."""
        return 0 if self.trusted(result) else NOISY

    @contextlib.contextmanager
    def in_shell(self, as_json: bool) -> Iterator[Verb]:
        """The request as the command line makes it, while it is done. Parameters of its Python function are
        set: `command` to the words that were typed, and with --json, whose document has stdout, `stdout` of a
        program to stderr.
        """
        names = {member.name for member in self.members if member.declared is None}
        fields: dict[str, Any] = {}
        if "command" in names:
            fields["command"] = ("elbowroom", *sys.argv[1:])
        if "stdout" in names and as_json:
            fields["stdout"] = sys.stderr.fileno()
        if self.fits:
            from elbowroom.launch.processes import one_thread

            one_thread()
        yield self.with_fields(**fields)

    def again(self, **changes: Any) -> str:
        """The command line of this request with other values of some fields; None leaves a field out."""
        words: list[Any] = []
        options: list[Any] = []
        for member in self.members:
            declared, value = member.declared, changes.get(member.name, member.value(self))
            if declared is None or value is None or (value == member.default and member.name not in changes):
                continue
            several, option = isinstance(value, list | tuple), declared.spelled(member.name)
            if declared.kind is click.Argument:
                words += value if several else [value]
            elif isinstance(value, bool):
                options.append(option)
            elif several and declared.settings.get("multiple"):
                options += [word for each in value for word in (option, each)]
            else:
                options += [option, ",".join(map(str, value)) if several else value]
        return command_line(*self.name.split(), *words, *options)

    def with_fields(self, **fields: Any) -> Any:
        """The request with other values of some fields."""
        return dataclasses.replace(self, **fields)

    def execute(self, as_json: bool) -> int:
        """Does what the command line asks for, prints it, and returns the exit code."""
        if getattr(self, "dry_run", False):
            plan = self.planned()
            if as_json:
                print_json(self.planned_document(plan))
            else:
                self.print_planned(plan)
            return 0
        with self.in_shell(as_json) as request:
            result = request.result()
        return self.show(result, as_json)

    def show(self, result: Any, as_json: bool) -> int:
        """Prints the document, or the text of the result and its answer; returns the exit code."""
        taken = self.stdout_is_taken(as_json)
        with contextlib.redirect_stdout(sys.stderr) if taken else contextlib.nullcontext():
            if as_json:
                print_json(self.document(result))
                return self.exit_code(result)
            self.print(result)
            answer = self.answer(result)
            if answer is not None:
                print_answer(answer)
        return self.exit_code(result)


VERBS: dict[str, type[Verb]] = {}
"""The commands whose modules were imported, by name."""


def request_of(verb: type[Verb], values: Mapping[str, Any]) -> Verb:
    """The request with these values of options and parameters, those of included options among them."""
    own = dict(values)
    for field in dataclasses.fields(verb):
        if part := field.metadata.get(_INCLUDED):
            names = [member.name for member in part.members(field.name) if member.name in own]
            own[field.name] = part.options(**{name: own.pop(name) for name in names})
    return verb(**own)


@functools.cache
def command_of(verb: type[Verb]) -> click.Command:
    """The command that a class declares."""
    shown = [(member, member.declared) for member in verb.members if member.declared is not None]

    def call(as_json: bool = False, table_rows: str | None = None, **given: Any) -> int:
        source = click.get_current_context().get_parameter_source
        typed_names = {name for name in given if source(name) is ParameterSource.COMMANDLINE}
        for member, declared in shown:
            value = given[member.name]
            if value is not None:
                given[member.name] = declared.parsed(value, member.name)
            elif value is None and member.default is not dataclasses.MISSING:
                given[member.name] = member.default
        request = request_of(verb, given)
        request.check_rules(typed_names)
        with rows_limited(table_rows) if verb.has_tables else contextlib.nullcontext():
            return request.execute(as_json)

    command = Command(
        verb.name.rsplit(" ", 1)[-1],
        callback=call,
        params=[declared.parameter(member.name) for member, declared in shown],
        help=inspect.getdoc(verb),
        renamed={
            old: new for member, declared in shown for old, new in declared.renamed(member.name).items()
        },
    )
    command = rows_option(command) if verb.has_tables else command
    return json_option(command) if verb.has_document else command


def signature_of(verb: type[Verb], fixed: Sequence[str] = (), resuming: bool = False) -> inspect.Signature:
    """The signature of a command's Python function: arguments by position, options by name; without those
    that are `fixed`. `resuming`: `resume` by position, and nothing that is fixed at the start.
    """
    by_position: list[inspect.Parameter] = []
    by_name: list[inspect.Parameter] = []
    spread: list[inspect.Parameter] = []
    for member in verb.members:
        declared = member.declared
        hidden = declared is not None and not declared.in_python
        if member.name in fixed or hidden or (resuming and verb.is_fixed(member)):
            continue
        required = member.default is dataclasses.MISSING
        parameter = inspect.Parameter(
            member.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else member.default,
            annotation=member.annotation,
        )
        if resuming and member.name == "resume":
            needed = member.annotation.removesuffix(" | None")
            by_position.append(inspect.Parameter("resume", _BY_POSITION, annotation=needed))
        elif declared is not None and declared.spread:
            item = member.annotation.removeprefix("tuple[").removesuffix(", ...]")
            spread.append(inspect.Parameter(member.name, inspect.Parameter.VAR_POSITIONAL, annotation=item))
        elif declared is not None and declared.positional:
            by_position.append(parameter.replace(kind=_BY_POSITION))
        else:
            by_name.append(parameter)
    result = verb.planned if "dry_run" in fixed else verb.do
    returned = inspect.signature(result).return_annotation
    return inspect.Signature([*by_position, *spread, *by_name], return_annotation=returned)


_BY_POSITION = inspect.Parameter.POSITIONAL_OR_KEYWORD


def function_of(
    verb: type[Verb], name: str | None = None, *, resuming: bool = False, **fixed: Any
) -> Callable[..., Any]:
    """The Python function of a command. For one of another `name`: `fixed` has values that it always has,
    and with `resuming` it takes `resume` first, and nothing that is fixed at the start.
    """
    signature = signature_of(verb, tuple(fixed), resuming)

    def function(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        return request_of(verb, {**given, **fixed}).result()

    function.__name__ = function.__qualname__ = name or verb.name.replace(" ", "_").replace("-", "_")
    function.__doc__ = (verb.planned if "dry_run" in fixed else verb.do).__doc__ or verb.__doc__
    function.__module__ = verb.__module__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__declared__ = verb, fixed  # type: ignore[attr-defined]
    return function
